"""The errors of requests about HyperJobs, and kubectl's texts for errors of the API server."""

from typing import Final

from hyperjob_core.api.names import GROUP, KIND, PLURAL
from hyperjob_core.kube.errors import KubeError, NotFound, Unauthorized, Unavailable

NO_SANDBOX: Final = (
    "the embedded control plane is not installed; install the wheel hyperjob_sandbox of this"
    " release, from its release page or by `make wheel` in a clone"
)
_UNSERVED: Final = ("the server could not find the requested resource", "404 page not found")


class ClientError(Exception):
    """The request cannot be carried out, for example since a name does not exist."""


class NotYetError(ClientError):
    """The HyperJob has not reached the awaited state, and may reach it without a user's action."""


class NeverError(ClientError):
    """The HyperJob can never reach the awaited state: it has ended, or it is being deleted."""


def title(name: str) -> str:
    """Return the name of a HyperJob as kubectl prints names: kind.group/name."""
    return f"{KIND.lower()}.{GROUP}/{name}"


def words(error: KubeError) -> str:
    """Return kubectl's text for an API error, with a command to type next if there is one."""
    message = error.message
    if isinstance(error, Unavailable) and not error.answered:
        return f"Unable to connect to the server: {message}"
    if isinstance(error, Unauthorized):
        said = f"error: You must be logged in to the server ({message or 'Unauthorized'})"
        return f"{said}; log in again, or renew the token or certificate of the kubeconfig"
    if isinstance(error, NotFound) and message.strip() in _UNSERVED:
        kind = f'"{PLURAL}"' if f"/{GROUP}/" in error.request else f"of {error.request}"
        return (
            f"error: the server doesn't have a resource type {kind}; is HyperJob installed there?"
            " hyperjob preflight"
        )
    return f"Error from server ({error.reason}): {message}"
