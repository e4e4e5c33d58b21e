"""What is stored and served, and the background work that keeps it tidy."""
