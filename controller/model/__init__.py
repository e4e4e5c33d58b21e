"""The values of a decision: what was observed, what is planned. Never does I/O."""
