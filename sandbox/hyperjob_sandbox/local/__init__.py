"""A whole installation of HyperJob on this machine, for the demo and the SDK.

The embedded control plane with its members, the webhook and the controller run as separate
processes, as in production.
"""
