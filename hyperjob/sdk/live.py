"""A bar and a table of a HyperJob that follow its changes: rich in terminals, HTML in notebooks."""

import sys
from typing import Any, Self

from hyperjob.client.summary import Summary
from hyperjob.sdk import render


class Screen:
    """The place of the table; elsewhere than in a terminal or a notebook nothing is shown."""

    def __init__(self) -> None:
        self._display: Any = None
        self._html: Any = None
        self._live: Any = None

    def __enter__(self) -> Self:
        if _in_notebook():
            self._html = sys.modules["IPython.display"].HTML
            self._display = sys.modules["IPython.display"].display(self._html(""), display_id=True)
        elif sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, summary: Summary) -> None:
        """Show a status in place of the one before."""
        if self._display is not None:
            self._display.update(self._html(render.html_of(summary)))
        if self._live is not None:
            self._live.update(render.rich_of(summary))


def _in_notebook() -> bool:
    """Return whether this Python is the kernel of a notebook, which is then imported already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
