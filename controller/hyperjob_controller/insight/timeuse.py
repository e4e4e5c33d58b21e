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
_THOUSANDTHS = 1000
Sample = tuple[tuple[str, ...], float]


@dataclass(slots=True)
class _Use:
    """The time of one use. Times are milliseconds since 1970.

    `milliseconds` is the counted time. `running` is how many HyperJobs are in this use now, in
    thousandths, and `since` the sum of their starts, each times its thousandths.
    """

    milliseconds: int = 0
    running: int = 0
    since: int = 0

    def until(self, now: int) -> float:
        """Return the seconds until `now`, those of running HyperJobs included."""
        return (self.milliseconds + (self.running * now - self.since) / _THOUSANDTHS) / 1000


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
        """Add a HyperJob with `sign` 1; remove it with -1, exactly as it was added before.

        A HyperJob whose status has no account is in no queue.
        """
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
        for use, part in _open_parts(account):
            uses[use].running += sign * part
            uses[use].since += sign * part * _milliseconds(account.since)


def _open_parts(account: GoodputAccount) -> Iterator[tuple[TimeUse, int]]:
    """Yield how the present time counts, in thousandths: a met quorum trains while Degraded."""
    trained = round(account.share * _THOUSANDTHS) if account.state is TimeUse.DEGRADED else 0
    if trained:
        yield TimeUse.PRODUCTIVE, trained
    if account.state is not None and trained < _THOUSANDTHS:
        yield account.state, _THOUSANDTHS - trained


def _queue(hyperjob: Object | None) -> str:
    return string(at(hyperjob, "status", "queue"))


def _reports(hyperjob: Object | None) -> bool:
    return bool(at(hyperjob, "status", "training"))


def _milliseconds(moment: datetime) -> int:
    return round((moment - _EPOCH).total_seconds() * 1000)
