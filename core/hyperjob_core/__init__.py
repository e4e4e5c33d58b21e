"""The ground floor: API types, the Kubernetes client, settings, serving and telemetry.

All other packages of HyperJob may import this one; it imports none of them.
"""

__version__ = "0.1.0"
