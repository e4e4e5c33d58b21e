"""The embedded control plane: an API server, simulated Karmada controllers and member clusters.

It knows nothing of the project's webhook or controller; they talk to it over HTTPS like anybody else.
"""
