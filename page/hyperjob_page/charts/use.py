"""Use over time as areas of a chart: used and total numbers, by queue. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from hyperjob_page.charts.axis import TimeScale
from hyperjob_page.use import Series, together

_HEIGHT = 100
_LAYERS = 12
"""Maximum number of queues with their own area in a chart; the others share an area."""

Heights = Sequence[float | None]
"""A number for each span of time; None where it is not known."""
Corners = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """An area, `path` in a box of 100 by 100; `kind` is used, other or queue."""

    kind: str
    label: str
    colour: int
    path: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The use of an accelerator; `limit` is the line of the total number, as a path.

    `peak` is the largest use of a span of time, which ends at `peak_at`. `mean` is the average use
    in percent, over the known time.
    """

    name: str
    accelerator: str
    layers: Sequence[Layer]
    limit: str
    top: str
    used: str
    total: str
    peak: str
    peak_at: str
    mean: int


@dataclass(frozen=True, slots=True)
class _Area:
    """An area above the one before it."""

    kind: str
    label: str
    colour: int
    heights: Heights


def scale_of(times: Sequence[datetime]) -> TimeScale:
    """Return the axis of spans of time; it is at least a second long."""
    return TimeScale(times[0], max(times[-1], times[0] + timedelta(seconds=1)))


def chart(
    times: Sequence[datetime], series: Series, queues: Sequence[tuple[Series, int]] = ()
) -> Chart:
    """Return the chart of a series; with `queues` and their colours, an area for each queue."""
    used = [None if point is None else point[0] for point in series.points]
    total = [None if point is None else point[1] for point in series.points]
    areas = _areas(series, queues) if queues else [_Area("used", "used", -1, used)]
    sums = [sum(area.heights[n] or 0 for area in areas) for n in range(len(used))]
    top = max(1.0, *sums, *(value or 0 for value in (*used, *total)))
    peak = max(range(len(used)), key=lambda n: (used[n] or 0, n))
    seconds = [(end - begin).total_seconds() for begin, end in pairwise(times)]
    spent = sum((u or 0) * each for u, each in zip(used, seconds, strict=True))
    offered = sum((t or 0) * each for t, each in zip(total, seconds, strict=True))
    scale = scale_of(times)
    places = [scale.at(time) for time in times]
    return Chart(
        name=series.name,
        accelerator=series.accelerator,
        layers=_layers(areas, places, top),
        limit=_stairs(total, places, top),
        top=_text(top),
        used=_text(used[-1]),
        total=_text(total[-1]),
        peak=_text(used[peak]),
        peak_at=_time_text(scale, times[peak + 1]),
        mean=round(100 * spent / offered) if offered else 0,
    )


def fleet(
    times: Sequence[datetime],
    clusters: Iterable[Series],
    queues: Iterable[Series],
    colour: Callable[[str], int],
) -> list[Chart]:
    """Return a chart for each accelerator, summed over clusters; `queues` have no children."""
    by_name: dict[str, list[Series]] = {}
    for one in clusters:
        by_name.setdefault(one.accelerator, []).append(one)
    shares: dict[str, list[tuple[Series, int]]] = {}
    for one in queues:
        if any(point and point[0] for point in one.points):
            shares.setdefault(one.accelerator, []).append((one, colour(one.name)))
    sums = [together(name, found) for name, found in by_name.items()]
    charts = [chart(times, one, shares.get(one.accelerator, ())) for one in sums]
    return sorted(charts, key=lambda one: (-float(one.total), one.accelerator))


def _areas(whole: Series, queues: Sequence[tuple[Series, int]]) -> list[_Area]:
    """Return the largest queues, the other queues as one, and the use outside queues."""
    order = sorted(queues, key=lambda one: -sum(each or 0 for each in _used(one[0])))
    found = [
        _Area("queue", f"queue {one.name}", number, _used(one)) for one, number in order[:_LAYERS]
    ]
    if more := order[_LAYERS:]:
        rest = together("", [one for one, _ in more])
        found.append(_Area("queue", f"{len(more)} more queues", -1, _used(rest)))
    others = [
        None if used is None else max(0, used - sum(area.heights[n] or 0 for area in found))
        for n, used in enumerate(_used(whole))
    ]
    return [*found, *([_Area("other", "other work", -1, others)] if any(others) else [])]


def _layers(areas: Sequence[_Area], places: Sequence[float], top: float) -> list[Layer]:
    """Draw areas above each other; `top` is the number at the top of the chart."""
    floor = [0.0] * (len(places) - 1)
    found = []
    for area in areas:
        roof = [low + (height or 0) for low, height in zip(floor, area.heights, strict=True)]
        path = ""
        for spans in _stretches(area.heights):
            up, down = _corners(roof, spans, places), _corners(floor, spans, places)[::-1]
            path += f"M{_path([*up, *down], top)}Z"
        now = _text(area.heights[-1])
        found.append(
            Layer(kind=area.kind, label=area.label, colour=area.colour, path=path, now=now)
        )
        floor = roof
    return found


def _stairs(heights: Heights, places: Sequence[float], top: float) -> str:
    """Return the path of a step line, in stretches of known time."""
    known = [height or 0 for height in heights]
    return "".join(
        f"M{_path(_corners(known, spans, places), top)}" for spans in _stretches(heights)
    )


def _stretches(heights: Heights) -> list[list[int]]:
    """Return the numbers of the spans of time of each stretch of known time."""
    groups = groupby(range(len(heights)), key=lambda n: heights[n] is not None)
    return [list(spans) for known, spans in groups if known]


def _corners(heights: Sequence[float], spans: Sequence[int], places: Sequence[float]) -> Corners:
    """Return the corners of a step line, without those between equal heights."""
    corners: Corners = []
    for n in spans:
        if corners and corners[-1][1] == heights[n]:
            corners[-1] = places[n + 1], heights[n]
        else:
            corners += [(places[n], heights[n]), (places[n + 1], heights[n])]
    return corners


def _path(corners: Corners, top: float) -> str:
    """Return a line in the box, whose y axis points down."""
    return "L".join(f"{x:.5g} {_HEIGHT - _HEIGHT * y / top:.4g}" for x, y in corners)


def _used(series: Series) -> Heights:
    return [None if point is None else point[0] for point in series.points]


def _text(value: float | None) -> str:
    """Return a number in few characters; 0 for an unknown one."""
    return f"{value or 0:.1f}".removesuffix(".0")


def _time_text(scale: TimeScale, moment: datetime) -> str:
    """Return a time as text, with the date if the axis is longer than a day."""
    day = scale.end - scale.begin <= timedelta(days=1)
    return moment.strftime("%H:%M UTC" if day else "%m-%d %H:%M UTC")
