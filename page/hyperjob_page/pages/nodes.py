"""The nodes of one cluster, read in the member with the visitor's own rights."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from hyperjob.client.members import views_of
from hyperjob.client.nodeuse import NodeUse
from hyperjob.client.nodeuse import nodes as uses_of
from hyperjob_core.api.wire import at, string
from hyperjob_engine.model.members import NodeState
from hyperjob_page.pages.answers import Context, streamed
from hyperjob_page.pages.fleet import Bar, BarSegment, placed
from hyperjob_page.render import render
from hyperjob_page.visitor import VISITOR, Visitor

_SHOWN: Final = 500
_FREE, _OURS, _OTHERS = "free", "with pods of HyperJobs", "with other work only"
_STATES: Final[Mapping[str, str]] = {
    NodeState.CORDONED: "cordoned",
    NodeState.NOT_READY: "not ready",
}


@dataclass(frozen=True, slots=True)
class NodesPage:
    """The frame of the page of a cluster."""

    name: str

    section = "fleet"

    @property
    def title(self) -> str:
        """Return the heading."""
        return f"Nodes of {self.name}"


@dataclass(frozen=True, slots=True)
class NodeRow:
    """An accelerator of a node, and what holds it."""

    use: NodeUse
    bar: Bar


def about_clusters(context: Context) -> Sequence[web.RouteDef]:
    """Return the route of a cluster's nodes."""

    async def show(request: web.Request) -> web.StreamResponse:
        visitor, name = request[VISITOR], request.match_info["name"]
        known = {string(at(each, "metadata", "name")) for each in context.world.clusters}
        if not visitor.scope.clusters or name not in known:
            raise web.HTTPNotFound(text=f"There is no cluster {name}, or you may not see it.")
        frame = render(
            "nodes.html",
            page=NodesPage(name),
            world=context.world,
            visitor=visitor,
        )
        return await streamed(request, str(frame), _body(context, visitor, name))

    return [web.get("/clusters/{name}", show)]


async def _body(context: Context, visitor: Visitor, name: str) -> str:
    """Read the nodes of a cluster with the visitor's rights; raises KubeError."""
    views, errors = await views_of(visitor.kube, [name])
    if name in errors:
        raise errors[name]
    rows = [
        row for row in context.world.rows.values() if visitor.scope.includes(row.summary.namespace)
    ]
    queues = {row.key: row.queues[0] if row.queues else "" for row in rows}
    uses = uses_of(views, (row.summary for row in rows))

    def colour(key: str) -> int:
        return context.world.colour(queues.get(key, ""))

    return str(
        render(
            "parts/nodes.html",
            states=states(uses),
            rows=[NodeRow(use, bar_of(use, queues, colour)) for use in uses[:_SHOWN]],
            hidden=max(0, len(uses) - _SHOWN),
            waiting=len(views[name].waiting),
        )
    )


def states(uses: Iterable[NodeUse]) -> list[tuple[str, int]]:
    """Return the number of nodes in each state, of those of its accelerators the first that holds.

    They are: takes no pods, has pods of HyperJobs, has other work only, is free.
    """
    found: dict[str, str] = {}
    order = (_FREE, _OTHERS, _OURS, *_STATES.values())
    for use in uses:
        if use.state in _STATES:
            state = _STATES[use.state]
        elif use.hyperjobs:
            state = _OURS
        else:
            state = _OTHERS if use.others else _FREE
        found[use.node] = max(found.get(use.node, _FREE), state, key=order.index)
    numbers = Counter(found.values())
    shown = (_FREE, _OURS, _OTHERS, *_STATES.values())
    return [(state, numbers[state]) for state in shown if numbers[state]]


def bar_of(use: NodeUse, queues: Mapping[str, str], colour: Callable[[str], int]) -> Bar:
    """Return the bar of an accelerator of a node: each HyperJob, other work, and the free rest."""
    ours = [
        BarSegment(
            kind="used",
            label=key,
            number=number,
            key=key,
            queue=queues.get(key, ""),
            colour=colour(key),
        )
        for key, number in use.hyperjobs.items()
    ]
    usable = use.state not in _STATES
    rest = [
        BarSegment(kind="other", label="other work", number=use.others),
        BarSegment(
            kind="free" if usable else "lost",
            label="free" if usable else _STATES[use.state],
            number=use.free,
        ),
    ]
    return Bar(
        accelerator=use.accelerator,
        total=use.allocatable,
        used=sum(use.hyperjobs.values()),
        reserved=0,
        other=use.others,
        free=use.free if usable else 0,
        segments=placed([*ours, *(each for each in rest if each.number)]),
    )
