"""Kubernetes protobuf bodies, for the built-in kinds that clients send in that form."""

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import errors


def decode(body: bytes) -> Object:
    """Decode an enveloped protobuf object."""
    raise errors.unsupported_media_type(("application/json", "application/yaml"))
