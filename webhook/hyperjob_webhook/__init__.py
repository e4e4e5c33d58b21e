"""The webhook: validation of HyperJobs, and the gate on their ResourceBindings."""
