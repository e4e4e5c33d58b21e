"""Use over time as areas of a chart: used and total numbers, by queue. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hyperjob.ui.charts.axis import TimeScale
from hyperjob.ui.history.use import SLOTS, Point, Series, together

_HEIGHT = 100
_LEAST = 0.05
"""Smallest use outside queues that is an area: smaller ones are differences of two means."""
_LAYERS = 12
"""Maximum number of queues with their own area in a chart; the others share an area."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """An area, `path` in a box of SLOTS by 100; `kind` is used, other or queue."""

    kind: str
    label: str
    colour: int
    path: str
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The use of an accelerator; `limit` is the line of the total number, as a path.

    `peak` is the largest mean of a slot, at `peak_at`. `mean` is the average use in percent, over
    the recorded time.
    """

    name: str
    accelerator: str
    layers: Sequence[Layer]
    limit: str
    top: int
    used: int
    total: int
    peak: str
    peak_at: str
    mean: int


def chart(series: Series, scale: TimeScale, queues: Sequence[tuple[Series, int]] = ()) -> Chart:
    """Return the chart of a series; with `queues` and their colours, an area for each queue."""
    points = series.points
    areas = (
        _areas(series, queues)
        if queues
        else [_Area("used", "used", -1, list(map(_used, points)), series.now[0])]
    )
    heights = [max(point) if point is not None else 0 for point in points]
    sums = [sum(area.at(slot) for area in areas) for slot in range(SLOTS)]
    top = max(math.ceil(max(*heights, *sums)), 1)
    peak = max(range(SLOTS), key=lambda slot: (_used(points[slot]) or 0, slot))
    (used, total), (spent, offered) = series.now, series.spent
    return Chart(
        name=series.name,
        accelerator=series.accelerator,
        layers=_layers(areas, top),
        limit=_limit_line([None if point is None else point[1] for point in points], top),
        top=top,
        used=used,
        total=total,
        peak=f"{round(_used(points[peak]) or 0, 1):g}",
        peak_at=_slot_text(scale, peak),
        mean=round(100 * spent / offered) if offered else 0,
    )


def fleet(
    clusters: Iterable[Series],
    queues: Iterable[Series],
    scale: TimeScale,
    colour: Callable[[str], int],
) -> list[Chart]:
    """Return a chart for each accelerator, summed over clusters; `queues` have no children."""
    by_name: dict[str, list[Series]] = {}
    for one in clusters:
        by_name.setdefault(one.accelerator, []).append(one)
    shares: dict[str, list[tuple[Series, int]]] = {}
    for one in queues:
        if any(_used(point) for point in one.points):
            shares.setdefault(one.accelerator, []).append((one, colour(one.name)))
    charts = [
        chart(together("", name, found), scale, shares.get(name, ()))
        for name, found in by_name.items()
    ]
    return sorted(charts, key=lambda one: (-one.total, one.accelerator))


@dataclass(frozen=True, slots=True)
class _Area:
    """An area above the one before it: its height in each slot, None without samples, and now."""

    kind: str
    label: str
    colour: int
    heights: Sequence[float | None]
    now: int

    def at(self, slot: int) -> float:
        return self.heights[slot] or 0


def _areas(whole: Series, queues: Sequence[tuple[Series, int]]) -> list[_Area]:
    """Return the largest queues, the other queues as one, and the use outside queues."""
    order = sorted(queues, key=lambda one: -sum(_used(point) or 0 for point in one[0].points))
    found = [
        _Area("queue", f"queue {one.name}", number, list(map(_used, one.points)), one.now[0])
        for one, number in order[:_LAYERS]
    ]
    if more := order[_LAYERS:]:
        rest = together("", "", [one for one, _ in more])
        heights = list(map(_used, rest.points))
        found.append(_Area("queue", f"{len(more)} more queues", -1, heights, rest.now[0]))
    named = [sum(area.at(slot) for area in found) for slot in range(SLOTS)]
    others = [
        None if point is None else max(0, point[0] - each)
        for point, each in zip(whole.points, named, strict=True)
    ]
    if any(other is not None and other >= _LEAST for other in others):
        now = max(0, whole.now[0] - sum(area.now for area in found))
        found.append(_Area("other", "other work", -1, others, now))
    return found


def _layers(areas: Sequence[_Area], top: int) -> list[Layer]:
    """Draw areas above each other; `top` is the number at the top of the chart."""
    floor = [0.0] * SLOTS
    found = []
    for area in areas:
        roof = [low + area.at(slot) for slot, low in enumerate(floor)]
        path = _between(floor, roof, [height is not None for height in area.heights], top)
        found.append(
            Layer(kind=area.kind, label=area.label, colour=area.colour, path=path, now=area.now)
        )
        floor = roof
    return found


def _between(floor: Sequence[float], roof: Sequence[float], known: Sequence[bool], top: int) -> str:
    """Return the path of the area between two step lines, in pieces of recorded time."""
    path = []
    for begin, end in _stretches(known):
        up = _stairs(roof, range(begin, end), top)
        down = "".join(
            f"V{_y(floor[slot], top)}H{slot}"
            for slot in range(end - 1, begin - 1, -1)
            if slot == begin or floor[slot] != floor[slot - 1]
        )
        path.append(f"M{begin} {_y(floor[begin], top)}{up}{down}Z")
    return "".join(path)


def _limit_line(values: Sequence[float | None], top: int) -> str:
    """Return the path of a step line, in pieces of recorded time."""
    path = []
    for begin, end in _stretches([value is not None for value in values]):
        heights = [value or 0 for value in values]
        path.append(f"M{begin} {_y(heights[begin], top)}{_stairs(heights, range(begin, end), top)}")
    return "".join(path)


def _stairs(heights: Sequence[float], slots: range, top: int) -> str:
    """Return the path of a step line through adjacent slots, without its begin."""
    return "".join(
        f"V{_y(heights[slot], top)}H{slot + 1}"
        for slot in slots
        if slot + 1 == slots.stop or heights[slot] != heights[slot + 1]
    )


def _stretches(known: Sequence[bool]) -> list[tuple[int, int]]:
    """Return begin and end of each run of slots with samples."""
    found: list[tuple[int, int]] = []
    for slot, yes in enumerate(known):
        if yes and found and found[-1][1] == slot:
            found[-1] = found[-1][0], slot + 1
        elif yes:
            found.append((slot, slot + 1))
    return found


def _y(value: float, top: int) -> str:
    """Return the place of a value in the box, whose y axis points down."""
    return f"{_HEIGHT - _HEIGHT * value / top:.4g}"


def _used(point: Point) -> float | None:
    return None if point is None else point[0]


def _slot_text(scale: TimeScale, slot: int) -> str:
    """Return the end of a slot as text, with the date if the axis is longer than a day."""
    length = scale.end - scale.begin
    moment = scale.begin + length * (slot + 1) / SLOTS
    return moment.strftime("%H:%M UTC" if length <= timedelta(days=1) else "%m-%d %H:%M UTC")
