"""The webhook: defaulting and validation of HyperJobs, and the gate on their ResourceBindings."""
