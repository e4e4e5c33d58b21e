"""Never two leaders, and never none for long: candidates on one Lease, in virtual time."""

import asyncio
import copy
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.kube import errors
from hyperjob_core.kube.leaderelection import LeaderElector, LeadershipLostError, new_lease
from tests.support.virtually import virtually

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Server:
    """One Lease with an API server's rules, and the lines of the candidates to it."""

    def __init__(self):
        self.lease = None
        self.version = 0
        self.writes = []

    def store(self, lease):
        self.version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"] |= {"resourceVersion": str(self.version), "uid": "u1"}
        self.writes.append(self.lease["spec"])
        return copy.deepcopy(self.lease)


class Line:
    """A candidate's connection: `down` until a time, or slow by some seconds each way."""

    def __init__(self, server):
        self.server = server
        self.down_until = 0.0
        self.slow = 0.0
        self.slow_answers = 0.0
        self.hangs = False

    async def _travel(self):
        await asyncio.sleep(self.slow)
        if asyncio.get_running_loop().time() < self.down_until:
            if self.hangs:
                await asyncio.sleep(3600)
            raise errors.unreachable("PUT", "cut off")

    async def get(self, resource, name, *, namespace=None):
        await self._travel()
        if self.server.lease is None:
            raise errors.NotFound({"code": 404})
        found = copy.deepcopy(self.server.lease)
        await self._travel()
        return found

    async def create(self, resource, obj):
        await self._travel()
        if self.server.lease is not None:
            raise errors.AlreadyExists({"code": 409})
        stored = self.server.store(obj)
        await self._travel()
        await asyncio.sleep(self.slow_answers)
        return stored

    async def replace(self, resource, obj):
        await self._travel()
        if obj["metadata"]["resourceVersion"] != self.server.lease["metadata"]["resourceVersion"]:
            raise errors.Conflict({"code": 409})
        stored = self.server.store(obj)
        await self._travel()
        await asyncio.sleep(self.slow_answers)
        return stored


