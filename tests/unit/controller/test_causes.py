"""Why a sub-job failed: which container failed first, and nothing happens before it is known."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from hyperjob_controller.members.causes import CauseReader
from hyperjob_core.api import table
from hyperjob_core.api.launchers import lost_a_peer
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.kube.transport import Response
from hyperjob_engine.lifecycle.failures import CAUSE_TIME_LIMIT, unexplained
from hyperjob_engine.members.podfailures import first_failure
from hyperjob_engine.model.observed import FailurePolicy, Observed
from hyperjob_engine.model.planned import FailedJob
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import container_text
from tests.support.apiserver import refusal
from tests.support.walls import unexpected
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
    vcjob_status,
)

KEY = "default/hj"
NAME = "hj-trainer-0"
UID = f"uid-{NAME}"
OOM = ContainerFailure(
    pod=f"{NAME}-worker-3", task="worker", container="main", exit_code=137, reason="OOMKilled"
)


def pod(index: int, *containers: Object, phase: str = "Failed", **status: Any) -> Object:
    metadata = {"name": f"{NAME}-worker-{index}", "labels": {"volcano.sh/task-spec": "worker"}}
    return {
        "metadata": metadata,
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }


def ended(code: int, at: str = "", reason: str = "Error", name: str = "main") -> Object:
    state = {"exitCode": code, "reason": reason, "finishedAt": at}
    return {"name": name, "state": {"terminated": state}}


FIRST = {
    "nothing failed": ([pod(0, ended(0), phase="Succeeded")], ""),
    "no pods at all": ([], ""),
    "the one that ended first": (
        [pod(0, ended(143, "2026-01-02T03:00:09Z")), pod(1, ended(1, "2026-01-02T03:00:02Z"))],
        f"pod {NAME}-worker-1, container main: exit code 1, Error",
    ),
    "a sidecar that failed beside a container that completed": (
        [pod(0, ended(0, "2026-01-02T03:00:01Z"), ended(2, "2026-01-02T03:00:02Z", name="side"))],
        f"pod {NAME}-worker-0, container side: exit code 2, Error",
    ),
    "an evicted pod": (
        [pod(0, reason="Evicted", message="The node was low on memory.")],
        f"pod {NAME}-worker-0: Evicted: The node was low on memory.",
    ),
    "a container that exceeded its memory limit": (
        [
            pod(0, ended(137, reason="OOMKilled"))
            | {
                "spec": {
                    "containers": [{"name": "main", "resources": {"limits": {"memory": "32Gi"}}}]
                }
            }
        ],
        (
            f"pod {NAME}-worker-0, container main: exit code 137"
            " (killed by the kernel for its memory), OOMKilled: memory limit 32Gi"
        ),
    ),
    "a container that was stopped while it was started again after a failure": (
        [pod(0, ended(143, "2026-01-02T03:00:09Z") | {"lastState": ended(7)["state"]})],
        f"pod {NAME}-worker-0, container main: exit code 7, Error",
    ),
    "an init container": (
        [pod(0, initContainerStatuses=[ended(5, name="setup")])],
        f"pod {NAME}-worker-0, container setup: exit code 5, Error",
    ),
    "malformed": ([{"status": {"containerStatuses": [{"state": "x"}], "phase": 3}}, {}], ""),
}


def test_a_failure_has_the_rank_of_its_pod() -> None:
    raw = pod(1, ended(1))
    raw["metadata"]["labels"]["volcano.sh/task-index"] = "1"
    variable = {"name": "HYPERJOB_RANK_OFFSET", "value": "6"}
    raw["spec"] = {"containers": [{"name": "main", "env": [variable]}]}
    found = first_failure([raw])
    assert found.rank == 7
    assert container_text(found).startswith(f"pod {NAME}-worker-1 (rank 7), container main: ")
    assert table.read(ContainerFailure, table.write(found)) == found


@pytest.mark.parametrize(("pods", "text"), FIRST.values(), ids=list(FIRST))
def test_the_container_that_failed_first_is_the_cause(pods: list[Object], text: str) -> None:
    found = first_failure(pods)
    assert (container_text(found) if found is not None else "") == text


def crash(index: int, code: int, last: str, at: str) -> Object:
    made = ended(code, at)
    made["state"]["terminated"]["message"] = f"Traceback\n{last}"
    return pod(index, made)


def test_of_failures_in_the_same_seconds_the_one_that_lost_no_peer_is_the_cause() -> None:
    own = "ValueError: a batch has no labels"
    pods = [
        crash(0, 1, "ConnectionError: a rank is gone", "2026-01-02T03:02:00Z"),
        crash(1, 1, own, "2026-01-02T03:02:01Z"),
        crash(2, 143, '{"hyperjob": {"step": 4}}', "2026-01-02T03:02:00Z"),
        crash(3, 1, "OSError: later", "2026-01-02T03:02:09Z"),
    ]
    found = first_failure(pods)
    assert (found.pod, found.last_line) == (f"{NAME}-worker-1", own)
    stopped = first_failure([pods[2]])
    assert stopped.exit_code == 143
    torch = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:4"
    assert first_failure([crash(0, 1, torch, ""), pods[1]]) is not None
    assert lost_a_peer(ContainerFailure(pod="p", message=torch))


def failed(index: int = 0, *, at: str = "2026-01-02T03:02:00Z") -> list[Object]:
    name = f"hj-trainer-{index}"
    status = vcjob_status("Failed", since=at)
    return [job(name), policy(name), binding(name, cluster="a", status=status)]


def seen(
    *objects: Object,
    causes: dict[str, ContainerFailure | None] | None,
    policy: bool = True,
    replicas: int = 1,
) -> Observed:
    spec: Object = {"failurePolicy": {"maxRestarts": 3}} if policy else {}
    raw = hyperjob(group(replicas=replicas), status={"state": {"phase": "Running"}}, **spec)
    return replace(observed(raw, *objects, clusters=(cluster("a"),)), causes=causes)


@pytest.mark.parametrize("policy", [True, False], ids=["restarts", "ends"])
def test_nothing_follows_from_a_failure_before_its_cause_is_read(policy: bool) -> None:
    asked = plan(seen(*failed(), causes={}, policy=policy))
    assert asked.failed == (FailedJob(name=NAME, uid=UID, cluster="a"),)
    assert (asked.actions, asked.status, asked.requeue_after) == ((), None, CAUSE_TIME_LIMIT)
    answers: list[dict[str, ContainerFailure | None] | None] = [{UID: None}, {UID: OOM}, None]
    for known in answers:
        went_on = plan(seen(*failed(), causes=known, policy=policy))
        assert went_on.failed == ()
        assert went_on.status["state"]["phase"] == ("Restarting" if policy else "Failed")


def test_the_cause_is_in_the_status_in_its_messages_and_in_an_event() -> None:
    ends = plan(seen(*failed(), causes={UID: OOM}, policy=False))
    (entry,) = ends.status["jobs"]
    assert entry["failure"] == table.write(OOM)
    assert container_text(OOM) in entry["message"]
    assert container_text(OOM) in ends.status["state"]["message"]
    assert [event.reason for event in ends.events] == ["Failed", "JobFailed"]
    restarts = plan(seen(*failed(), causes={UID: OOM}))
    assert restarts.status["jobs"][0].get("failure") is None
    assert any(
        event.note == f"{NAME} failed on a: {container_text(OOM)}" for event in restarts.events
    )


def test_the_first_failures_alone_are_asked_about() -> None:
    many = [
        item for index in range(9) for item in failed(index, at=f"2026-01-02T03:02:0{9 - index}Z")
    ]
    observed_ = seen(*many, causes={}, replicas=9)
    asked = plan(observed_).failed
    assert [each.name[-1] for each in asked] == ["8", "7", "6", "5"]
    known = dict.fromkeys((each.uid for each in asked), OOM)
    assert plan(replace(observed_, causes=known)).failed == ()


LOST = "Traceback\nConnectionError: a rank is gone"
RAISED = "Traceback\nValueError: a batch has no labels"
PEER = ContainerFailure(pod="p-0", container="main", exit_code=1, message=LOST, rank=0)
OWN = ContainerFailure(pod="p-1", container="main", exit_code=1, message=RAISED, rank=1)


def running(index: int) -> list[Object]:
    name = f"hj-trainer-{index}"
    return [job(name), policy(name), binding(name, cluster="a", status=vcjob_status("Running"))]


def test_a_failure_that_follows_from_another_waits_for_that_one() -> None:
    objects = [*failed(0), *running(1)]
    first, other = (FailedJob(name=f"hj-trainer-{i}", uid=f"uid-hj-trainer-{i}", cluster="a")
                    for i in (0, 1))  # fmt: skip
    asked_at = NOW - timedelta(seconds=1)
    look = replace(
        seen(*objects, causes={first.uid: PEER}, replicas=2), asked={first.uid: asked_at}
    )
    waits = plan(look)
    assert (waits.failed, waits.status) == ((first, other), None)
    assert waits.requeue_after == CAUSE_TIME_LIMIT - timedelta(seconds=1)
    over = plan(replace(look, asked={first.uid: NOW - CAUSE_TIME_LIMIT}))
    assert "a rank is gone" in str(over.status["state"]["message"])
    ends = replace(seen(*failed(0), causes={first.uid: PEER}), asked={first.uid: asked_at})
    assert plan(ends).status is not None, "without a pod left there is no other cause"
    assert plan(replace(ends, pods_left={first.name: 1})).failed == (first,)
    alone = plan(replace(look, causes={first.uid: OWN}))
    assert alone.status is not None, "a cause of its own is not waited for"


@pytest.mark.parametrize("policy", [True, False], ids=["with a policy", "without"])
def test_the_first_cause_is_named_and_not_the_failures_that_follow_from_it(policy: bool) -> None:
    objects = [*failed(0, at="2026-01-02T03:02:00Z"), *failed(1, at="2026-01-02T03:02:04Z")]
    causes = {"uid-hj-trainer-0": PEER, "uid-hj-trainer-1": OWN}
    look = seen(*objects, causes=causes, replicas=2)
    wanted = FailurePolicy(max_restarts=0) if policy else None
    told = plan(replace(look, hyperjob=replace(look.hyperjob, failure_policy=wanted)))
    assert [entry["failure"]["rank"] for entry in told.status["jobs"]] == [0, 1]
    message = told.status["state"]["message"]
    assert "a batch has no labels" in message
    assert "a rank is gone" not in message.partition("a batch has no labels")[0]


def test_a_pod_that_failed_of_itself_is_recorded_while_its_vcjob_still_runs() -> None:
    look = seen(
        *failed(0), *running(1), replicas=2,
        causes={"uid-hj-trainer-0": PEER, "uid-hj-trainer-1": OWN},
    )  # fmt: skip
    told = plan(replace(look, asked={"uid-hj-trainer-0": NOW - CAUSE_TIME_LIMIT}))
    runs = [entry["history"][-1]["failure"]["message"] for entry in told.status["jobs"]]
    assert runs == [PEER.message, OWN.message]


def test_further_failures_are_read_while_each_follows_from_another() -> None:
    many = [item for index in range(9) for item in failed(index, at=f"2026-01-02T03:02:0{index}Z")]
    causes: dict[str, ContainerFailure | None] = {}
    for read in (4, 8, 9):
        asked = plan(seen(*many, causes=causes, replicas=9)).failed
        assert len(asked) == read
        causes = dict.fromkeys((each.uid for each in asked), PEER)
    assert plan(seen(*many, causes=causes, replicas=9)).status is not None


def test_the_pods_of_a_cluster_that_is_out_of_reach_are_not_asked_for() -> None:
    gone = replace(cluster("a", unusable="x"), not_ready_since=NOW)
    observed_ = replace(seen(*failed(), causes={}), clusters=(gone,))
    assert unexplained(observed_, ()) is None
    assert plan(observed_).failed == ()


@dataclass
class Members:
    """Answers for the cluster proxy; `answer` gives the pods, raises, or never ends."""

    answer: Any = None
    calls: list[tuple[str, Any]] = field(default_factory=list)
    log: bytes | None = None

    async def stream(self, path: str, **_: object) -> AsyncIterator[bytes]:
        self.calls.append((path, None))
        if self.log is None:
            raise refusal(404, "NotFound")
        yield self.log

    async def raw(self, method: str, path: str, *, params: Any) -> Response:
        self.calls.append((f"{method} {path}", params))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return Response(200, {}, orjson.dumps(self.answer))


@dataclass
class World:
    reader: CauseReader
    keys: asyncio.Queue[str]
    clock: list[datetime]

    async def ask(self, *jobs: FailedJob) -> Any:
        self.reader.ask(KEY, jobs)
        for _ in jobs:
            assert await asyncio.wait_for(self.keys.get(), 30) == KEY
        return self.reader.causes(KEY)


@asynccontextmanager
async def reading(
    members: Members,
    *,
    limit: float = 30,
    watched: Mapping[tuple[str, str], Any] | None = None,
    read_logs: bool = False,
) -> AsyncIterator[World]:
    keys: asyncio.Queue[str] = asyncio.Queue()
    clock = [NOW]
    reader = CauseReader(
        members,  # type: ignore[arg-type]  # has the one call that is made
        answered=keys.put_nowait,
        now=lambda: clock[0],
        time_limit=timedelta(seconds=limit),
        faulty=unexpected,
        watched=lambda cluster, job: (watched or {}).get((cluster, job)),
        read_logs=read_logs,
    )
    task = asyncio.create_task(reader.run())
    try:
        yield World(reader, keys, clock)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


FAILED = FailedJob(name=NAME, uid="u1", cluster="a")


async def test_the_failed_pods_are_read_through_the_cluster_proxy_once() -> None:
    members = Members({"items": [pod(3, ended(137, reason="OOMKilled"))]})
    async with reading(members) as world:
        assert await world.ask(FAILED) == {"u1": OOM}
        world.reader.ask(KEY, [FAILED])
        assert world.reader.causes(KEY) == {"u1": OOM}
        world.reader.planned(observed(), plan(observed()))
        assert world.reader.causes(KEY) == {"u1": OOM}, "the plan has no failure"
        world.reader.forget(KEY)
        assert world.reader.causes(KEY) == {}
    ((call, params),) = members.calls
    assert call == (
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/a/proxy/api/v1/namespaces/default/pods"
    )
    assert params["labelSelector"] == f"volcano.sh/job-name={NAME}"
    assert params["fieldSelector"] == "status.phase=Failed"


TORCHRUN = (
    "Root Cause (first observed failure):\n[0]:\n  rank      : 2 (x)\n  exitcode  : 1 (pid: 7)"
)


@pytest.mark.parametrize("readable", [True, False])
async def test_the_cause_of_a_launcher_is_looked_for_in_its_log(readable: bool) -> None:
    log = "[rank2]: Traceback (most recent call last):\n[rank2]: ValueError: no labels\n" + TORCHRUN
    stamped = "".join(f"2026-01-02T03:01:00.0Z {text}\n" for text in log.splitlines())
    container = ended(1)
    container["state"]["terminated"]["message"] = TORCHRUN
    members = Members({"items": [pod(3, container)]}, log=stamped.encode() if readable else None)
    shown: dict[tuple[str, str], Any] = {}
    async with reading(members, watched=shown, read_logs=True) as world:
        (found,) = (await world.ask(FAILED)).values()
        assert (found.rank, found.exit_code) == (2, 1)
        assert found.last_line.startswith("ValueError: no labels" if readable else "rank 2 failed")
        shown["a", f"default/{NAME}"] = first_failure([pod(3, container)])
        assert world.reader.causes(KEY) == {"u1": found}, "the watch has less of the same failure"
    assert len(members.calls) == 2


async def test_a_cause_is_not_known_before_the_log_of_its_launcher_is_read() -> None:
    container = ended(1)
    container["state"]["terminated"]["message"] = TORCHRUN
    asked = asyncio.Event()

    class Silent(Members):
        async def stream(self, path: str, **_: object) -> AsyncIterator[bytes]:
            asked.set()
            await asyncio.Event().wait()
            yield b""

    async with reading(Silent({"items": [pod(3, container)]}), read_logs=True) as world:
        world.reader.ask(KEY, [FAILED])
        await asyncio.wait_for(asked.wait(), 30)
        assert world.reader.causes(KEY) == {}
        world.clock[0] += timedelta(seconds=31)
        assert world.reader.causes(KEY)["u1"].exit_code == 1, "the pod says it without the log"


async def test_a_pod_that_fails_later_is_known_from_the_watch_of_its_member() -> None:
    shown: dict[tuple[str, str], Any] = {}
    async with reading(Members({"items": []}), watched=shown) as world:
        assert await world.ask(FAILED) == {"u1": None}
        assert world.reader.asked(KEY) == {"u1": NOW}
        for failure in (PEER, OWN):
            shown["a", f"default/{NAME}"] = failure
            assert world.reader.causes(KEY) == {"u1": failure}
        shown["a", f"default/{NAME}"] = PEER
        read = await world.ask(replace(FAILED, uid="u2"))
        assert read == {"u2": PEER}
        shown["a", f"default/{NAME}"] = OWN
        assert world.reader.causes(KEY) == {"u2": OWN}, "it comes before the one that was read"


async def test_a_failure_that_the_watch_of_its_member_has_shown_needs_no_request() -> None:
    members = Members({"items": [pod(3, ended(1))]})
    async with reading(members, watched={("a", f"default/{NAME}"): OOM}) as world:
        assert await world.ask(FAILED) == {"u1": OOM}
        assert members.calls == []
        found = await world.ask(replace(FAILED, uid="u2", cluster="b"))
    assert found["u2"].exit_code == 1
    assert len(members.calls) == 1


@pytest.mark.parametrize(
    "answer", [refusal(503, "ServiceUnavailable"), [], {"items": 3}, {"items": []}]
)
async def test_a_cause_that_cannot_be_read_counts_as_unknown(answer: object) -> None:
    async with reading(Members(answer)) as world:
        assert await world.ask(FAILED) == {"u1": None}


async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    async with reading(Members(), limit=0.05) as world:
        assert await world.ask(FAILED) == {"u1": None}
    silent = Members()
    async with reading(silent) as world:
        world.reader.ask(KEY, [FAILED])
        assert world.reader.causes(KEY) == {}
        world.clock[0] += timedelta(seconds=31)
        assert world.reader.causes(KEY) == {"u1": None}, "the limit alone decides"


async def test_a_cluster_that_refuses_its_pods_is_left_in_peace_for_a_while() -> None:
    refused: KubeError = refusal(403, "Forbidden")
    assert isinstance(refused, Forbidden)
    members = Members(refused)
    async with reading(members) as world:
        await world.ask(FAILED)
        await world.ask(replace(FAILED, uid="u2"))
        assert len(members.calls) == 1
        world.clock[0] += timedelta(minutes=10)
        await world.ask(replace(FAILED, uid="u3"))
        assert len(members.calls) == 2
