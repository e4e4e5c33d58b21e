"""Draw metrics with matplotlib, which is imported only here."""

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hyperjob.sdk.errors import HyperJobError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Axis = Literal["step", "time"]
NO_METRICS = frozenset({"time", "step", "steps", "saved", "rank"})


def drawn(
    rows: Sequence[Mapping[str, float | datetime]],
    metrics: Sequence[str],
    *,
    name: str,
    axis: Axis,
    ax: "Axes | None",
) -> "Figure":
    """Draw metrics of rows over steps or seconds; return the figure. Raise HyperJobError.

    Without `metrics` it draws every one. Without `ax` each metric gets axes of its own.

    Rows of several ranks are one line, by the mean of each step.
    """
    known = sorted({key for row in rows for key in row} - NO_METRICS)
    chosen = [*metrics] or known
    if missing := [each for each in chosen if each not in known]:
        there = ", ".join(known) or "none: call progress(step=..., loss=...) in the training"
        raise HyperJobError(f"{name} has reported no metric {missing[0]!r}; there are {there}")
    if not chosen:
        raise HyperJobError(f"{name} has reported no metrics: call progress(step=..., loss=...)")
    one_metric = ax is None or len(chosen) == 1  # on each axes
    targets = _figure(len(chosen)).axes if ax is None else [ax] * len(chosen)
    for metric, target in zip(chosen, targets, strict=True):
        label = name if one_metric else f"{name} {metric}"
        target.plot(*_curve(rows, metric, axis), label=label, linewidth=1.4)
        target.set_xlabel("step" if axis == "step" else "seconds")
        if one_metric:
            target.set_ylabel(metric)
        target.legend()
    return targets[0].get_figure(root=True)


def _figure(number: int) -> "Figure":
    """Return a figure with axes below each other; raise HyperJobError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise HyperJobError(
            "plot needs matplotlib: pip install matplotlib; job.metrics() returns the rows"
        ) from None

    figure = Figure(figsize=(6.4, 2.6 * number), layout="constrained")
    figure.subplots(number, squeeze=False)
    # A notebook shows a figure that pyplot does not know by this method.
    figure._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: "Figure") -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", bbox_inches="tight")
    return data.getvalue()


def _curve(
    rows: Sequence[Mapping[str, float | datetime]], metric: str, axis: Axis
) -> tuple[list[float], list[float]]:
    """Return places and values of a metric; seconds count from the first row."""
    begin = rows[0]["time"]
    sums: dict[float, list[float]] = {}
    for row in rows:
        value: Any = row.get(metric)
        if value is not None:
            at: Any = row["time"]
            where = float(row["step"]) if axis == "step" else (at - begin).total_seconds()  # type: ignore[arg-type]
            sums.setdefault(where, []).append(value)
    places = sorted(sums)
    return places, [sum(sums[each]) / len(sums[each]) for each in places]
