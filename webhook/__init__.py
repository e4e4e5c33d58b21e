"""Admission of HyperJobs, and the gate on their ResourceBindings; no answer waits for an API call."""
