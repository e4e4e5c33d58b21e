"""HTTPS in front of the API: who calls, what is asked, how bodies are read and written."""
