"""The tree of queues: share, use and waiting HyperJobs of each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.client.usage import QueueUse
from hyperjob.ui.lines import QueueLines
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import Scope
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.text import shortened
from hyperjob_engine.queueing.queues import ROOT, Tree
from hyperjob_engine.reasons.waiting import trouble_of_queue
from hyperjob_engine.resources import Resources

_SHOWN: Final = 20
_MESSAGE: Final = 600
_LIVING: Final = [phase for phase in Phase if not phase.is_terminal]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBar:
    """An accelerator in a queue; None for absent bounds. Widths and places are percents."""

    accelerator: str
    used: int
    share: int | None
    guarantee: int | None
    deserved: int | None
    capability: int | None
    waiting: int
    borrowed: int
    own_width: float
    borrowed_width: float
    share_at: float | None
    guarantee_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInLine:
    """A HyperJob that waits in a queue."""

    place: int
    key: str
    accelerators: Sequence[tuple[str, int]]
    phase: str
    reason: str
    message: str
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNode:
    """A queue; `problem` is why it takes no jobs. `line` has the first of `length` HyperJobs."""

    name: str
    depth: int
    colour: int
    state: str
    problem: str
    weight: int
    fifo: bool
    leaf: bool
    bars: Sequence[QueueBar]
    phases: Sequence[tuple[str, int]]
    line: Sequence[PlaceInLine]
    length: int
    hidden: int


def nodes(
    tree: Tree,
    uses: Sequence[QueueUse],
    rows: Mapping[str, Row],
    lines: QueueLines,
    phases: Counter[tuple[str, str]],
    scope: Scope,
    colour: Callable[[str], int],
) -> list[QueueNode]:
    """Return the queues, parents before children, then queues that do not exist."""
    by_name: dict[str, list[QueueUse]] = {}
    for use in uses:
        by_name.setdefault(use.queue, []).append(use)
    known = [name for name in _in_order(tree, ROOT) if name != ROOT]
    names = known + sorted(by_name.keys() - set(known))
    return [
        _node(name, tree, by_name.get(name, ()), rows, lines, phases, scope, colour)
        for name in names
    ]


def _in_order(tree: Tree, name: str) -> list[str]:
    found = [name]
    for child in tree.children.get(name, ()):
        found += _in_order(tree, child)
    return found


def _node(
    name: str,
    tree: Tree,
    uses: Sequence[QueueUse],
    rows: Mapping[str, Row],
    lines: QueueLines,
    phases: Counter[tuple[str, str]],
    scope: Scope,
    colour: Callable[[str], int],
) -> QueueNode:
    queue = tree.queues.get(name)
    leaf = not tree.children.get(name)
    line = lines.line(name)
    seen: list[PlaceInLine] = []
    hidden = 0
    for place, (_, _, key) in enumerate(line, start=1):
        if len(seen) == _SHOWN:
            break
        row = rows.get(key)
        if row is None or not scope.includes(row.summary.namespace):
            hidden += 1
            continue
        seen.append(_waiting(place, row))
    problem = trouble_of_queue(tree.trouble(name)) if leaf else ""
    return QueueNode(
        name=name,
        depth=max(len(tree.path(name)) - 2, 0),
        colour=colour(name),
        state=uses[0].state if uses else (queue.state if queue is not None else ""),
        problem=problem,
        weight=queue.weight if queue is not None else 1,
        fifo=queue.fifo if queue is not None else False,
        leaf=leaf,
        bars=[
            _bar(use, queue.guarantee if queue is not None else {}) for use in uses if _matters(use)
        ],
        phases=[(str(phase), each) for phase in _LIVING if (each := phases[name, str(phase)])],
        line=seen,
        length=len(line),
        hidden=hidden,
    )


def _matters(use: QueueUse) -> bool:
    return bool(use.accelerator) and bool(
        use.used or use.waiting or use.share or use.deserved or use.capability
    )


def _bar(use: QueueUse, guaranteed: Resources) -> QueueBar:
    guarantee = guaranteed.get(use.accelerator)
    least = None if guarantee is None else guarantee // NANO
    share = use.share or 0
    borrowed = max(0, use.used - share) if use.share is not None else 0
    limit = use.capability if use.capability is not None else 0
    whole = max(use.used, share, limit, least or 0, 1)

    def at(number: int | None) -> float | None:
        return None if number is None else round(100 * number / whole, 2)

    return QueueBar(
        accelerator=use.accelerator,
        used=use.used,
        share=use.share,
        guarantee=least,
        deserved=use.deserved,
        capability=use.capability,
        waiting=use.waiting,
        borrowed=borrowed,
        own_width=at(use.used - borrowed) or 0.0,
        borrowed_width=at(borrowed) or 0.0,
        share_at=at(use.share),
        guarantee_at=at(least),
    )


def _waiting(place: int, row: Row) -> PlaceInLine:
    summary = row.summary
    return PlaceInLine(
        place=place,
        key=row.key,
        accelerators=sorted(row.accelerators.items()),
        phase=summary.phase,
        reason=summary.reason,
        message=shortened(summary.message, _MESSAGE),
        created=summary.created,
    )
