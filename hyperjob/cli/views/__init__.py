"""What commands show: objects in, text lines or plain JSON values out. Pure; never reads."""
