"""A picture of several simulations with matplotlib, which is imported only here."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob_sandbox.simulate.measure import SimulationReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def canvas() -> "Figure":
    """Return an empty figure; raise FailureError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise FailureError(
            "--picture needs matplotlib: pip install matplotlib; -o csv prints the numbers",
            code=Code.USAGE,
        ) from None
    return Figure(figsize=(9, 6), layout="constrained")


def draw(figure: "Figure", reports: Sequence[SimulationReport], path: Path) -> None:
    """Draw use and waiting of each policy over time, as PNG, SVG or PDF by the name of the file."""
    use, waiting = figure.subplots(2, sharex=True)
    for axes, series, label in (
        (use, "queues", "part of all accelerators in use"),
        (waiting, "waiting", "accelerators of waiting jobs"),
    ):
        for report in reports:
            sums = [sum(part) for part in zip(*report.series[series].values(), strict=True)]
            days = [report.end / 86400 * (n + 0.5) / len(sums) for n in range(len(sums))]
            axes.plot(days, sums, label=report.policy, linewidth=1.4)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    use.legend()
    waiting.set_xlabel("days")
    try:
        figure.savefig(path)
    except OSError as error:
        raise FailureError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise FailureError(f"{path}: {error}", code=Code.USAGE) from None
