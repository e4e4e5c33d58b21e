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


def _removed(error: click.UsageError) -> str:
    """Return what to use in place of a removed option; empty for other errors."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    from hyperjob_core.removed import removed_option

    path: list[str] = []
    context: click.Context | None = error.ctx
    while context is not None and context.parent is not None:
        path.insert(0, context.command.name or "")
        context = context.parent
    return removed_option(" ".join(path), error.option_name)


@contextmanager
def ended_in_one_way() -> Iterator[None]:
    """Print click's own errors in the form of this program's errors."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            raise
        raise _UsageError(_removed(error) or error.format_message(), error.ctx) from None
    except click.ClickException as error:
        if type(error).show is not click.ClickException.show:
            raise
        ending = _Error(error.format_message())
        vars(ending)["exit_code"] = error.exit_code
        raise ending from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
