"""An embedded Kubernetes API server: real HTTP, TLS, discovery, watches and validation, in memory."""

from hyperjob.sandbox.apiserver.server import ApiServer

__all__ = ["ApiServer"]
