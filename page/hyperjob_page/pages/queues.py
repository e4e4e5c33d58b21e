"""The page of queues: their tree, the use of each share, and the waiting HyperJobs."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperjob.client import usage
from hyperjob.client.usage import QueueUse
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.resources import Resources
from hyperjob_page.render import render
from hyperjob_page.rows import QueueLines, Row
from hyperjob_page.visitor import Scope
from hyperjob_page.world import LiveState
from hyperjob_queueing.queues import ROOT, Tree
from hyperjob_queueing.workload import OrderInQueue

_SHOWN: Final = 20
_LIVING: Final = [phase for phase in Phase if not phase.is_terminal]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBar:
    """The use of an accelerator in a queue; None for absent bounds. Widths and places are percents.

    The whole bar is the largest of use, share, guarantee and capability.
    """

    use: QueueUse
    guarantee: int | None
    borrowed: int
    own_width: float
    borrowed_width: float
    share_at: float | None
    guarantee_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNode:
    """A queue; `problem` is why it takes no jobs.

    `line` has place and row of the first of `length` HyperJobs that wait in the queue; `hidden`
    HyperJobs between them are outside the visitor's scope.
    """

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
    line: Sequence[tuple[int, Row]]
    length: int
    hidden: int


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """All queues."""

    world: LiveState = field(compare=False)
    scope: Scope

    title = "Queues"
    section = "queues"
    template = "parts.html"

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("hyperjobs", "clusters", "queues")

    async def parts(self) -> Mapping[str, str]:
        """Return a section for each queue as HTML."""
        world, scope = self.world, self.scope
        found: list[QueueNode] = []
        if scope.queues:
            tree = usage.tree_of(world.queues, world.totals)
            uses = world.queue_uses(scope)
            phases = world.phases_by_queue(scope)
            found = nodes(tree, uses, world.rows, world.lines, phases, scope, world.colour)
        leader = world.leader
        return {
            "queues": render(
                "parts/queues.html",
                nodes=found,
                admission=leader.admission if leader is not None else "",
                readable=scope.queues and world.queues_readable,
            )
        }


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
    known = [name for name in _below(tree, ROOT) if name != ROOT]

    def node(name: str) -> QueueNode:
        mine = by_name.get(name, ())
        queue = tree.queues.get(name)
        guaranteed = queue.guarantee if queue is not None else {}
        leaf, trouble = not tree.children.get(name), tree.trouble(name)
        line = lines.line(name)
        seen, hidden = _visible(line, rows, scope)
        return QueueNode(
            name=name,
            depth=max(len(tree.path(name)) - 2, 0),
            colour=colour(name),
            state=mine[0].where if mine else (queue.state if queue is not None else ""),
            problem=trouble.text if leaf and trouble is not None else "",
            weight=queue.weight if queue is not None else 1,
            fifo=queue.fifo if queue is not None else False,
            leaf=leaf,
            bars=[_queue_bar(use, guaranteed) for use in mine if _matters(use)],
            phases=[(str(phase), each) for phase in _LIVING if (each := phases[name, str(phase)])],
            line=seen,
            length=len(line),
            hidden=hidden,
        )

    return [node(name) for name in (*known, *sorted(by_name.keys() - set(known)))]


def _visible(
    line: Sequence[OrderInQueue], rows: Mapping[str, Row], scope: Scope
) -> tuple[list[tuple[int, Row]], int]:
    """Return the first HyperJobs of a line that a visitor may see, with their places among all.

    Return too the number of hidden HyperJobs between them.
    """
    seen: list[tuple[int, Row]] = []
    hidden = 0
    for place, order in enumerate(line, start=1):
        if len(seen) == _SHOWN:
            break
        row = rows.get(order.key)
        if row is None or not scope.includes(row.summary.namespace):
            hidden += 1
        else:
            seen.append((place, row))
    return seen, hidden


def _below(tree: Tree, name: str) -> list[str]:
    """Return a queue and all queues below it, parents first."""
    found = [name]
    for child in tree.children.get(name, ()):
        found += _below(tree, child)
    return found


def _matters(use: QueueUse) -> bool:
    return bool(use.accelerator) and bool(
        use.used or use.waiting or use.share or use.deserved or use.capability
    )


def _queue_bar(use: QueueUse, guaranteed: Resources) -> QueueBar:
    """Return the bar of an accelerator; what is used beyond the share is borrowed."""
    guarantee = guaranteed.get(use.accelerator)
    least = None if guarantee is None else guarantee // NANO
    share = use.share or 0
    borrowed = max(0, use.used - share) if use.share is not None else 0
    limit = use.capability if use.capability is not None else 0
    whole = max(use.used, share, limit, least or 0, 1)

    def at(number: int) -> float:
        return round(100 * number / whole, 2)

    return QueueBar(
        use=use,
        guarantee=least,
        borrowed=borrowed,
        own_width=at(use.used - borrowed),
        borrowed_width=at(borrowed),
        share_at=None if use.share is None else at(use.share),
        guarantee_at=None if least is None else at(least),
    )
