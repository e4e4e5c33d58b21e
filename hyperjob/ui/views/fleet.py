"""The accelerators of clusters: used by each HyperJob, reserved, free or unusable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.client.usage import ClusterUse
from hyperjob.ui.holdings import Holding
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, condition, mapping, string

_NAMED: Final = 5
_DRAWN: Final = 24
"""Number of HyperJobs with a segment of their own; the others of a queue share a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarSegment:
    """A segment of a bar; `kind` is used, reserved, other, free or lost.

    `key` is the HyperJob, empty for several or none; `start` and `width` are percents.
    """

    kind: str
    label: str
    number: int
    start: float = 0.0
    width: float = 0.0
    key: str = ""
    queue: str = ""
    colour: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An accelerator of a cluster, or of all clusters; None where the status has no value."""

    accelerator: str
    total: int | None
    used: int
    reserved: int
    other: int
    free: int
    segments: Sequence[BarSegment]

    @property
    def busy(self) -> int:
        """Return the percentage in use or reserved."""
        taken = self.used + self.reserved + self.other
        return round(100 * taken / self.total) if self.total else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCard:
    """A cluster; `trouble` is why it is not Ready. `hyperjobs` are the largest of `count`."""

    name: str
    ready: bool
    trouble: str
    place: str
    bars: Sequence[Bar]
    hyperjobs: Sequence[BarSegment]
    count: int


Taken = Callable[[str], Sequence[Holding]]
"""Returns the HyperJobs' parts of an accelerator of the cluster."""

Colour = Callable[[str], int]


def totals(found: Sequence[ClusterCard]) -> list[Bar]:
    """Return a bar for each accelerator, summed over clusters, by queue; the largest first."""
    by_name: dict[str, list[tuple[ClusterCard, Bar]]] = {}
    for card in found:
        for bar in card.bars:
            if bar.accelerator:
                by_name.setdefault(bar.accelerator, []).append((card, bar))
    bars = [_total(name, each) for name, each in by_name.items()]
    return sorted(bars, key=lambda bar: (-(bar.total or 0), bar.accelerator))


def _total(name: str, found: Sequence[tuple[ClusterCard, Bar]]) -> Bar:
    queues: dict[tuple[str, int], int] = {}
    used = reserved = other = free = lost = 0
    for card, bar in found:
        for segment in bar.segments:
            if segment.kind == "used":
                where = segment.queue, segment.colour
                queues[where] = queues.get(where, 0) + segment.number
        used += bar.used
        reserved += bar.reserved
        other += bar.other
        free += bar.free if card.ready else 0
        lost += bar.free if not card.ready else 0
    parts = [
        BarSegment(kind="used", label=f"queue {queue}", number=number, queue=queue, colour=colour)
        for (queue, colour), number in sorted(queues.items(), key=lambda item: -item[1])
    ]
    parts += _rest(reserved=reserved, other=other, free=free)
    if lost:
        parts.append(BarSegment(kind="lost", label="on clusters that are not ready", number=lost))
    return Bar(
        accelerator=name,
        total=used + reserved + other + free + lost,
        used=used,
        reserved=reserved,
        other=other,
        free=free,
        segments=_placed(parts),
    )


def card_of(
    cluster: Object, uses: Sequence[ClusterUse], taken: Taken, colour: Colour
) -> ClusterCard:
    """Describe one cluster; `uses` are those of this cluster."""
    name = string(at(cluster, "metadata", "name"))
    ready = condition(mapping(cluster.get("status")), "Ready")
    is_ready = ready.get("status") == "True"
    why = string(ready.get("message")) or string(ready.get("reason")) or "its status has no reason"
    spec = mapping(cluster.get("spec"))
    place = [string(spec.get(word)) for word in ("provider", "region", "zone")]
    bars = [_bar(use, taken(use.accelerator), colour, ready=is_ready) for use in uses]
    parts = [part for use in uses for part in taken(use.accelerator)]
    keys: dict[str, BarSegment] = {}
    for part in sorted(parts, key=lambda part: (-(part.running + part.reserved), part.key)):
        before = keys.get(part.key)
        number = part.running + part.reserved + (before.number if before else 0)
        keys[part.key] = BarSegment(
            kind="used" if part.running else "reserved",
            label=part.key,
            number=number,
            key=part.key,
            queue=part.queue,
            colour=colour(part.queue),
        )
    return ClusterCard(
        name=name,
        ready=is_ready,
        trouble="" if is_ready else why,
        place=" · ".join(word for word in place if word),
        bars=bars,
        hyperjobs=list(keys.values())[:_NAMED],
        count=len(keys),
    )


def _bar(use: ClusterUse, parts: Sequence[Holding], colour: Colour, *, ready: bool) -> Bar:
    running = sum(part.running for part in parts)
    reserved = sum(part.reserved for part in parts)
    other = max(0, (use.used or 0) - running)
    total = use.allocatable
    free = max(0, (total or 0) - running - reserved - other)
    segments = [*_drawn(parts, colour), *_rest(reserved=reserved, other=other, free=free)]
    if not ready:
        segments = [each for each in segments if each.kind != "free"]
        segments.append(BarSegment(kind="lost", label="not ready", number=free))
    return Bar(
        accelerator=use.accelerator,
        total=total,
        used=running,
        reserved=reserved,
        other=other,
        free=free,
        segments=_placed(segments),
    )


def _drawn(parts: Sequence[Holding], colour: Colour) -> list[BarSegment]:
    """Return the segments, ordered by queue; the largest HyperJobs have their own segment."""
    found = sorted(
        (part for part in parts if part.running), key=lambda part: (-part.running, part.key)
    )
    segments = [
        BarSegment(
            kind="used",
            label=part.key,
            number=part.running,
            key=part.key,
            queue=part.queue,
            colour=colour(part.queue),
        )
        for part in found[:_DRAWN]
    ]
    more: dict[str, list[Holding]] = {}
    for part in found[_DRAWN:]:
        more.setdefault(part.queue, []).append(part)
    segments += [
        BarSegment(
            kind="used",
            label=f"{len(members)} more of queue {queue}",
            number=sum(part.running for part in members),
            queue=queue,
            colour=colour(queue),
        )
        for queue, members in more.items()
    ]
    return sorted(segments, key=lambda segment: segment.queue)


def _rest(*, reserved: int, other: int, free: int) -> list[BarSegment]:
    found = [
        BarSegment(kind="reserved", label="reserved for HyperJobs that start", number=reserved),
        BarSegment(kind="other", label="other work", number=other),
        BarSegment(kind="free", label="free", number=free),
    ]
    return [segment for segment in found if segment.number]


def _placed(segments: Sequence[BarSegment]) -> list[BarSegment]:
    """Return the segments with start and width in the bar."""
    total = sum(segment.number for segment in segments) or 1
    found: list[BarSegment] = []
    start = 0.0
    for segment in segments:
        if segment.number:
            width = 100 * segment.number / total
            found.append(
                BarSegment(
                    kind=segment.kind,
                    label=segment.label,
                    number=segment.number,
                    start=round(start, 3),
                    width=round(width, 3),
                    key=segment.key,
                    queue=segment.queue,
                    colour=segment.colour,
                )
            )
            start += width
    return found
