"""The patch types: JSON, merge and strategic merge."""
