"""What the resourceSummary of each Cluster counts of the sub-jobs that have just started or ended.

A summary is late: it may lack the pods of a sub-job that started, and may have those of an ended
sub-job. Such a sub-job is unsettled. The ledger compares each summary with the one before, and
takes a change for that of unsettled sub-jobs as far as they explain it: each start is charged once
and each end credited once. A change by another workload in the same seconds counts as a change by
these sub-jobs until they are settled. The ledger keeps no sub-job longer than a summary is late.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from hyperjob_core.api.duration import later
from hyperjob_engine.resources import Resources, accumulate, subtract, total

LISTED_WITHIN: Final = timedelta(seconds=5)
"""The longest time from Karmada's list of a member's pods to the arrival of its summary here."""

REPORTED_WITHIN: Final = timedelta(seconds=10)
"""The longest time from the end of a sub-job in its member to the report of it here."""

SHORT_END: Final = timedelta(seconds=30)
"""The room of an ended sub-job is free at once if its pods may not run on for longer than this."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A sub-job on a cluster; until `until` a summary may have its pods before a report has.

    `by_pods`: it is settled by its pods on the nodes, and the summary may lack them.
    """

    cluster: str
    demand: Resources
    settled: bool
    pods: bool
    young: bool
    until: datetime
    by_pods: bool = False

    @property
    def unsettled(self) -> Resources:
        """What a summary may count of the sub-job beside all that has settled."""
        return self.demand if not self.settled and (self.pods or self.young) else {}


@dataclass(frozen=True, slots=True)
class _Ended:
    """An ended sub-job; `gone` is when no pod of it runs any more, `due` when no summary has one.

    `slow`: its pods may run on for long, and its room is free when a summary lacks them.
    """

    due: datetime
    gone: datetime
    key: str
    cluster: str
    demand: Resources
    slow: bool


@dataclass(slots=True)
class _Page:
    """A cluster: `taken` by its summary, None before the first; `unsettled`, and `counted` of that.

    `counted` is at most `unsettled`, and at most `taken`. `ended` are the ended sub-jobs. `early`
    is what summaries until `early_until` no longer had of sub-jobs whose end no report had yet.
    """

    taken: Resources | None = None
    unsettled: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    ended: dict[int, _Ended] = field(default_factory=dict)
    early: dict[str, int] = field(default_factory=dict)
    early_until: datetime | None = None

    def note_early(self, now: datetime) -> None:
        """Keep what a summary has lost beside the unsettled sub-jobs, for some seconds."""
        if self.early_until is None or self.early_until <= now:
            self.early = {}
        lost = {name: amount for name, amount in self.counted.items() if amount < 0}
        if lost:
            accumulate(self.early, lost, -1)
            self.early_until = later(now, REPORTED_WITHIN)

    def unexplained(self, demand: Resources, now: datetime) -> Resources:
        """Return what the summary may still have of a sub-job whose end is reported now."""
        if self.early_until is None or self.early_until <= now:
            return demand
        known = {name: min(amount, self.early.get(name, 0)) for name, amount in demand.items()}
        accumulate(self.early, known, -1)
        return subtract(demand, known)

    def trim(self) -> None:
        """Restore the bounds of `counted`."""
        taken = self.taken or {}
        bounded = {
            name: min(amount, self.unsettled.get(name, 0), taken.get(name, 0))
            for name, amount in self.counted.items()
        }
        self.counted = {name: amount for name, amount in bounded.items() if amount > 0}


class Ledger:
    """The unsettled sub-jobs of all clusters, and how much of them the summaries count."""

    def __init__(self, *, lag: timedelta, changed: Callable[[str], None]) -> None:
        """`lag` is the longest time until a summary shows a start or an end.

        `changed` gets the name of a cluster of which the ledger counts anything else than before.
        """
        self._lag = lag
        self._changed = changed
        self._lines: dict[str, _Line] = {}
        self._pages: dict[str, _Page] = {}
        self._due: list[tuple[datetime, int, _Ended | str]] = []
        self._order = itertools.count()

    def __str__(self) -> str:
        """Return the ended sub-jobs that a summary may still count."""
        ended = (each for page in self._pages.values() for each in page.ended.values())
        return ", ".join(f"{each.key} on {each.cluster}" for each in ended) or "none"

    def hold(
        self,
        key: str,
        cluster: str,
        demand: Resources,
        *,
        settled: bool,
        pods: bool,
        now: datetime,
        by_pods: bool = False,
    ) -> None:
        """Record a sub-job on a cluster; `settled`: its summary has all pods, `pods`: some exist.

        `by_pods`: it is settled because the nodes have all pods, which the summary may lack. A
        sub-job that was on another cluster must have ended there before.
        """
        before = self._lines.get(key)
        if before is not None:
            line = replace(before, demand=demand, settled=settled, pods=pods, by_pods=by_pods)
            if before == line:
                return
        else:
            until = later(now, self._lag)
            line = _Line(cluster, demand, settled, pods, young=True, until=until, by_pods=by_pods)
            heapq.heappush(self._due, (line.until, next(self._order), key))
        page = self._page(cluster)
        if before is not None and before.settled and not (settled or before.by_pods):
            accumulate(page.counted, before.demand, 1)  # the summary has its former pods
        elif before is not None and not before.settled and settled:
            accumulate(page.counted, before.demand, -1)
            page.note_early(now)
        self._put(key, before, line)

    def end(
        self,
        key: str,
        *,
        now: datetime,
        grace: timedelta = timedelta(),
        left: Fraction = Fraction(1),
    ) -> None:
        """Record the end of a sub-job, whose pods may run on for `grace`.

        `left` is the part of its pods that had not ended before, by its last report.
        """
        line = self._lines.pop(key, None)
        if line is None:
            return
        page, counts = self._page(line.cluster), line.unsettled
        if line.settled:
            counts = {name: int(amount * left) for name, amount in line.demand.items()}
            accumulate(page.unsettled, counts, 1)
            accumulate(page.counted, page.unexplained(counts, now), 1)
        if counts:
            gone, slow = later(now, grace), grace > SHORT_END
            ended = _Ended(later(gone, self._lag), gone, key, line.cluster, counts, slow)
            order = next(self._order)
            page.ended[order] = ended
            heapq.heappush(self._due, (ended.due, order, ended))
        self._trim(line.cluster)

    def drop(self, key: str) -> None:
        """Forget a sub-job that no member has ever had."""
        line = self._lines.pop(key, None)
        if line is not None:
            accumulate(self._page(line.cluster).unsettled, line.unsettled, -1)
            self._trim(line.cluster)

    def summarised(self, cluster: str, taken: Resources | None, *, now: datetime) -> None:
        """Take over a summary, None for none; the caller then records what it settles."""
        page = self._page(cluster)
        if taken is not None and page.taken is not None:
            accumulate(page.counted, taken, 1)
            accumulate(page.counted, page.taken, -1)
            page.note_early(now)
        page.taken = taken
        self._trim(cluster)
        for order, each in list(page.ended.items()):
            if each.gone + LISTED_WITHIN <= now:
                self._forget(order, each)

    def begin(self, cluster: str, taken: Resources | None) -> None:
        """Take over a summary of unknown age, which is compared with none before; None for none."""
        page = self._page(cluster)
        page.taken, page.counted = taken, {}
        self._changed(cluster)

    def expire(self, *, now: datetime) -> None:
        """Drop what no summary can have any more."""
        while self._due and self._due[0][0] <= now:
            until, order, what = heapq.heappop(self._due)
            if isinstance(what, _Ended):
                self._forget(order, what)
                continue
            line = self._lines.get(what)
            if line is not None and line.until == until:
                self._put(what, line, replace(line, young=False))

    def next_change(self, *, after: datetime) -> datetime | None:
        """Return when `expire` has something to do next; `expire` was called at `after`."""
        return self._due[0][0] if self._due and self._due[0][0] > after else None

    def counted(self, cluster: str) -> Resources:
        """Return the part of the unsettled sub-jobs that the summary of a cluster counts."""
        page = self._pages.get(cluster)
        return page.counted if page is not None else {}

    def ending(self, cluster: str) -> Resources:
        """Return what slow ends still hold of a cluster, as far as its summary counts them."""
        slow = total(each.demand for each in self._ended_on(cluster) if each.slow)
        counted = self.counted(cluster)
        least = {name: min(amount, counted.get(name, 0)) for name, amount in slow.items()}
        return {name: amount for name, amount in least.items() if amount > 0}

    @property
    def all_ended(self) -> dict[str, Resources]:
        """What summaries may still count of the ended sub-jobs, by cluster."""
        return {
            name: total(each.demand for each in page.ended.values())
            for name, page in self._pages.items()
            if page.ended
        }

    def ended_on(self, cluster: str) -> list[str]:
        """Return the ended sub-jobs whose pods a cluster may still have."""
        return [each.key for each in self._ended_on(cluster)]

    def _ended_on(self, cluster: str) -> Iterable[_Ended]:
        page = self._pages.get(cluster)
        return page.ended.values() if page is not None else ()

    def _put(self, key: str, before: _Line | None, line: _Line) -> None:
        """Replace the line of a sub-job on its cluster."""
        unsettled = self._page(line.cluster).unsettled
        if before is not None:
            accumulate(unsettled, before.unsettled, -1)
        accumulate(unsettled, line.unsettled, 1)
        self._lines[key] = line
        self._trim(line.cluster)

    def _page(self, cluster: str) -> _Page:
        return self._pages.setdefault(cluster, _Page())

    def _trim(self, cluster: str) -> None:
        self._page(cluster).trim()
        self._changed(cluster)

    def _forget(self, order: int, ended: _Ended) -> None:
        """Drop an ended sub-job, once."""
        page = self._page(ended.cluster)
        if page.ended.pop(order, None) is not None:
            accumulate(page.unsettled, ended.demand, -1)
            self._trim(ended.cluster)
