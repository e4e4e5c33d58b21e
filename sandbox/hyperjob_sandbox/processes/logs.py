"""Read the log of a container for a request of `kubectl logs`.

A log is in the format of CRI, one line `TIME STREAM F TEXT` each; its older half is in `PATH.1`.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final, Self

from hyperjob_sandbox.apiserver import errors

_POLL_SECONDS: Final = 0.1
_BLOCK: Final = 1 << 16


_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
"""What an API server reads as true in a query; Python's client sends True."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The query of a `log` request; `tail` None means all lines."""

    container: str = ""
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    limit_bytes: int | None = None
    since: str = ""

    @classmethod
    def parse(cls, query: dict[str, str]) -> Self:
        """Read the query of a request; raises ApiError 400."""
        since = query.get("sinceTime", "")
        if seconds := _number(query, "sinceSeconds", least=1):
            moment = datetime.now(UTC) - timedelta(seconds=seconds)
            since = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return cls(
            container=query.get("container", ""),
            previous=query.get("previous") in _TRUE,
            follow=query.get("follow") in _TRUE,
            timestamps=query.get("timestamps") in _TRUE,
            tail=_number(query, "tailLines", least=0),
            limit_bytes=_number(query, "limitBytes", least=1),
            since=since.removesuffix("Z"),
        )


def read(path: Path, options: LogOptions) -> bytes:
    """Return the requested lines of a log."""
    return _requested(_content(_older(path)) + _content(path), options)


def _requested(data: bytes, options: LogOptions) -> bytes:
    chosen = [line for line in data.split(b"\n")[:-1] if _time(line) >= options.since]
    if options.tail is not None:
        chosen = chosen[len(chosen) - min(options.tail, len(chosen)) :]
    data = b"".join(_shown(line, options) for line in chosen)
    return data if options.limit_bytes is None else data[: options.limit_bytes]


async def follow(
    path: Path, options: LogOptions, *, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the requested lines and then each new line, until the container has ended.

    The file stays open, as that of a kubelet: its last lines are there after it was removed.
    """
    with contextlib.ExitStack() as opened:
        file = _open(path, opened)
        written = b"" if file is None else file.read()
        position = written.rfind(b"\n") + 1  # the log may grow after this read
        first = _requested(_content(_older(path)) + written[:position], options)
        rest = written[position:]
        if first:
            yield first
        while True:
            over = is_over()
            file = file or _open(path, opened)
            while file is not None:
                while data := file.read(_BLOCK):
                    *lines, rest = (rest + data).split(b"\n")
                    if lines:
                        yield b"".join(_shown(line, options) for line in lines)
                if not path.exists() or path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    break
                file = _open(path, opened)  # the log was rotated
            if over:
                return
            await asyncio.sleep(_POLL_SECONDS)


def _open(path: Path, opened: contextlib.ExitStack) -> BinaryIO | None:
    """Open a log in place of the one before; None if there is none."""
    opened.close()
    with contextlib.suppress(FileNotFoundError):
        return opened.enter_context(path.open("rb"))
    return None


def _older(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _time(line: bytes) -> str:
    return line[:29].decode(errors="replace")


def _shown(line: bytes, options: LogOptions) -> bytes:
    stamp, _, rest = line.partition(b" ")
    text = rest.split(b" ", 2)[-1] + b"\n"
    return stamp + b" " + text if options.timestamps else text


def _number(query: dict[str, str], name: str, *, least: int) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit() or int(text) < least:
        raise errors.bad_request(f"{name}: Invalid value: {text}: must be at least {least}")
    return int(text)
