"""The commands on HyperJobs, one module each: flags, reading, and a view of what was read."""
