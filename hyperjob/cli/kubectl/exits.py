"""How commands end: exit codes, and errors in kubectl's words. Decides nothing, prints only."""

import asyncio
import enum
from collections.abc import Coroutine
from typing import TypeVar

import click

from hyperjob.api.names import GROUP, PLURAL
from hyperjob.kube.errors import ConfigError, KubeError, NotFound, Unauthorized, Unavailable

_T = TypeVar("_T")
_UNSERVED = ("the server could not find the requested resource", "404 page not found")


class Code(enum.IntEnum):
    """What a command's exit code says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_YET = 3
    NEVER = 4
    INTERRUPTED = 130


MEANINGS = {
    Code.OK: "done; what was asked for holds",
    Code.FAILED: "the API server refused, could not be reached, or an object is not there",
    Code.USAGE: "the command line is wrong",
    Code.NOT_YET: "not yet: time is up, or the HyperJob waits for what may come by itself",
    Code.NEVER: "never by itself: the HyperJob has ended otherwise, or somebody must act",
    Code.INTERRUPTED: "Ctrl-C",
}


class FailureError(click.ClickException):
    """Ends a command with one line: `error: …`."""

    def __init__(self, message: str, *, code: Code = Code.FAILED) -> None:
        super().__init__(message)
        # click reads it from the instance, and declares it for the class
        vars(self)["exit_code"] = int(code)

    def show(self, file: object = None) -> None:
        """Print it as kubectl does."""
        click.echo(self.line(), err=True)

    def line(self) -> str:
        """Give the whole line."""
        return f"error: {self.message}"


class ServerError(FailureError):
    """Ends a command with what the API server said."""

    def line(self) -> str:
        """Give the whole line, which says itself whose error it is."""
        return self.message


def words(error: KubeError) -> str:
    """Say an API error as kubectl does, with the next step where it has one."""
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


def run(work: Coroutine[None, None, _T]) -> _T:
    """Run a command to its end; API errors end it in one line."""
    try:
        return asyncio.run(work)
    except ExceptionGroup as group:
        raise _ending(_first(group)) from None
    except (KubeError, ConfigError) as error:
        raise _ending(error) from None
    except KeyboardInterrupt:
        raise SystemExit(Code.INTERRUPTED) from None


def _ending(error: Exception) -> Exception:
    """Give what ends the command; a bug stays what it is."""
    if isinstance(error, KubeError):
        return ServerError(words(error))
    return FailureError(str(error)) if isinstance(error, ConfigError) else error


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Give the first of errors that came together, as tasks that run side by side raise them."""
    found: Exception = group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found
