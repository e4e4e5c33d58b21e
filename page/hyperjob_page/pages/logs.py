"""The logs of a HyperJob's pods, read with the visitor's own rights."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from hyperjob.client.errors import ClientError, words
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.reading import ChosenLogs, kept_lines
from hyperjob.client.summary import read
from hyperjob_core.api.lines import LogLine as Line
from hyperjob_core.api.wire import natural
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import printable, shortened

SIZES: Final = (50, 200, 1000)
_LINE: Final = 4000
_LINES: Final = 2000
_ANSI: Final = re.compile(r"\x1b\[[0-9;:]*m")


SINCE: Final[Mapping[str, int]] = {"5m": 300, "1h": 3600, "1d": 86400}
"""Seconds before now, by their names."""
_LEVELS: Final[Mapping[str, re.Pattern[str]]] = {
    "error": re.compile(r"\b(?:ERROR|CRITICAL|FATAL|[A-Z]\w*(?:Error|Exception):|Traceback)"),
    "warning": re.compile(r"\bWARN(?:ING)?\b|\b[A-Z]\w*Warning:"),
    "debug": re.compile(r"\b(?:DEBUG|TRACE)\b"),
}

ShownLine = tuple[str, str, str]
"""Time and source of a line, its text, and its level as a CSS class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selected logs, and the number of last lines of each."""

    job: str = ""
    cluster: str = ""
    task: str = ""
    container: str = ""
    rank: str = ""
    tail: int = 50
    since: str = ""
    search: str = ""
    progress: bool = False
    attempt: int | None = None

    @classmethod
    def of(cls, request: web.Request) -> "Choice":
        """Parse the parameters of a request."""
        given = request.query
        tail = given.get("tail", "")
        return cls(
            job=given.get("job", "")[:253],
            cluster=given.get("cluster", "")[:253],
            since=given.get("since", "") if given.get("since", "") in SINCE else "",
            search=given.get("search", "")[:200],
            progress=bool(given.get("progress")),
            attempt=natural(given.get("attempt", "")[:9]) or None,
            task=given.get("task", "")[:63],
            container=given.get("container", "")[:63],
            rank=", ".join(map(str, ranks_of(given.get("rank", "")))),
            tail=int(tail) if tail in {str(size) for size in SIZES} else SIZES[0],
        )

    @property
    def wanted(self) -> Wanted:
        """Return the selection in the form of the client library."""
        return Wanted(
            jobs=(self.job,) if self.job else (),
            cluster=self.cluster or None,
            task=self.task or None,
            container=self.container or None,
            ranks=frozenset(ranks_of(self.rank)) or None,
            attempt=self.attempt,
            tail=self.tail,
            since=SINCE.get(self.since),
            hides=not self.progress,
        )

    def line(self, source: ContainerLog, raw: bytes) -> ShownLine | None:
        """Return a line to show; None for one without the searched words."""
        line = Line.of(raw)
        text = text_of(line.text)
        if self.search.lower() not in text.lower():
            return None
        when = f"{line.moment:%H:%M:%S} " if line.time else ""
        level = next((name for name, words in _LEVELS.items() if words.search(text)), "")
        rank = "" if source.rank is None else f" rank {source.rank}"
        return f"{when}{source.label}{rank}", text, level


def ranks_of(text: str) -> list[int]:
    """Return the ranks in a text such as `0, 3`, at most 64."""
    found = (natural(word) for word in re.split(r"[,\s]+", text[:512]))
    return [rank for rank in found if rank is not None][:64]


def text_of(line: bytes) -> str:
    """Return a line as text without colours, with escaped controls, shortened to a maximum."""
    text = line[: _LINE * 4].decode(errors="replace").rstrip("\r")
    return printable(shortened(_ANSI.sub("", text), _LINE))


async def last_lines(
    kube: Kube, namespace: str, name: str, choice: Choice
) -> tuple[list[ShownLine], list[str]]:
    """Return the last lines of each log in the order of time, and remarks about unread logs."""
    remarks: list[str] = []
    found: list[ShownLine] = []
    with errors_told(remarks.append):
        summary = read(await kube.get(HYPERJOBS, name, namespace=namespace))
        if (kept := kept_lines(summary, choice.wanted)) is not None:
            lines_of = (choice.line(source, raw) for source, raw in kept[-_LINES:])
            return [line for line in lines_of if line is not None], remarks
        standing = await ChosenLogs.of(kube, summary, choice.wanted, say=remarks.append)
        async with aclosing(standing.lines()) as lines:
            async for source, raw in lines:
                if len(found) >= _LINES:
                    remarks.append(f"only the first {_LINES} lines are shown: choose a sub-job")
                    break
                if (line := choice.line(source, raw)) is not None:
                    found.append(line)
    return found, remarks


@contextlib.contextmanager
def errors_told(say: Callable[[str], None]) -> Iterator[None]:
    """Say an error of the client library or of the API server, which ends the block."""
    try:
        yield
    except ClientError as error:
        say(str(error))
    except KubeError as error:
        say(words(error))
