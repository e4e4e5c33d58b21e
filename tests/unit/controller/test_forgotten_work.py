"""Of a deleted HyperJob, a Work that Karmada wrote again is deleted while its pods stay."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace as Fake
from typing import Any

import pytest

from hyperjob_controller.apply.applier import Result
from hyperjob_controller.observe import Observer
from hyperjob_controller.reconciler import Reconciler
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import DeleteWork
from tests.support.virtually import virtually

KEY, JOB = "ns/hj", "ns/hj-trainer-0"
WORK = DeleteWork(name="hj-trainer-0", clusters=("east",))


def open_wall(_keys: object, _place: object) -> Any:
    """Return a wall that lets exceptions through."""
    return nullcontext()


class World:
    """A controller after the deletion of a HyperJob, with what its members and Karmada have."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)
        self.jobs = {KEY: frozenset({JOB})}
        self.staying: dict[str, tuple[str, ...]] = {WORK.name: WORK.clusters}
        self.bound = False
        self.applied: list[Any] = []
        members: Any = Fake(
            strays=lambda: {JOB, f"other/{WORK.name}"},
            jobs_of=lambda key: self.jobs.get(key, frozenset()),
            staying=lambda _namespace, names, _now: {
                name: self.staying[name] for name in names if name in self.staying
            },
        )
        caches: Any = Fake(
            binding_of=lambda _job: {} if self.bound else None,
            job=lambda job: None if job == JOB else {},
            forget_status=lambda _key: None,
            hyperjob=lambda _key: None,
            jobs_of=lambda _key: (),
        )
        nothing: Any = Fake(forget=lambda *_: None)
        forgets: Any = Fake(forget=lambda key: self.jobs.pop(key, None), place=None)
        observer = Observer(
            caches,
            nothing,
            limits=nothing,
            admission=lambda: QueueAdmission.NONE,
            now=lambda: self.now,
            members=members,
        )
        self.reconciler = Reconciler(
            caches,
            nothing,
            observer=observer,
            applier=Fake(apply=self.apply),  # type: ignore[arg-type]
            writer=nothing,
            events=nothing,
            wall=Fake(turn=open_wall, around=open_wall),  # type: ignore[arg-type]
            meter=nothing,
            now=lambda: self.now,
            background=[forgets],
        )

    async def apply(self, namespace: str, actions: list[Any]) -> Result:
        self.applied += [(namespace, each) for each in actions]
        return Result(tuple(actions), (), stale=False)

    async def reconciled(self, *, after: float = 0) -> float | None:
        self.now += timedelta(seconds=after)
        wait = await self.reconciler.reconcile(KEY)
        return None if wait is None else wait.total_seconds()


async def test_a_work_that_stays_after_its_hyperjob_is_deleted_and_then_left_alone() -> None:
    world = World()
    assert await world.reconciled() == 30
    assert await world.reconciled(after=10) == 20, "another pass does not begin anew"
    assert not world.applied
    assert await world.reconciled(after=20) == 30
    assert world.applied == [("ns", WORK)]
    world.staying = {}
    assert await world.reconciled(after=30) is None
    assert await world.reconciled(after=30) is None
    assert world.applied == [("ns", WORK)]


async def test_pods_that_do_not_go_are_looked_at_for_some_minutes() -> None:
    world = World()
    passes = 0
    while await world.reconciled(after=30) is not None:
        passes += 1
    assert 5 <= passes <= 12


async def test_what_a_binding_has_is_no_forgotten_work() -> None:
    """`kubectl delete --cascade=orphan` leaves the vcjob, and its ResourceBinding."""
    world = World()
    world.bound = True
    assert await world.reconciled() == 30
    assert await world.reconciled(after=30) is None
    assert not world.applied


@pytest.mark.parametrize("bound", [False, True])
@virtually
async def test_a_new_leader_looks_once_for_the_works_of_hyperjobs_deleted_before(
    bound: bool,
) -> None:
    """A vcjob that Karmada has, as in the other namespace, belongs to somebody."""
    world = World()
    world.bound = bound
    await world.reconciler.sweep()
    assert world.applied == ([] if bound else [("ns", WORK)])
