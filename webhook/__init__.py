"""Admission of HyperJobs, and the gate on their ResourceBindings; it waits for no API call."""
