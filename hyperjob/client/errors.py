"""Why a request about a HyperJob fails, and how kubectl words an error of the API server."""

from typing import Final

from hyperjob.api.names import GROUP, KIND, PLURAL
from hyperjob.kube.errors import KubeError, NotFound, Unauthorized, Unavailable

_UNSERVED: Final = ("the server could not find the requested resource", "404 page not found")


class ClientError(Exception):
    """The request cannot be carried out: a name is unknown, or there is nothing to act on."""


class NotYetError(ClientError):
    """The awaited state has not come yet, and may come without any action of a user."""


class NeverError(ClientError):
    """The awaited state never comes: the HyperJob has ended, is being deleted or is gone."""


def title(name: str) -> str:
    """Name a HyperJob as kubectl names objects: kind.group/name."""
    return f"{KIND.lower()}.{GROUP}/{name}"


def words(error: KubeError) -> str:
    """Word an API error as kubectl does, with the next step where there is one."""
    message = error.message
    if isinstance(error, Unavailable) and not error.answered:
        return f"Unable to connect to the server: {message}"
    if isinstance(error, Unauthorized):
        return f"error: You must be logged in to the server ({message or 'Unauthorized'})"
    if isinstance(error, NotFound) and message.strip() in _UNSERVED:
        kind = f'"{PLURAL}"' if f"/{GROUP}/" in error.request else f"of {error.request}"
        return (
            f"error: the server doesn't have a resource type {kind}; is HyperJob installed there?"
            " hyperjob preflight"
        )
    return f"Error from server ({error.reason}): {message}"
