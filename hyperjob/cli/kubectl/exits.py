"""How commands end: exit codes, and errors in kubectl's words. Decides nothing, prints only."""

import asyncio
import enum
from collections.abc import Coroutine
from typing import TypeVar

import click

from hyperjob.client.errors import ClientError, NeverError, NotYetError, words
from hyperjob.kube.errors import ConfigError, KubeError

_T = TypeVar("_T")


class Code(enum.IntEnum):
    """What a command's exit code says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_YET = 3
    NEVER = 4
    INTERRUPTED = 130


MEANINGS = {
    Code.OK: "done",
    Code.FAILED: "the API server refuses or does not answer, or an object does not exist",
    Code.USAGE: "the command line is wrong",
    Code.NOT_YET: "not yet: time is up, or the HyperJob waits for room or for its turn",
    Code.NEVER: "never by itself: the HyperJob has ended in another phase, or a person must act",
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


def run(work: Coroutine[None, None, _T]) -> _T:
    """Run a command to its end; API errors end it in one line."""
    try:
        return asyncio.run(work)
    except ExceptionGroup as group:
        raise _ending(_first(group)) from None
    except (KubeError, ConfigError, ClientError) as error:
        raise _ending(error) from None
    except KeyboardInterrupt:
        raise SystemExit(Code.INTERRUPTED) from None


def _ending(error: Exception) -> Exception:
    """Give what ends the command; a bug stays what it is."""
    if isinstance(error, KubeError):
        return ServerError(words(error))
    if isinstance(error, ClientError):
        return failure(error)
    return FailureError(str(error)) if isinstance(error, ConfigError) else error


def failure(error: ClientError) -> FailureError:
    """Give the line and the exit code of an error of the client library."""
    match error:
        case NotYetError():
            code = Code.NOT_YET
        case NeverError():
            code = Code.NEVER
        case _:
            code = Code.FAILED
    return FailureError(str(error), code=code)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Give the first of errors that came together, as tasks that run side by side raise them."""
    found: Exception = group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found
