"""The history of phases, attempts, clusters and use over time, in a bounded SQLite file."""
