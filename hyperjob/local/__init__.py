"""A whole HyperJob installation on this machine, for the demo and for the SDK.

Each part is a process of its own, as in production: the embedded control plane with its members,
the webhook and the controller. The embedded control plane is the distribution `hyperjob[sandbox]`.
"""
