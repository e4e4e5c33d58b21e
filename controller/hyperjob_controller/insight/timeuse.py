"""The time of HyperJobs by queue and use, updated with each change of a HyperJob.

The time of a scrape depends on the number of queues, not on the number of HyperJobs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_engine.status.goodput import GoodputAccount, parse_account

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Sample = tuple[tuple[str, ...], float]


@dataclass(slots=True)
class _Use:
    """Counted milliseconds, and the running time: of how many HyperJobs, with their starts."""

    milliseconds: int = 0
    running: int = 0
    since: int = 0

    def until(self, now: int) -> float:
        return (self.milliseconds + self.running * now - self.since) / 1000


@dataclass(slots=True)
class TimeUses:
    """The sums over all existing HyperJobs."""

    _uses: defaultdict[str, dict[TimeUse, _Use]] = field(
        default_factory=lambda: defaultdict(lambda: {use: _Use() for use in TimeUse})
    )
    _hyperjobs: Counter[str] = field(default_factory=Counter)
    _reporting: int = 0

    def seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the sums; a handler of the HyperJob informer."""
        after = None if kind is EventType.DELETED else new
        if at(old, "status", "goodput") == at(after, "status", "goodput") and _queue(old) == _queue(
            after
        ):
            self._reporting += _reports(after) - _reports(old)
            return
        self._count(old, -1)
        self._count(after, 1)

    def seconds(self, now: datetime) -> Iterator[Sample]:
        """Yield the seconds by queue and use."""
        moment = _milliseconds(now)
        for queue, uses in sorted(self._uses.items()):
            for use, counted in uses.items():
                yield (queue, str(use)), round(counted.until(moment), 3)

    def ratios(self, now: datetime) -> Iterator[Sample]:
        """Yield the productive share, from 0 to 1, of the time that was not suspended, by queue."""
        moment = _milliseconds(now)
        for queue, uses in sorted(self._uses.items()):
            spent = {use: counted.until(moment) for use, counted in uses.items()}
            whole = sum(spent.values()) - spent[TimeUse.SUSPENDED]
            if whole > 0:
                yield (queue,), spent[TimeUse.PRODUCTIVE] / whole

    def reporting(self) -> Iterator[Sample]:
        """Yield the number of HyperJobs whose programs report progress."""
        yield (), float(self._reporting)

    def _count(self, hyperjob: Object | None, sign: int) -> None:
        self._reporting += sign * _reports(hyperjob)
        account = parse_account(at(hyperjob, "status", "goodput"))
        if account is None:
            return
        queue = _queue(hyperjob)
        self._add(queue, account, sign)
        self._hyperjobs[queue] += sign
        if not self._hyperjobs[queue]:
            del self._hyperjobs[queue], self._uses[queue]

    def _add(self, queue: str, account: GoodputAccount, sign: int) -> None:
        uses = self._uses[queue]
        for use, spent in account.spent.items():
            uses[use].milliseconds += sign * spent
        if account.state is not None:
            running = uses[account.state]
            running.running += sign
            running.since += sign * _milliseconds(account.since)


def _queue(hyperjob: Object | None) -> str:
    return string(at(hyperjob, "status", "queue"))


def _reports(hyperjob: Object | None) -> bool:
    return bool(at(hyperjob, "status", "training"))


def _milliseconds(moment: datetime) -> int:
    return round((moment - _EPOCH).total_seconds() * 1000)
