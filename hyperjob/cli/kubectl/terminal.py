"""What every command does with its output and its errors: they end as kubectl's do.

Control characters in names, messages, annotations and logs let the author of a text act on the
reader's terminal: copy to the clipboard, set the title, hide lines. All output of a command,
standard error too, is escaped here. This module imports click alone, since every command does.
"""

import codecs
import errno
import io
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

import click

from hyperjob_core.text import printable

_SIMPLE: Final = {"├": "|", "└": "`", "│": "|", "─": "-", "…": "...", "\u03bc": "u", "\u00b5": "u"}
"""The text for characters of our own output that an encoding lacks."""
_HANDLER: Final = "hyperjob-simple"


def _simple(error: UnicodeError) -> tuple[str, int]:
    """Return simple text for what a stream cannot encode; a name keeps its length."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_SIMPLE.get(each, "?") for each in text), error.end


codecs.register_error(_HANDLER, _simple)


class Escaped:
    """A stream that escapes control characters on their way to another; all else is the other's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - an attribute of any stream
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write a text and return its length before escaping."""
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        self.write("".join(lines))


@contextmanager
def escaped() -> Iterator[None]:
    """Escape the output of the block to standard output and standard error.

    Characters that the encoding of a stream lacks, as ASCII does, become simple ones.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)
    if before[0] is not None:
        sys.stdout = cast("TextIO", Escaped(untouched(before[0])))
    if before[1] is not None:
        sys.stderr = cast("TextIO", Escaped(untouched(before[1])))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def untouched(stream: TextIO) -> TextIO:
    """Return the stream without escaping, for text that is escaped already and for raw logs."""
    found: object = stream
    return found.stream if isinstance(found, Escaped) else stream


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def written() -> Iterator[None]:
    """Flush the output of the block; a closed pipe ends the process by SIGPIPE."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # a process without standard output
                sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        from hyperjob.cli.kubectl.exits import FailureError

        # What is left in the buffer would fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FailureError(f"cannot write the output: {error.strerror}") from None


_INTERRUPTED = 130


class _UsageError(click.UsageError):
    def show(self, file: object = None) -> None:
        """Print the error and the command that shows the usage."""
        click.echo(f"error: {self.format_message()}", err=True)
        if self.ctx is not None:
            click.echo(f"See '{self.ctx.command_path} --help' for usage.", err=True)


@contextmanager
def ended_in_one_way() -> Iterator[None]:
    """Print click's own errors in the form of this program's errors."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            raise
        raise _UsageError(error.format_message(), error.ctx) from None
    except click.ClickException as error:
        if type(error).show is not click.ClickException.show:
            raise
        from hyperjob.cli.kubectl.exits import FailureError

        raise FailureError(error.format_message(), code=error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
