"""The time of all HyperJobs by queue, as their changes come in."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_controller.insight.timeuse import TimeUses
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.kube.client import EventType
from hyperjob_engine.status.goodput import GoodputAccount, account_object, ratio
from tests.unit.engine.builders import Object

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def hyperjob(account: GoodputAccount | None, queue: str = "q", step: int | None = None) -> Object:
    status: Object = {"queue": queue}
    if account is not None:
        status["goodput"] = account_object(account, now=T0)
    if step is not None:
        status["training"] = {"step": step}
    return {"status": status}


def test_time_runs_on_between_changes() -> None:
    uses = TimeUses()
    account = GoodputAccount(
        since=T0, state=TimeUse.PRODUCTIVE, spent={TimeUse.STARTING: 30_000, TimeUse.SUSPENDED: 999}
    )
    uses.seen(EventType.ADDED, None, hyperjob(account, step=3))
    told = dict(uses.seconds(T0 + timedelta(seconds=90)))
    assert told["q", "productive"] == 90
    assert told["q", "starting"] == 30
    assert dict(uses.ratios(T0 + timedelta(seconds=90))) == {("q",): 0.75}
    assert list(uses.reporting()) == [((), 1.0)]


def test_a_met_quorum_trains_while_the_hyperjob_is_degraded() -> None:
    uses = TimeUses()
    account = GoodputAccount(since=T0, state=TimeUse.DEGRADED, share=0.75)
    uses.seen(EventType.ADDED, None, hyperjob(account))
    assert dict(uses.ratios(T0 + timedelta(hours=1))) == {("q",): 0.75}


def test_of_hyperjobs_that_are_gone_nothing_is_left() -> None:
    uses, one = TimeUses(), hyperjob(GoodputAccount(since=T0, state=TimeUse.STARTING), step=1)
    moved = {"status": {**one["status"], "queue": "other"}}
    uses.seen(EventType.ADDED, None, one)
    uses.seen(EventType.MODIFIED, one, moved)
    assert {queue for (queue, _), _ in uses.seconds(T0)} == {"other"}
    uses.seen(EventType.DELETED, moved, moved)
    assert list(uses.seconds(T0)) == []
    assert list(uses.ratios(T0)) == []
    assert list(uses.reporting()) == [((), 0.0)]


ACCOUNTS = st.builds(
    GoodputAccount,
    since=st.integers(0, 10**6).map(lambda number: T0 + timedelta(milliseconds=number)),
    state=st.sampled_from([*TimeUse, None]),
    spent=st.dictionaries(st.sampled_from(TimeUse), st.integers(1, 10**9)),
    share=st.sampled_from([0.0, 0.25, 0.75, 1.0]),
)


@given(st.lists(st.lists(ACCOUNTS | st.none(), min_size=1, max_size=4), max_size=5))
def test_the_sums_are_those_of_the_accounts(histories: list[list[GoodputAccount | None]]) -> None:
    uses, now = TimeUses(), T0 + timedelta(hours=1)
    for history in histories:
        before: Object | None = None
        for account in history:
            after = hyperjob(account)
            kind = EventType.ADDED if before is None else EventType.MODIFIED
            uses.seen(kind, before, after)
            before = after
    last = [history[-1] for history in histories if history[-1] is not None]
    told = {use: number for (_, use), number in uses.seconds(now)}
    for use in TimeUse:
        wanted = sum(account.until(now).spent.get(use, 0) for account in last) / 1000
        assert abs(told.get(use, 0) - wanted) < 0.01
    if len(last) == 1:
        assert abs(dict(uses.ratios(now)).get(("q",), 0) - ratio(last[0], now)) < 1e-6
