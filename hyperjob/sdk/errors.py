"""The exceptions of the SDK; each message names the object, the reason and the next step."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hyperjob.client.errors import ClientError, NeverError, NotYetError, words
from hyperjob_core.kube.errors import ConfigError, KubeError, NotFound, Unavailable

_WARNING: Final = re.compile(r'299 \S+ "(.*)"', re.DOTALL)
"""A header of a warning: code, agent, and the quoted text."""


class HyperJobError(Exception):
    """A request about a HyperJob failed; the base class of all exceptions of the SDK."""


class HyperJobWarning(UserWarning):
    """A warning of the API server or of the webhook about a HyperJob that it accepts."""


class NotFoundError(HyperJobError):
    """There is no HyperJob of this name, or HyperJob is not installed."""


class UnreachableError(HyperJobError):
    """The API server does not answer, or there is no kubeconfig."""


class SourceError(HyperJobError):
    """A function or a folder cannot be put into a HyperJob."""


class NotReachedError(HyperJobError, TimeoutError):
    """Time was up before the HyperJob reached a state; it may still reach it."""


class NeverReachedError(HyperJobError):
    """The HyperJob can no longer reach a state: it has ended, was deleted, or is too large."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field of a HyperJob that the API server refuses."""

    field: str
    reason: str
    message: str


class InvalidError(HyperJobError):
    """The API server refuses a HyperJob; `fields` has all invalid fields."""

    def __init__(self, message: str, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


def warn(_request: str, text: str) -> None:
    """Issue a warning of the API server as a HyperJobWarning."""
    found = _WARNING.fullmatch(text)
    said = found[1].replace('\\"', '"').replace("\\\\", "\\") if found else text
    # The request has no frame of the caller: another file and line would only mislead.
    warnings.warn_explicit(said, HyperJobWarning, "hyperjob", 1)


@contextmanager
def translated() -> Iterator[None]:
    """Translate the exceptions of the client library to those of the SDK."""
    try:
        yield
    except NeverError as error:
        raise NeverReachedError(str(error)) from None
    except NotYetError as error:
        raise NotReachedError(str(error)) from None
    except ClientError as error:
        raise HyperJobError(str(error)) from None
    except ConfigError as error:
        raise UnreachableError(str(error)) from None
    except KubeError as error:
        raise _error_of(error) from error


def _error_of(error: KubeError) -> HyperJobError:
    text = words(error)
    if isinstance(error, NotFound):
        return NotFoundError(text)
    if isinstance(error, Unavailable) and not error.answered:
        return UnreachableError(text)
    if error.reason == "Invalid":
        causes = (error.status.get("details") or {}).get("causes") or ()
        names = ("field", "reason", "message")
        fields = [FieldError(*(str(each.get(name, "")) for name in names)) for each in causes]
        return InvalidError(text, fields)
    return HyperJobError(text)
