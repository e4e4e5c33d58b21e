"""What the time of a HyperJob went to: an account that grows at transitions alone.

All it needs is in the status, so that neither a restart of the controller nor a lost history
changes it, and nothing is written at rest. `docs/goodput.md` defines every number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from controller.model.training import JobTraining, parse_training, training_object
from controller.model.wire import count, mapping, string, timestamp
from controller.status.timeuse import LOST, time_use
from hyperjob.api.choices import TimeUse
from hyperjob.api.meta import Object
from hyperjob.api.phases import Phase
from hyperjob.kube.microtime import micro_time

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStop:
    """A stop that the training has not said to have recovered from.

    The work since `since` is kept until `kept_until`, as far as is known; `work` is of the last
    lines.
    """

    time: datetime
    since: datetime
    kept_until: datetime
    cause: TimeUse
    work: JobTraining | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputAccount:
    """Milliseconds by use until `since`, and what time goes to since then.

    `share` is the part of the sub-jobs that train in a degraded HyperJob.
    """

    since: datetime
    state: TimeUse | None
    spent: Mapping[TimeUse, int] = field(default_factory=dict)
    share: float = 0.0
    stop: OpenStop | None = None

    @property
    def trains(self) -> bool:
        """Return whether the training makes steps, as far as phases show."""
        return self.state is TimeUse.PRODUCTIVE or (
            self.state is TimeUse.DEGRADED and self.share > 0
        )

    def until(self, now: datetime) -> "GoodputAccount":
        """Count the time until a moment; a moment that has passed already counts nothing."""
        if self.state is None or now <= self.since:
            return self
        lasted = now - self.since
        if self.state is TimeUse.DEGRADED and self.share > 0:
            trained = lasted * self.share
            counted = self.move(trained, to=TimeUse.PRODUCTIVE)
            counted = counted.move(lasted - trained, to=TimeUse.DEGRADED)
        else:
            counted = self.move(lasted, to=self.state)
        return replace(counted, since=now)

    def move(
        self, time: timedelta, *, to: TimeUse, out_of: TimeUse | None = None
    ) -> "GoodputAccount":
        """Count time as of one use, and no longer as of another, which has at least none left."""
        number = round(time / _MILLISECOND)
        spent = dict(self.spent)
        if out_of is not None:
            number = max(-spent.get(to, 0), min(number, spent.get(out_of, 0)))
            spent[out_of] = spent.get(out_of, 0) - number
        spent[to] = spent.get(to, 0) + number
        return replace(self, spent={use: spent[use] for use in TimeUse if spent.get(use)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """All that an account depends on at one look.

    `share` is the part of the sub-jobs that train while the HyperJob is degraded; `before` and
    `work` are what the programs had said at the look before, and have said now.
    """

    now: datetime
    created: datetime
    started: datetime | None
    phase: Phase
    reason: str
    share: float = 0.0
    stopped_by: TimeUse | None = None
    before: JobTraining | None = None
    work: JobTraining | None = None
    steps: int | None = None


def begin(moment: Moment) -> GoodputAccount:
    """Begin an account; one of a HyperJob that an earlier release started takes it from there."""
    state = time_use(moment.phase, moment.reason, before=None, cause=None)
    account = GoodputAccount(since=moment.created, state=TimeUse.WAITING_FOR_QUEUE)
    if moment.started is not None:
        account = account.until(moment.started)
    return replace(account, state=state, share=moment.share)


def advance(account: GoodputAccount, moment: Moment) -> GoodputAccount:
    """Bring an account up to a look; the same account where nothing has changed."""
    account = _heard(account, moment)
    cause = moment.stopped_by or (account.stop.cause if account.stop is not None else None)
    before = moment.stopped_by or account.state
    state = time_use(moment.phase, moment.reason, before=before, cause=cause)
    if state is TimeUse.SUSPENDED and moment.stopped_by is None:
        cause = TimeUse.LOST_TO_PLANNED_STOPS
    share = round(moment.share, 3) if state is TimeUse.DEGRADED else 0.0
    if state is account.state and share == account.share:
        return account
    trained, after = account, replace(account.until(moment.now), state=state, share=share)
    if moment.phase is Phase.COMPLETED:
        return _finished(after, moment)
    if trained.trains and not after.trains:
        return _stopped(after, trained, moment, cause or TimeUse.LOST_TO_FAILURES)
    after = _trained_before(after, trained, moment.work)
    # Its first line may have come together with the report that it runs.
    return _heard(after, moment) if after.trains and after.stop is not None else after


def finish(account: GoodputAccount, work: JobTraining | None, steps: int | None) -> GoodputAccount:
    """Take the time after the last of all steps out of the productive time, once.

    The last lines of a program may be read when its HyperJob has ended already. The account has
    ended with the HyperJob; `completionTime` has whole seconds only and may be before these lines.
    """
    if account.state is not None or TimeUse.FINISHING in account.spent:
        return account
    if work is None or not steps or work.step < steps:
        return account
    return account.move(
        max(timedelta(), account.since - work.updated),
        to=TimeUse.FINISHING,
        out_of=TimeUse.PRODUCTIVE,
    )


def ratio(account: GoodputAccount, now: datetime) -> float:
    """Return the productive part of all time until now that was not suspended; 0 of no time."""
    spent = account.until(now).spent
    whole = sum(spent.values()) - spent.get(TimeUse.SUSPENDED, 0)
    return spent.get(TimeUse.PRODUCTIVE, 0) / whole if whole > 0 else 0.0


def _heard(account: GoodputAccount, moment: Moment) -> GoodputAccount:
    """Take in what the programs have said since the last look."""
    work, stop = moment.work, account.stop
    if work is None or account.state is None:
        return account
    if stop is not None:
        if stop.work is not None and _goes_on(stop.work, work):
            if account.trains and work.step > stop.work.step:  # it had only waited for others
                return replace(_corrected(account, stop, kept=stop.time), stop=None)
            return _corrected(account, replace(stop, work=work), kept=work.kept_until)
        if not account.trains:
            return account  # its first line came before the report that it runs: wait for that
        resumed = stop.work.reached(work.start_step) if stop.work is not None else stop.kept_until
        account = replace(_corrected(account, stop, kept=resumed), stop=None)
        return _loaded(account, work, moment.now)
    if moment.before is None:
        return _loaded(account, work, moment.now)
    # A later start that is before the last line belongs to another sub-job: with a quorum the first
    # sub-job to start may be gone.
    if account.trains and work.started > moment.before.updated:
        return _began_again(account, moment.before, work, moment.now)
    return account


def _goes_on(before: JobTraining, work: JobTraining) -> bool:
    """Return whether a training that was stopped did not begin anew, but only waited for others."""
    if work.started <= before.started:
        return True
    return work.started < before.updated and work.step >= before.step


def _loaded(account: GoodputAccount, work: JobTraining, now: datetime) -> GoodputAccount:
    """Count the time until the first line of a program as its start."""
    if account.state is not TimeUse.PRODUCTIVE or work.started <= account.since:
        return account
    began = min(work.started, now)
    loading = replace(account, state=TimeUse.STARTING).until(began)
    return replace(loading, state=account.state)


def _trained_before(
    after: GoodputAccount, before: GoodputAccount, work: JobTraining | None
) -> GoodputAccount:
    """Count as productive what a program did before its clusters reported that it runs."""
    if work is None or before.state is None or before.trains or not after.trains:
        return after
    if not before.since < work.started < after.since:
        return after
    early = after.since - work.started
    return after.move(early, to=TimeUse.PRODUCTIVE, out_of=before.state)


def _began_again(
    account: GoodputAccount, before: JobTraining, work: JobTraining, now: datetime
) -> GoodputAccount:
    """Count what a program makes again that began anew by itself, and what it stood still for."""
    began = max(account.since, min(work.started, now))
    kept = min(before.reached(work.start_step), began)
    counted = account.until(began)
    return counted.move(began - kept, to=TimeUse.LOST_TO_FAILURES, out_of=TimeUse.PRODUCTIVE)


def _stopped(
    after: GoodputAccount, trained: GoodputAccount, moment: Moment, cause: TimeUse
) -> GoodputAccount:
    """Count what a stop loses: all that was done since the last checkpoint."""
    work, stop = moment.work, trained.stop
    if stop is not None:
        # It stopped again before it said a word: all of that is lost, and where the last work is
        # taken up is still to be heard.
        lost = after.since - trained.since
        return after.move(lost, to=cause, out_of=TimeUse.PRODUCTIVE)
    since = trained.since if work is None else min(trained.since, work.started)
    kept = since if work is None else min(max(work.kept_until, since), moment.now)
    # Of a time in which a part of the sub-jobs trained, that part is lost.
    part = trained.share if trained.state is TimeUse.DEGRADED else 1.0
    lost = (moment.now - max(kept, trained.since)) * part
    lost += max(timedelta(), trained.since - kept)
    return replace(
        after.move(lost, to=cause, out_of=TimeUse.PRODUCTIVE),
        stop=OpenStop(time=moment.now, since=since, kept_until=kept, cause=cause, work=work),
    )


def _corrected(account: GoodputAccount, stop: OpenStop, *, kept: datetime) -> GoodputAccount:
    """Count work of a stop as kept until another moment than was known before."""
    kept = min(max(kept, stop.since), stop.time)
    counted = account.move(kept - stop.kept_until, to=TimeUse.PRODUCTIVE, out_of=stop.cause)
    return replace(counted, stop=replace(stop, kept_until=kept))


def _finished(account: GoodputAccount, moment: Moment) -> GoodputAccount:
    account = replace(account, stop=None)
    return finish(account, moment.work, moment.steps)


def parse_account(raw: object) -> GoodputAccount | None:
    """Read an account; None where there is none that can be gone on with."""
    told = mapping(raw)
    since = timestamp(told.get("since"))
    state = string(told.get("state"))
    if since is None or (state and state not in set(TimeUse)):
        return None
    spent = mapping(told.get("milliseconds"))
    return GoodputAccount(
        since=since,
        state=TimeUse(state) if state else None,
        spent={use: count(spent.get(use)) for use in TimeUse if count(spent.get(use))},
        share=_decimal(told.get("share")),
        stop=_parse_stop(mapping(told.get("stopped"))),
    )


def account_object(account: GoodputAccount, *, now: datetime) -> Object:
    """Return `status.goodput`."""
    entry: Object = {
        "ratio": f"{ratio(account, now):.3f}",
        "since": micro_time(account.since),
        "milliseconds": {str(use): number for use, number in account.spent.items()},
    }
    if account.state is not None:
        entry["state"] = str(account.state)
    if account.share:
        entry["share"] = f"{account.share:.3f}"
    if account.stop is not None:
        stop = account.stop
        entry["stopped"] = {
            **({} if stop.work is None else training_object(stop.work)),
            "time": micro_time(stop.time),
            "since": micro_time(stop.since),
            "keptUntil": micro_time(stop.kept_until),
            "cause": str(stop.cause),
        }
    return entry


def _parse_stop(raw: Object) -> OpenStop | None:
    times = [timestamp(raw.get(name)) for name in ("time", "since", "keptUntil")]
    cause = string(raw.get("cause"))
    time, since, kept = times
    if time is None or since is None or kept is None or cause not in LOST:
        return None
    work = parse_training(raw)
    return OpenStop(time=time, since=since, kept_until=kept, cause=TimeUse(cause), work=work)


def _decimal(value: object) -> float:
    """Read a share from 0 to 1."""
    try:
        return min(1.0, max(0.0, float(string(value) or "0")))
    except ValueError:
        return 0.0
