"""The exit codes of commands, and the errors that end a command, in kubectl's words."""

import asyncio
import enum
from collections.abc import Coroutine
from typing import TypeVar

import click

from hyperjob.client.errors import ClientError, NeverError, NotYetError, words
from hyperjob_core.kube.errors import ConfigError, KubeError

_T = TypeVar("_T")


class Code(enum.IntEnum):
    """The exit codes; MEANINGS describes each."""

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
    Code.NOT_YET: "time is up, or the HyperJob waits for free accelerators or for its queue",
    Code.NEVER: "the HyperJob has ended in another phase, or a person must act",
    Code.INTERRUPTED: "Ctrl-C",
}


class FailureError(click.ClickException):
    """Ends a command with one line: `error: …`."""

    prefix = "error: "

    def __init__(self, message: str, *, code: int = Code.FAILED) -> None:
        super().__init__(message)
        # click declares exit_code for the class and reads it from the instance
        vars(self)["exit_code"] = int(code)

    def show(self, file: object = None) -> None:
        """Print the error as kubectl does."""
        click.echo(f"{self.prefix}{self.message}", err=True)


class ServerError(FailureError):
    """Ends a command with the message of the API server, which begins with `Error from server`."""

    prefix = ""


def run(work: Coroutine[None, None, _T]) -> _T:
    """Run `work` and return its result; an API error ends the command in one line."""
    try:
        return asyncio.run(work)
    except ExceptionGroup as group:
        raise _ending(_first_error(group)) from None
    except (KubeError, ConfigError, ClientError) as error:
        raise _ending(error) from None
    except KeyboardInterrupt:
        raise SystemExit(Code.INTERRUPTED) from None


def _ending(error: Exception) -> Exception:
    """Return the exception that ends the command; other exceptions are bugs, and stay unchanged."""
    if isinstance(error, KubeError):
        return ServerError(words(error))
    if isinstance(error, ClientError):
        return failure(error)
    return FailureError(str(error)) if isinstance(error, ConfigError) else error


def failure(error: ClientError) -> FailureError:
    """Return the FailureError with message and exit code for an error of the client library."""
    codes = {NotYetError: Code.NOT_YET, NeverError: Code.NEVER}
    return FailureError(str(error), code=codes.get(type(error), Code.FAILED))


def _first_error(group: ExceptionGroup[Exception]) -> Exception:
    """Return the first error of a group, which concurrent tasks raise."""
    found: Exception = group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found
