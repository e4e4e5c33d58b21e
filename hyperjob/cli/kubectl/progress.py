"""Show one changing line on a terminal while a command waits."""

from collections.abc import Iterator
from contextlib import contextmanager

from hyperjob.cli.kubectl import output as out
from hyperjob.client.waiting import Progress, silent


@contextmanager
def progress(*, shown: bool) -> Iterator[Progress]:
    """Show the line on standard error where that is a terminal, and nothing elsewhere."""
    console = out.console(stderr=True)
    if not shown or not console.is_terminal or console.is_dumb_terminal:
        yield silent
        return
    from rich.status import Status

    with Status("", console=console) as status:
        yield status.update
