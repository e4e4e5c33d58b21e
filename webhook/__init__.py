"""Admission of HyperJobs, and the gate on their ResourceBindings; it makes no API call."""
