"""The goodput of a HyperJob: an account of its time by use, which changes only at transitions.

The use follows from phase and reason. The account is complete in `status.goodput`: it survives a
restart of the controller, and a HyperJob without transitions causes no writes. `docs/goodput.md`
defines every number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from hyperjob_core.api import table
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.training import Reported, SubJobTraining
from hyperjob_core.api.wire import count, mapping, one_of, string, timestamp
from hyperjob_engine.model.training import time_of
from hyperjob_engine.reasons.reason import Reason

_CAPACITY: Final = frozenset(
    {
        Reason.INSUFFICIENT_CAPACITY,
        Reason.EXCEEDS_CLUSTERS,
        Reason.NO_MATCHING_NODE,
        Reason.WAITING_FOR_GANG,
    }
)
_QUEUE: Final = frozenset(
    {
        Reason.WAITING_FOR_QUEUE,
        Reason.QUEUE_NOT_OPEN,
        Reason.INVALID_QUEUE,
        Reason.QUEUE_LIMIT_REACHED,
        Reason.EXCEEDS_QUEUE,
        Reason.DISPATCHER_SILENT,
        Reason.GANG_BACK_OFF,
    }
)
LOST: Final = frozenset({TimeUse.LOST_TO_FAILURES, TimeUse.LOST_TO_PLANNED_STOPS})


def time_use(
    phase: Phase, reason: str, *, before: TimeUse | None, cause: TimeUse | None
) -> TimeUse | None:
    """Return the use of the time from now on; None after the end of the HyperJob.

    `before` is the use up to now. `cause` is the use to which the open stop counts, the stop after
    which the training has not reported a step yet.
    """
    match phase:
        case Phase.PENDING | Phase.QUEUED:
            if reason in _CAPACITY:
                return TimeUse.WAITING_FOR_CAPACITY
            waits = phase is Phase.QUEUED or reason in _QUEUE
            return TimeUse.WAITING_FOR_QUEUE if waits else TimeUse.BLOCKED
        case Phase.STARTING:
            return TimeUse.STARTING
        case Phase.RUNNING:
            return TimeUse.PRODUCTIVE
        case Phase.DEGRADED:
            return TimeUse.DEGRADED
        case Phase.RESTARTING:
            return before if before in LOST else cause or TimeUse.LOST_TO_FAILURES
        case Phase.STOPPING | Phase.SUSPENDED:
            return TimeUse.SUSPENDED
        case Phase.COMPLETED | Phase.FAILED:
            return None
        case _:
            assert_never(phase)


_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStop:
    """A stop after which the training has not reported a step yet.

    The work between `since` and `kept_until` is kept, as far as is known. `work` is the last
    progress before the stop. `size` is that of the training.
    """

    time: datetime
    since: datetime
    kept_until: datetime
    cause: TimeUse
    work: SubJobTraining | None = None
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputAccount:
    """Milliseconds by use up to `since`, and `state`, the use of the time after that.

    `share` is the share of the sub-jobs that train in a Degraded HyperJob, from 0 to 1. `size` is
    the text of the present size or alternatives; `by_size` divides the productive milliseconds.
    """

    since: datetime
    state: TimeUse | None
    spent: Mapping[TimeUse, int] = field(default_factory=dict)
    share: float = 0.0
    stop: OpenStop | None = None
    size: str = ""
    by_size: Mapping[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        """Return whether the program runs, also without steps."""
        return self.trains or self.state is TimeUse.STALLED

    @property
    def trains(self) -> bool:
        """Return whether the training makes steps, judged by the phases of the sub-jobs."""
        return self.state is TimeUse.PRODUCTIVE or (
            self.state is TimeUse.DEGRADED and self.share > 0
        )

    def until(self, now: datetime) -> "GoodputAccount":
        """Return the account with the time up to `now`; unchanged if `now` is before `since`."""
        if self.state is None or now <= self.since:
            return self
        lasted = now - self.since
        if self.state is TimeUse.DEGRADED:
            trained = lasted * self.share
            counted = self.move(trained, to=TimeUse.PRODUCTIVE)
            counted = counted.move(lasted - trained, to=TimeUse.DEGRADED)
        else:
            counted = self.move(lasted, to=self.state)
        return replace(counted, since=now)

    def with_size(self, size: str, now: datetime) -> "GoodputAccount":
        """Return the account with another size from now on."""
        return self if size == self.size else replace(self.until(now), size=size)

    def move(
        self, time: timedelta, *, to: TimeUse, out_of: TimeUse | None = None
    ) -> "GoodputAccount":
        """Return the account with `time` moved from `out_of` to `to`; both stay at least 0.

        A negative time is moved back. Without `out_of` the time is new, and not negative.
        """
        number = round(time / _MILLISECOND)
        spent = dict(self.spent)
        if out_of is not None:
            number = max(-spent.get(to, 0), min(number, spent.get(out_of, 0)))
            spent[out_of] = spent.get(out_of, 0) - number
        spent[to] = spent.get(to, 0) + number
        more = number * ((to is TimeUse.PRODUCTIVE) - (out_of is TimeUse.PRODUCTIVE))
        return replace(
            self,
            spent={use: spent[use] for use in TimeUse if spent.get(use)},
            by_size=_divided(self.by_size, self.size, more) if more else self.by_size,
        )


def _divided(by_size: Mapping[str, int], size: str, more: int) -> Mapping[str, int]:
    """Return the times by size with `more` for one; what it lacks of a loss the others lose."""
    found = dict(by_size) | ({size: by_size.get(size, 0)} if size else {})
    for each in sorted(found, key=lambda name: (name != size, -found[name])):
        change = max(more, -found[each])
        found[each], more = found[each] + change, more - change
    return {name: number for name, number in found.items() if number}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The input of an account in one pass.

    `share` is the share of the sub-jobs that train while the HyperJob is Degraded. `before` and
    `work` are the progress of the training in the pass before and now. `stalled` is since when all
    programs that report make no steps, and `was_stalled` the same in the pass before.
    `announced`: a program has said that it reports, and has made no step yet.
    """

    now: datetime
    created: datetime
    phase: Phase
    reason: str
    share: float = 0.0
    stopped_by: TimeUse | None = None
    before: SubJobTraining | None = None
    work: SubJobTraining | None = None
    steps: int | None = None
    stalled: datetime | None = None
    was_stalled: datetime | None = None
    announced: bool = False


