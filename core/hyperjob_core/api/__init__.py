"""The types of the HyperJob API, and rules of the Kubernetes API. Pure: no I/O, no clock."""
