"""An embedded Kubernetes API server: HTTP, TLS, discovery, watches, validation, in memory."""

from hyperjob_sandbox.apiserver.server import ApiServer

__all__ = ["ApiServer"]