def begin(moment: Moment, size: str = "") -> GoodputAccount:
    """Return a new account: the HyperJob has waited for its queue since its creation."""
    state = time_use(moment.phase, moment.reason, before=None, cause=None)
    account = GoodputAccount(since=moment.created, state=TimeUse.WAITING_FOR_QUEUE)
    return replace(account, state=state, share=moment.share, size=size)


def advance(account: GoodputAccount, moment: Moment) -> GoodputAccount:
    """Return the account at this moment; the same object if no transition occurred.

    First the lines of the programs correct the time of the last stop. Then the time up to now is
    counted to the use of before, and that of a late seen stall, start or stop is moved.
    """
    account = _with_reports(account, moment)
    cause = moment.stopped_by or (account.stop.cause if account.stop is not None else None)
    before = moment.stopped_by or account.state
    state = time_use(moment.phase, moment.reason, before=before, cause=cause)
    if state is TimeUse.SUSPENDED and moment.stopped_by is None:
        cause = TimeUse.LOST_TO_PLANNED_STOPS
    if state is TimeUse.PRODUCTIVE and moment.stalled is not None:
        state = TimeUse.STALLED
    elif state is TimeUse.PRODUCTIVE and _awaits_line(account, moment):
        state = TimeUse.STARTING
    share = round(moment.share, 3) if state is TimeUse.DEGRADED else 0.0
    if state is account.state and share == account.share:
        return account
    trained, after = account, replace(account.until(moment.now), state=state, share=share)
    after = _with_stall(after, trained, moment)
    if moment.phase is Phase.COMPLETED:  # a stop before it can no more be corrected
        return finish(replace(after, stop=None), moment.work, moment.steps)
    if trained.runs and state is TimeUse.STARTING and moment.phase is Phase.RUNNING:
        # The announcement of a program that loads is read after the phase began.
        loaded = after.since - trained.since
        return after.move(loaded, to=TimeUse.STARTING, out_of=TimeUse.PRODUCTIVE)
    if trained.runs and not after.runs:
        return _stopped(after, trained, moment, cause or TimeUse.LOST_TO_FAILURES)
    if state is TimeUse.SUSPENDED:
        return _with_reports(after, replace(moment, before=None))
    after = _trained_before(after, trained, moment)
    # The first progress line may arrive in the same pass as the phase Running.
    return _with_reports(after, moment) if after.trains and after.stop is not None else after


