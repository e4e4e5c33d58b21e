"""What the processes of a training do that makes no steps, from the stacks that they print. Pure.

`hyperjob.sdk.progress` prints the stacks of a process whose steps stop to come. A tenant writes the
log: a line may contain anything, and a stack that is not one is ignored.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import orjson

from hyperjob_core.api.wire import integer, mapping
from hyperjob_core.text import listed, printable, shortened

_OBJECT: Final = re.compile(rb'\{"hyperjob": ?\{"stacks":')
_LIBRARIES: Final = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ")
_NAME: Final = 60
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        """Return the function with the name of its file and the line."""
        return f"{self.function} ({PurePath(self.file).name}:{self.line})"

    @property
    def is_own(self) -> bool:
        """Return whether the call is in a file of the program, not of a library."""
        return not any(part in self.file for part in _LIBRARIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The stack of a process's main thread, the last call first; `rank` is that of the launcher.

    `world` is the number of ranks.
    """

    cluster: str
    pod: str
    pid: int
    frames: tuple[Frame, ...]
    rank: int | None = None
    world: int | None = None

    @property
    def place(self) -> str:
        """Return where the process is: its last call, and its last call in the program's files."""
        last = self.frames[0]
        own = next((frame for frame in self.frames if frame.is_own), last)
        return str(last) if own is last else f"{last}, called from {own}"


def parse_stack(line: bytes, *, cluster: str, pod: str) -> Stack | None:
    """Parse a line of a log; None if it is no stack."""
    start = _OBJECT.search(line)
    if start is None:
        return None
    try:
        document = orjson.loads(line[start.start() : line.rfind(b"}") + 1])
    except ValueError:
        return None
    fields = mapping(mapping(document.get("hyperjob")).get("stacks"))
    threads = fields.get("threads")
    first = threads[0] if isinstance(threads, list) and threads else None
    frames = tuple(_frames(first if isinstance(first, list) else []))
    if not frames:
        return None
    return Stack(
        cluster=cluster,
        pod=pod,
        pid=integer(fields.get("pid")) or 0,
        frames=frames,
        rank=integer(fields.get("rank")),
        world=integer(fields.get("of")),
    )


def _frames(raw: Sequence[object]) -> Iterable[Frame]:
    for each in raw:
        if isinstance(each, list) and len(each) == 3:
            function, file, line = each
            if isinstance(function, str) and isinstance(file, str) and isinstance(line, int):
                yield Frame(_clean(function), _clean(file), line)


def _clean(text: str) -> str:
    return shortened(printable(text).replace("\n", " "), _NAME)


def comparison(stacks: Iterable[Stack]) -> str:
    """Return in words where the processes are, most of them first; empty without a stack.

    Of each process the last stack counts.
    """
    newest: Mapping[object, Stack] = {(each.cluster, each.pod, each.pid): each for each in stacks}
    places: dict[str, list[Stack]] = {}
    for each in newest.values():
        places.setdefault(each.place, []).append(each)
    groups = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    if not groups:
        return ""
    worlds = {each.world for each in newest.values()}
    world = worlds.pop() if len(worlds) == 1 else None
    ranked = all(each.rank is not None for each in newest.values())
    unit = "ranks" if ranked else "processes"
    total = world if ranked and world else len(newest)
    texts = []
    for place, members in groups[:_SHOWN]:
        if members is groups[0][1] and len(members) > 1:
            texts.append(f"{len(members)} of {total} {unit} are in {place}")
        else:
            verb = "is" if len(members) == 1 else "are"
            texts.append(f"{_named(members, ranked=ranked)} {verb} in {place}")
    if len(groups) > _SHOWN:
        texts.append(f"the others are in {len(groups) - _SHOWN} more places")
    if ranked and world:
        texts += _silent(newest.values(), world)
    return "; ".join(texts)


def _named(members: Sequence[Stack], *, ranked: bool) -> str:
    if not ranked:
        return f"pod {listed(sorted({f'{each.cluster}/{each.pod}' for each in members}))}"
    ranks = [str(each.rank) for each in sorted(members, key=lambda each: each.rank or 0)]
    clusters = listed(sorted({each.cluster for each in members}))
    return f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks, shown=8)} in {clusters}"


def _silent(stacks: Iterable[Stack], world: int) -> list[str]:
    """Return the ranks without a stack: their processes are stopped, gone or not watched."""
    ranks = {each.rank for each in stacks}
    missing = world - len(ranks)
    if missing <= 0:
        return []
    names = [str(rank) for rank in range(min(world, 100_000)) if rank not in ranks]
    return [f"no stack from rank{'s' if missing > 1 else ''} {listed(names, shown=8)}"]
