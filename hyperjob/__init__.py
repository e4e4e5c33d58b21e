"""One training job across many Kubernetes clusters."""

__version__ = "0.1.0"