class Stage:
    """Candidates whose bodies note when they begin and end."""

    def __init__(self):
        self.server = Server()
        self.terms = []
        self.active = set()

    def candidate(self, identity, **options):
        line = Line(self.server)
        wall = options.pop("wall", None) or self.wall
        elector = LeaderElector(line, "karmada", "hyperjob", identity, wall=wall, **options)
        return elector, line

    @staticmethod
    def wall():
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    def body(self, identity, *, lasts=None, stops_in=0.0, fails=None):
        async def run():
            assert not self.active, "two leaders"
            self.active.add(identity)
            began = asyncio.get_running_loop().time()
            try:
                await asyncio.sleep(3600 if lasts is None else lasts)
                if fails:
                    raise fails
            finally:
                try:
                    await asyncio.sleep(stops_in)
                finally:
                    self.active.discard(identity)
                    ended = asyncio.get_running_loop().time()
                    self.terms.append((identity, round(began, 1), round(ended, 1)))

        return run


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtually
async def test_a_lease_of_another_program_is_not_acquired_until_it_is_deleted(caplog):
    stage = Stage()
    theirs = new_lease("karmada", "hyperjob", "", seconds=15, now=START, manager="another")
    before = stage.server.store(theirs)

    elector, _ = stage.candidate("a", manager="hyperjob-controller")
    task = asyncio.create_task(elector.run(stage.body("a", lasts=5)))
    await asyncio.sleep(60)
    assert stage.server.lease == before
    stage.server.lease = None
    await task
    assert stage.server.lease["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "hyperjob-controller"
    }
    assert len(stage.terms) == 1
    (said,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert "created by another program: delete it" in said.message


@virtually
async def test_an_absent_lease_is_created_and_given_up_at_the_end():
    stage = Stage()
    elector, _ = stage.candidate("a")
    await elector.run(stage.body("a", lasts=5))
    first, *_, last = stage.server.writes
    assert first == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-01T12:00:00.000000Z",
        "renewTime": "2026-03-01T12:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert last["holderIdentity"] == ""
    assert last["leaseTransitions"] == 0
    assert stage.terms == [("a", 0.0, 5.0)]


@virtually
async def test_the_leader_renews_every_two_seconds_and_keeps_its_acquire_time():
    stage = Stage()
    elector, _ = stage.candidate("a")
    await elector.run(stage.body("a", lasts=21))
    renewals = stage.server.writes[1:-1]
    assert 8 <= len(renewals) <= 10
    assert {spec["acquireTime"] for spec in renewals} == {"2026-03-01T12:00:00.000000Z"}
    times = [spec["renewTime"] for spec in renewals]
    assert times == sorted(set(times))


@virtually
async def test_the_next_leader_follows_at_once_when_the_lease_is_given_up():
    stage = Stage()
    first, _ = stage.candidate("a")
    second, _ = stage.candidate("b")
    task = asyncio.create_task(first.run(stage.body("a", lasts=30)))
    await asyncio.sleep(1)
    assert stage.active == {"a"}
    await second.run(stage.body("b", lasts=1))
    assert second.leader == ""
    await task
    (_, _, ended), (who, began, _) = stage.terms
    assert who == "b"
    assert began - ended <= 2.5
    assert [spec["leaseTransitions"] for spec in stage.server.writes][-1] == 1


@virtually
async def test_a_leader_that_dies_is_followed_when_its_lease_expires():
    stage = Stage()
    dying, line = stage.candidate("a")
    task = asyncio.create_task(dying.run(stage.body("a")))
    await asyncio.sleep(5)
    line.down_until = 1e9
    await cancelled(task)
    second, _ = stage.candidate("b")
    await second.run(stage.body("b", lasts=1))
    (_, _, died), (_, began, _) = stage.terms
    assert 15 <= began - died <= 18


@pytest.mark.parametrize("dies", [False, True])
@virtually
async def test_the_next_leader_reads_the_annotations_of_the_last_one_before_it_replaces_them(dies):
    stage, left = Stage(), {"a": "", "b": ""}

    def of(identity):
        return lambda: {"seen": left[identity]} if left[identity] else {}

    first, line = stage.candidate("a", noted=of("a"))
    task = asyncio.create_task(first.run(stage.body("a")))
    await asyncio.sleep(5)
    left["a"] = "by a"
    if dies:
        await asyncio.sleep(3)
        line.down_until = 1e9
    await cancelled(task)
    second, _ = stage.candidate("b", noted=of("b"))

    async def body():
        assert second.annotations == {"seen": "by a"}
        left["b"] = "by b"
        await asyncio.sleep(5)

    await second.run(body)
    assert second.annotations == {"seen": "by b"}
    assert stage.server.lease["metadata"]["annotations"] == {"seen": "by b"}


@pytest.mark.parametrize(("size", "stays"), [(1_000, True), (200_000, False)])
@virtually
async def test_large_annotations_of_others_leave_a_lease_that_the_server_takes(size, stays):
    stage = Stage()
    first, _ = stage.candidate("a", noted=lambda: {"seen": "by a"})
    await first.run(stage.body("a", lasts=5))
    stage.server.lease["metadata"]["annotations"]["other"] = "x" * size
    second, _ = stage.candidate("b", noted=lambda: {"seen": "by b"})
    await second.run(stage.body("b", lasts=5))
    found = stage.server.lease["metadata"]["annotations"]
    assert found["seen"] == "by b"
    assert ("other" in found) is stays


@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "silent"])
@virtually
async def test_a_leader_that_is_cut_off_stops_before_another_may_begin(hangs, caplog):
    stage = Stage()
    first, line = stage.candidate("a")
    second, _ = stage.candidate("b")
    task = asyncio.create_task(first.run(stage.body("a", stops_in=4.5)))
    await asyncio.sleep(20)
    waiting = asyncio.create_task(second.run(stage.body("b", lasts=5)))
    await asyncio.sleep(10)
    line.down_until, line.hangs = 1e9, hangs
    with pytest.raises(LeadershipLostError, match=r"within [0-9.]+s$"):
        await task
    await waiting
    (warning,) = (each for each in caplog.records if each.levelname == "WARNING")
    assert warning.getMessage() == "Cannot renew the lease in time"
    assert warning.error == ("no answer in time" if hangs else "PUT: cut off"), "the cause"
    assert [who for who, _, _ in stage.terms] == ["a", "b"]
    (_, _, stopped), (_, began, _) = stage.terms
    assert stopped <= began


@virtually
async def test_a_candidate_that_cannot_acquire_the_lease_says_why_once(caplog):
    stage = Stage()
    elector, line = stage.candidate("a")
    line.down_until = 60.0
    await elector.run(stage.body("a", lasts=1))
    (warning,) = (each for each in caplog.records if each.levelname == "WARNING")
    assert warning.getMessage() == "Cannot acquire the lease"
    assert warning.error == "PUT: cut off"


@virtually
async def test_a_late_answer_to_a_renewal_makes_the_term_no_longer():
    stage = Stage()
    first, line = stage.candidate("a")
    second, _ = stage.candidate("b")
    task = asyncio.create_task(first.run(stage.body("a", stops_in=4.9)))
    waiting = asyncio.create_task(second.run(stage.body("b", lasts=5)))
    await asyncio.sleep(10)
    line.slow_answers = 4.9
    await asyncio.sleep(2.5)  # a renewal is on its way back
    line.down_until = 1e9
    with pytest.raises(LeadershipLostError):
        await task
    await waiting
    assert [who for who, _, _ in stage.terms] == ["a", "b"]


