"""The way from an informer event to a pass."""
