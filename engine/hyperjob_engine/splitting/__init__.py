"""The question to an external splitter, and the checks of its answer."""
