"""The embedded control plane: a Kubernetes API server, a Karmada and its members, on loopback."""

__version__ = "0.1.0"