def finish(
    account: GoodputAccount, work: SubJobTraining | None, steps: int | None
) -> GoodputAccount:
    """Return the account without the time after the last step in its productive time.

    The controller may read the last lines of a program after its HyperJob has ended, and the
    account with it. `completionTime` has whole seconds only and may be before these lines.
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


def certain_until(account: GoodputAccount, last_line: datetime | None, now: datetime) -> datetime:
    """Return up to when the account is certain: up to the last progress line while steps are made.

    The program may hang since then, or may have stopped. `last_line` is None without reports.
    """
    if account.state is not TimeUse.PRODUCTIVE or last_line is None:
        return now
    return min(now, max(account.since, last_line))


def ratio(account: GoodputAccount, now: datetime) -> float:
    """Return the productive share of all time that was not suspended, from 0 to 1."""
    spent = account.until(now).spent
    whole = sum(spent.values()) - spent.get(TimeUse.SUSPENDED, 0)
    return spent.get(TimeUse.PRODUCTIVE, 0) / whole if whole > 0 else 0.0


def _awaits_line(account: GoodputAccount, moment: Moment) -> bool:
    """Return whether a program that is known to report has not reported since its last start."""
    work, stop = moment.work, account.stop
    if stop is None:
        return work is None and moment.announced
    if stop.work is None:
        return False
    return work is None or (work.started, work.step) <= (stop.work.started, stop.work.step)


def _with_stall(after: GoodputAccount, before: GoodputAccount, moment: Moment) -> GoodputAccount:
    """Return the account with the time without a step since its begin, which a pass sees late."""
    if after.state is TimeUse.STALLED and moment.stalled is not None:
        late = max(timedelta(), after.since - moment.stalled)
        return after.move(late, to=TimeUse.STALLED, out_of=before.state)
    resumed = moment.work.resumed if moment.work is not None else None
    if before.state is not TimeUse.STALLED or resumed is None:
        return after
    if resumed <= (moment.was_stalled or before.since):
        return after  # it went on after an earlier stall
    again = max(timedelta(), after.since - resumed)
    return after.move(again, to=TimeUse.PRODUCTIVE, out_of=TimeUse.STALLED)


def _with_reports(account: GoodputAccount, moment: Moment) -> GoodputAccount:
    """Return the account with the progress lines since the pass before.

    With an open stop: a program that only went on keeps all its work, and a program that began
    again keeps its work up to the step at which it resumed; both close the stop. Without a stop, a
    program that began again by itself has lost the steps that it repeats.
    """
    work, stop = moment.work, account.stop
    if work is None or account.state is None:
        return account
    if stop is not None:
        if stop.work is not None and _goes_on(stop.work, work):
            runs = account.runs or moment.phase is Phase.RUNNING
            if runs and work.step > stop.work.step:  # the program did not restart
                return replace(_corrected(account, stop, kept=stop.time), stop=None)
            last = replace(stop, work=replace(work, resumed=None))
            return _corrected(account, last, kept=work.kept_until)
        if account.state is TimeUse.SUSPENDED and work != moment.before:
            return _saved_while_stopping(account, stop, work)
        if not account.trains:
            return account  # the first line is earlier than the phase Running: wait for the phase
        resumed = time_of(stop.work, work.start_step) if stop.work is not None else stop.kept_until
        account = replace(_corrected(account, stop, kept=resumed), stop=None)
        return _loaded(account, work, moment.now)
    if moment.before is None:
        return _loaded(account, work, moment.now)
    # A newer start that is before the last line is that of another sub-job: with a quorum the
    # sub-job that started first may be gone.
    if account.runs and work.started > moment.before.updated:
        return _restarted(account, moment.before, work, moment.now)
    return account


def _saved_while_stopping(
    account: GoodputAccount, stop: OpenStop, work: SubJobTraining
) -> GoodputAccount:
    """Return the account after a run that began to report while it was being suspended.

    Its steps count as suspended time: only the next run shows what is kept of the run before it.
    """
    resumed = time_of(stop.work, work.start_step) if stop.work is not None else stop.kept_until
    counted = _corrected(account, stop, kept=resumed)
    at = work.updated
    ended = replace(stop, time=at, since=at, kept_until=at)
    return replace(counted, stop=replace(ended, work=replace(work, resumed=None)))


def _goes_on(before: SubJobTraining, work: SubJobTraining) -> bool:
    """Return whether the program did not restart, but only waited for the stopped sub-jobs."""
    if work.started <= before.started:
        return True
    return work.started < before.updated and work.step >= before.step


def _loaded(account: GoodputAccount, work: SubJobTraining, now: datetime) -> GoodputAccount:
    """Return the account with the time before a program's first line counted as Starting."""
    if account.state is not TimeUse.PRODUCTIVE or work.started <= account.since:
        return account
    began = min(work.started, now)
    loading = replace(account, state=TimeUse.STARTING).until(began)
    return replace(loading, state=account.state)


def _trained_before(
    after: GoodputAccount, before: GoodputAccount, moment: Moment
) -> GoodputAccount:
    """Return the account with the steps before the phase Running counted as productive.

    `before` is the account before the transition: the use and begin of the time that has ended.
    """
    work = moment.work
    if work is None or before.state is None or before.runs or not after.trains:
        return after
    began = work.started
    if before.state is TimeUse.STARTING:
        if moment.before is not None:  # the line may be that of an earlier run
            began = max(began, before.since)
    elif began <= before.since:
        return after  # the line of an earlier run
    early = max(timedelta(), after.since - began)
    return after.move(early, to=TimeUse.PRODUCTIVE, out_of=before.state)


