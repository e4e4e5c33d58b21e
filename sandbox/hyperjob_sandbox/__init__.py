"""The embedded control plane: a Kubernetes API server, a Karmada and its members, on loopback.

It knows nothing of our webhook or controller: they meet it as they meet any Karmada.
"""

__version__ = "0.1.0"