@virtually
async def test_a_short_outage_is_bridged():
    stage = Stage()
    elector, line = stage.candidate("a")
    task = asyncio.create_task(elector.run(stage.body("a", lasts=60)))
    for _ in range(4):
        await asyncio.sleep(10)
        line.down_until = asyncio.get_running_loop().time() + 6
    await task
    assert stage.terms == [("a", 0.0, 60.0)]


@virtually
async def test_a_wrong_clock_moves_no_lease():
    stage = Stage()
    first, _ = stage.candidate("a", wall=lambda: datetime(2001, 1, 1, tzinfo=UTC))
    second, _ = stage.candidate("b", wall=lambda: datetime(2099, 1, 1, tzinfo=UTC))
    tasks = [
        asyncio.create_task(elector.run(stage.body(elector.identity)))
        for elector in (first, second)
    ]
    await asyncio.sleep(300)
    assert stage.active == {"a"}
    for task in tasks:
        await cancelled(task)
    assert [who for who, _, _ in stage.terms] == ["a"]


@virtually
async def test_a_lease_that_was_taken_is_not_written_again():
    stage = Stage()
    elector, _ = stage.candidate("a")
    task = asyncio.create_task(elector.run(stage.body("a")))
    await asyncio.sleep(5)
    stage.server.store(
        stage.server.lease | {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}
    )
    with pytest.raises(LeadershipLostError, match="thief has it"):
        await task
    assert stage.server.writes[-1]["holderIdentity"] == "thief"
    assert stage.terms[0][2] < 10


@virtually
async def test_what_the_body_raises_comes_out_and_the_lease_is_given_up():
    stage = Stage()
    elector, _ = stage.candidate("a")
    with pytest.raises(LookupError, match="a bug"):
        await elector.run(stage.body("a", lasts=3, fails=LookupError("a bug")))
    assert stage.server.writes[-1]["holderIdentity"] == ""


@virtually
async def test_cancelling_stops_the_body_before_the_lease_is_given_up():
    stage = Stage()
    elector, _ = stage.candidate("a")
    task = asyncio.create_task(elector.run(stage.body("a", stops_in=3)))
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.sleep(1)
    task.cancel()  # an impatient caller
    assert stage.server.lease["spec"]["holderIdentity"] == "a"
    await cancelled(task)
    assert stage.terms == [("a", 0.0, 8.0)]
    assert stage.server.writes[-1]["holderIdentity"] == ""


@virtually
async def test_a_body_that_does_not_stop_in_time_is_reported_as_the_lease_expires(caplog):
    stage = Stage()
    overdue = []

    loop = asyncio.get_running_loop()
    elector, line = stage.candidate("a", overdue=lambda: overdue.append(loop.time()))
    task = asyncio.create_task(elector.run(stage.body("a", stops_in=60)))
    await asyncio.sleep(1)
    line.down_until = 1e9
    with pytest.raises(LeadershipLostError):
        await task
    assert [round(moment) for moment in overdue] == [15]
    assert "The lease expires while its work still runs" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"lease_seconds": 10, "renew_seconds": 10},
        {"renew_seconds": 2.0, "retry_seconds": 2.0},
        {"retry_seconds": 0},
        {"identity": ""},
    ],
    ids=str,
)
def test_durations_that_could_make_two_leaders_are_refused(options):
    identity = options.pop("identity", "a")
    with pytest.raises(ValueError, match=r"must hold|identity"):
        LeaderElector(Line(Server()), "n", "l", identity, **options)


faults = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.floats(0, 300), st.floats(0, 60), st.floats(0, 3), st.booleans()
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(faults=faults, seed=st.integers(0, 2**16))
@virtually
async def test_whatever_the_network_does_there_is_at_most_one_leader(faults, seed):
    random.seed(seed)
    stage = Stage()

    async def candidate(identity):
        elector, line = stage.candidate(identity)
        lines[identity] = line
        while True:
            try:
                await elector.run(stage.body(identity, stops_in=random.uniform(0, 4.9)))
            except LeadershipLostError:
                continue

    async def disturb(identity, at, lasts, slow, hangs):
        await asyncio.sleep(at)
        line = lines[identity]
        line.down_until = asyncio.get_running_loop().time() + lasts
        line.slow, line.hangs = slow, hangs
        await asyncio.sleep(lasts)
        line.slow, line.hangs = 0.0, False

    lines = {}
    tasks = [asyncio.create_task(candidate(identity)) for identity in "abc"]
    await asyncio.sleep(0.01)
    tasks += [asyncio.create_task(disturb(*fault)) for fault in faults]
    await asyncio.sleep(500)
    assert stage.active, "nobody leads although the network is well"
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert result is None or isinstance(result, asyncio.CancelledError), result