def _restarted(
    account: GoodputAccount, before: SubJobTraining, work: SubJobTraining, now: datetime
) -> GoodputAccount:
    """Return the account after a program restarted by itself: the repeated steps are lost."""
    began = max(account.since, min(work.started, now))
    kept = min(time_of(before, work.start_step), began)
    counted = account.until(began)
    stopped = before.updated if account.state is TimeUse.STALLED else began
    return counted.move(
        max(timedelta(), stopped - kept), to=TimeUse.LOST_TO_FAILURES, out_of=TimeUse.PRODUCTIVE
    )


def _stopped(
    after: GoodputAccount, trained: GoodputAccount, moment: Moment, cause: TimeUse
) -> GoodputAccount:
    """Return the account after a stop: the work since the last checkpoint is lost.

    `trained` is the account before the transition, `after` that with the time up to the stop
    counted. The stop stays open until a program reports a step, which shows what is kept.
    """
    work, stop = moment.work, trained.stop
    work = None if work is None else replace(work, resumed=None)
    if stop is not None:
        # The second stop came before any progress line: all time between the stops is lost, and
        # the step from which the program resumes is still unknown.
        lost = after.since - trained.since
        return after.move(lost, to=cause, out_of=TimeUse.PRODUCTIVE)
    since = trained.since if work is None else min(trained.since, work.started)
    kept = since if work is None else min(max(work.kept_until, since), moment.now)
    # A Degraded HyperJob loses the share of the time that counted as productive.
    part = trained.share if trained.state is TimeUse.DEGRADED else 1.0
    time = moment.now
    if trained.state is TimeUse.STALLED and work is not None:
        time, part = max(kept, work.updated), 0.0  # the time after the last step is not productive
    lost = (time - max(kept, trained.since)) * part
    lost += max(timedelta(), min(time, trained.since) - kept)
    return replace(
        after.move(lost, to=cause, out_of=TimeUse.PRODUCTIVE),
        stop=OpenStop(
            time=time, since=since, kept_until=kept, cause=cause, work=work, size=after.size
        ),
    )


def _corrected(account: GoodputAccount, stop: OpenStop, *, kept: datetime) -> GoodputAccount:
    """Return the account with the work before a stop kept up to a newly known moment.

    `kept` is brought between the begin of that work and the stop; it may be earlier than before.
    """
    kept = min(max(kept, stop.since), stop.time)
    counted = replace(account, size=stop.size).move(
        kept - stop.kept_until, to=TimeUse.PRODUCTIVE, out_of=stop.cause
    )
    return replace(counted, stop=replace(stop, kept_until=kept), size=account.size)


def parse_account(raw: object, size: str = "") -> GoodputAccount | None:
    """Parse `status.goodput`, with the present `size`; None if it is absent or unusable."""
    fields = mapping(raw)
    since, state = timestamp(fields.get("since")), one_of(TimeUse, fields.get("state"))
    if since is None or (state is None and fields.get("state")):
        return None
    spent, by_size = mapping(fields.get("milliseconds")), mapping(fields.get("productive"))
    return GoodputAccount(
        since=since,
        state=state,
        spent={use: count(spent.get(use)) for use in TimeUse if count(spent.get(use))},
        share=_decimal(fields.get("share")),
        stop=_parse_stop(mapping(fields.get("stopped"))),
        size=size,
        by_size={name: number for name in by_size if (number := count(by_size[name]))},
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
    if account.by_size:
        entry["productive"] = dict(account.by_size)
    if account.share:
        entry["share"] = f"{account.share:.3f}"
    if account.stop is not None:
        stop = account.stop
        entry["stopped"] = {
            **({} if stop.work is None else table.write(stop.work, Reported)),
            "time": micro_time(stop.time),
            "since": micro_time(stop.since),
            "keptUntil": micro_time(stop.kept_until),
            "cause": str(stop.cause),
            **({"size": stop.size} if stop.size else {}),
        }
    return entry


def _parse_stop(raw: Object) -> OpenStop | None:
    """Parse `status.goodput.stopped`; None if there is none, or an unusable one."""
    time, since, kept = (timestamp(raw.get(name)) for name in ("time", "since", "keptUntil"))
    cause, work = one_of(TimeUse, raw.get("cause")), table.read(SubJobTraining, raw)
    if time is None or since is None or kept is None or cause not in LOST:
        return None
    size = string(raw.get("size"))
    return OpenStop(time=time, since=since, kept_until=kept, cause=cause, work=work, size=size)


def _decimal(value: object) -> float:
    """Parse a share from 0 to 1."""
    try:
        return min(1.0, max(0.0, float(string(value) or "0")))
    except ValueError:
        return 0.0
