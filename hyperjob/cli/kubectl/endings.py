"""Print every error of a command as kubectl does: `error: …` on standard error.

This module imports click alone, since every command imports it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import click

_INTERRUPTED = 130


class _UsageError(click.UsageError):
    def show(self, file: object = None) -> None:
        """Print the error and the command that shows the usage."""
        click.echo(f"error: {self.format_message()}", err=True)
        if self.ctx is not None:
            click.echo(f"See '{self.ctx.command_path} --help' for usage.", err=True)


class _Error(click.ClickException):
    def show(self, file: object = None) -> None:
        """Print the error."""
        click.echo(f"error: {self.format_message()}", err=True)


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
        ending = _Error(error.format_message())
        vars(ending)["exit_code"] = error.exit_code
        raise ending from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
