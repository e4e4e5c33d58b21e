"""The clients of the background tasks, from the options of the controller."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from hyperjob_controller.options import Options
from hyperjob_controller.splitting.client import Splitter
from hyperjob_controller.tuning import SPLITTER_SECONDS


def splitter_of(
    options: Options,
    *,
    answered: Callable[[str], None],
    now: Callable[[], datetime],
    faulty: Callable[[BaseException], None],
) -> Splitter | None:
    """Return the client of the external splitter; None without `--splitter-url`."""
    if options.splitter_url is None:
        return None
    return Splitter(
        options.splitter_url,
        time_limit=SPLITTER_SECONDS,
        answered=answered,
        now=now,
        faulty=faulty,
        token_file=_path(options.splitter_token_file),
        ca_file=_path(options.splitter_ca_file),
    )


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
