"""The content of each page as values: pure functions of the informers' objects."""
