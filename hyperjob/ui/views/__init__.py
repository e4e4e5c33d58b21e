"""What each page shows, as values: pure functions of what the informers know."""
