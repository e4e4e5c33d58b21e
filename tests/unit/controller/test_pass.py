"""One pass and the memory around it, on a client that has its API server in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client.metrics import MetricWrapperBase

from hyperjob_controller import memory
from hyperjob_controller.insight.measures import Meter, Scrape
from hyperjob_controller.manager import Manager
from hyperjob_controller.observe import Parsed
from hyperjob_controller.options import Options
from hyperjob_controller.reservations import Reservations
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import ApiServer, refusal
from tests.support.controller import round_is_due
from tests.support.memory import differences, remembered
from tests.support.queues import due_in
from tests.unit.engine.builders import GPU, binding, group, hyperjob, vcjob_status

Object = dict[str, Any]
# What is no memory of decisions: copies of the API server, what was worked out once, counters.
OTHERS = (Informer, Kube, MetricWrapperBase, Scrape, Parsed, Memo)


def member(name: str, gpus: int) -> Object:
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "apiEnablements": [
                {"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]}
            ],
            "resourceSummary": {"allocatable": {GPU: str(gpus), "pods": "1000"}, "allocated": {}},
        },
    }


def named(name: str, *groups: Object, **spec: Any) -> Object:
    raw = hyperjob(*groups, name=name, **spec)
    raw["metadata"]["uid"] = f"hj-{name}"
    return raw


@asynccontextmanager
async def running(
    server: ApiServer, admission: QueueAdmission | None = QueueAdmission.NONE, **options: Any
) -> AsyncIterator[Manager]:
    manager = Manager(
        server.kube, Options(queue_admission=admission, **{"leader_elect": False, **options})
    )
    task = asyncio.create_task(manager.run())
    try:
        async with asyncio.timeout(20):
            await manager.working.wait()
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(found: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not found():  # noqa: ASYNC110 - what is awaited is memory, which tells no event
            await asyncio.sleep(0.01)


def seen_by_a_round(manager: Manager, cluster: Object) -> bool:
    """Return whether a round of the queue engine has seen a cluster as it was put."""
    seen = manager.caches.clusters.get(cluster["metadata"]["name"])
    version = (seen or {}).get("metadata", {}).get("resourceVersion")
    return version == cluster["metadata"]["resourceVersion"] and not round_is_due(manager)


def status(server: ApiServer, name: str = "hj") -> Object:
    found: Object = server.get(HYPERJOBS, f"default/{name}").get("status", {})
    return found


def reason(server: ApiServer, name: str = "hj") -> str:
    return str(status(server, name).get("state", {}).get("reason", ""))


def soon(manager: Manager, name: str) -> bool:
    """Tell whether a pass comes within seconds."""
    due = due_in(manager.queue, f"default/{name}")
    return due is not None and due < 3


def crowded() -> ApiServer:
    """One cluster, full of one HyperJob; two others wait behind it."""
    server = ApiServer()
    server.put(CLUSTERS, member("a", 16))
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    for age, name in enumerate(("hj", "second", "third")):
        raw = named(name, group(replicas=2, gpus=8))
        raw["metadata"]["creationTimestamp"] = f"2026-01-02T03:00:0{age}Z"
        server.put(HYPERJOBS, raw)
    return server


def alone(gpus: int = 16) -> ApiServer:
    """One cluster of so many GPUs, and HyperJob hj of one sub-job."""
    server = ApiServer()
    server.put(CLUSTERS, member("a", gpus))
    server.put(HYPERJOBS, named("hj", group(replicas=1)))
    return server


@pytest.mark.parametrize("admission", QueueAdmission)
async def test_observing_twice_and_the_debug_page_change_nothing(admission: QueueAdmission) -> None:
    server = crowded()
    async with running(server, admission) as manager:
        await until(lambda: len(server.items(VCJOBS)) == 2)
        await until(lambda: reason(server, "second") and reason(server, "third"))
        await until(lambda: not any(soon(manager, each) for each in ("hj", "second", "third")))

    # It has stopped, so that nothing else changes what it remembers.
    before = remembered(manager, but=OTHERS)
    for name in ("hj", "second", "third", "none"):
        for _ in range(2):
            manager.observer.objects_of(f"default/{name}")
    assert differences(before, remembered(manager, but=OTHERS)) == []
    app = web.Application()
    for path, handler in manager.debug_routes().items():
        app.router.add_get(path, handler)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        session.get(server.make_url("/debug/memory")) as response,
    ):
        memory = await response.text()
        if admission is QueueAdmission.BUILTIN:
            assert (
                "\nAdmission: default/hj holds hj-trainer-0, hj-trainer-1; default/second waits"
                in memory
            )
        assert "object at" not in memory
    assert differences(before, remembered(manager, but=OTHERS)) == []


async def test_what_must_be_learnt_is_seen_by_that_comparison() -> None:
    """The comparison reaches what the controller remembers."""
    server = crowded()
    async with running(server, QueueAdmission.BUILTIN) as manager:
        await until(lambda: reason(server, "third"))
        before = remembered(manager, but=OTHERS)
        server.remove(HYPERJOBS, "default/third")
        await until(lambda: remembered(manager, but=OTHERS) != before)


async def test_a_status_that_an_older_definition_dropped_is_written_when_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing happens to the HyperJob when its definition changes, so no watch event wakes it."""
    monkeypatch.setattr("hyperjob_controller.reconciler.PRUNED_RECHECK", timedelta(seconds=0.05))
    server = alone()
    server.prunes = ("state", "jobs", "clusters")
    events: list[str] = []
    async with running(server) as manager:
        manager.recorder.event = lambda *said: events.append(said[2])  # type: ignore[method-assign]
        await until(lambda: server.calls.count(("patch", "hyperjobs", "hj/status")) > 3)
        assert "state" not in status(server)
        told = len(events)
        await until(lambda: server.calls.count(("patch", "hyperjobs", "hj/status")) > 6)
        assert len(events) == told, "what cannot be stored is told no more"
        server.prunes = ()
        await until(lambda: reason(server) and status(server).get("jobs"))
        await until(lambda: not len(manager.queue) and due_in(manager.queue, "default/hj") is None)


async def test_what_an_older_definition_stores_of_a_status_is_told() -> None:
    """Nothing has room, so no vcjob is made: all Events are those of the status."""
    server = ApiServer()
    server.put(CLUSTERS, member("a", 0))
    server.prunes = ("clusters", "splitCount")
    events: list[str] = []
    async with running(server) as manager:
        manager.recorder.event = lambda *said: events.append(said[2])  # type: ignore[method-assign]
        server.put(HYPERJOBS, named("hj", group(replicas=1)))
        await until(lambda: reason(server) and events)
    assert not status(server).keys() & set(server.prunes)


@pytest.mark.parametrize("gpus", [16, 0])
async def test_a_status_write_that_conflicts_is_made_again(gpus: int) -> None:
    """Where nothing has room, nothing is made, and no event of it calls for another pass."""
    server = alone(gpus)
    refused: list[str] = []

    def once(verb: str, resource: Any, name: str) -> Any:
        if name == "hj/status" and not refused:
            refused.append(name)
            return refusal(409, "Conflict")
        return None

    server.fails = once
    async with running(server):
        await until(lambda: reason(server))
    assert refused
    assert server.calls.count(("patch", "hyperjobs", "hj/status")) == 2
    assert server.calls.count(("create", "jobs", "hj-trainer-0")) == (1 if gpus else 0)


async def test_a_hyperjob_that_goes_while_its_status_is_written_is_no_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = alone()

    def goes(verb: str, resource: Any, name: str) -> Any:
        if name == "hj/status" and server.get(HYPERJOBS, "default/hj"):
            server.remove(HYPERJOBS, "default/hj")
        return None

    server.fails = goes
    async with running(server) as manager:
        await until(lambda: ("patch", "hyperjobs", "hj/status") in server.calls)
        server.put(HYPERJOBS, named("next", group(replicas=1)))
        await until(lambda: reason(server, "next"))
        await until(lambda: not len(manager.queue))
    assert server.calls.count(("patch", "hyperjobs", "hj/status")) == 1
    assert [each.getMessage() for each in caplog.records if each.levelname != "INFO"] == []


@pytest.mark.parametrize("word", ["Forbidden", "QuotaExceeded"])
async def test_a_refused_object_is_told_and_tried_again_when_the_spec_changes(word: str) -> None:
    server = alone()
    full = refusal(403, word, "exceeded quota")
    server.fails = lambda verb, resource, _: (
        full if (verb, resource) == ("create", VCJOBS) else None
    )
    async with running(server) as manager:
        await until(lambda: reason(server) == "Refused")
        assert f"{word}: exceeded quota" in status(server)["state"]["message"]
        assert server.calls.count(("create", "jobs", "hj-trainer-0")) == 1
        due = due_in(manager.queue, "default/hj")
        assert due is not None
        assert due <= 5, "it is tried again after a wait"
        server.fails = lambda *_: None
        server.put(HYPERJOBS, server.get(HYPERJOBS, "default/hj") | named_spec(gpus=2))
        await until(lambda: server.items(VCJOBS))
        await until(lambda: reason(server) != "Refused")


def of_namespace(code: int, reason: str, details: Object) -> KubeError:
    status = {"code": code, "reason": reason, "message": "the namespace is gone"}
    return from_status({**status, "details": details}, "POST /x")


TERMINATING: Object = {
    "kind": "jobs",
    "causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}],
}


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (of_namespace(403, "Forbidden", TERMINATING), 0),
        (of_namespace(404, "NotFound", {"kind": "namespaces", "name": "default"}), 0),
        (of_namespace(403, "Forbidden", {"kind": "jobs"}), 1),
        (of_namespace(404, "NotFound", {"kind": "jobs"}), 1),
    ],
    ids=["it is being deleted", "it is gone", "other refusal", "other object"],
)
async def test_refusals_of_a_deleted_namespace_do_not_count_toward_the_alert(
    error: KubeError, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = list[str]()
    monkeypatch.setattr(Meter, "refused", lambda _, reason: refused.append(reason))
    server = alone()
    server.fails = lambda verb, resource, _: (
        error if (verb, resource) == ("create", VCJOBS) else None
    )
    async with running(server):
        await until(lambda: reason(server) == "Refused")
    assert len(refused) == counted


async def test_room_of_what_was_there_already_is_free_for_others_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another HyperJob may have looked at the clusters while it was taken for the creation."""
    freed = set[str]()
    take = Reservations.take_freed

    def note(self: Reservations) -> list[str]:
        found = take(self)
        freed.update(found)
        return found

    monkeypatch.setattr(Reservations, "take_freed", note)
    server = alone()
    left = [refusal(409, "AlreadyExists")]
    server.fails = lambda verb, resource, _: (
        left.pop() if left and (verb, resource) == ("create", PROPAGATION_POLICIES) else None
    )
    async with running(server):
        await until(lambda: not left and server.items(VCJOBS))
        assert freed == {"a"}


def named_spec(gpus: int) -> Object:
    return {"spec": named("hj", group(replicas=1, gpus=gpus))["spec"]}


async def test_what_the_server_could_not_answer_is_tried_again_and_is_no_refusal() -> None:
    server = alone()
    left = [refusal(503, "ServiceUnavailable")] * 2

    def busy(verb: str, resource: Any, _: str) -> Any:
        return left.pop() if left and (verb, resource) == ("create", VCJOBS) else None

    server.fails = busy
    async with running(server):
        await until(lambda: server.items(VCJOBS))
        await until(lambda: reason(server) == "Dispatching")
    assert server.calls.count(("create", "jobs", "hj-trainer-0")) == 3
    assert server.calls.count(("create", "propagationpolicies", "hj-trainer-0")) == 1


async def test_while_a_webhook_is_out_of_reach_one_hyperjob_tries_for_all() -> None:
    server, names = ApiServer(), [f"hj{number}" for number in range(6)]
    server.put(CLUSTERS, member("a", 64))
    for name in names:
        server.put(HYPERJOBS, named(name, group(replicas=1)))
    tries: list[str] = []

    def out_of_reach(verb: str, resource: Any, name: str) -> Any:
        if (verb, resource) != ("create", VCJOBS):
            return None
        tries.append(name)
        return refusal(500, "InternalError", "failed calling webhook")

    server.fails = out_of_reach
    async with running(server):
        await until(lambda: len(tries) > len(names))
        assert sorted(tries[: len(names)]) == [f"{name}-trainer-0" for name in names]
        await until(lambda: reason(server, "hj0") == "FailedCreate")
        server.fails = lambda *_: None
        await until(lambda: len(server.items(VCJOBS)) == len(names))
    assert len(tries) == len(names) + 1, "one HyperJob tried for all"


async def test_words_alone_are_written_at_a_bounded_rate_and_the_last_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 100 * memory.MESSAGE_SECONDS  # a slow machine does not reach it
    monkeypatch.setattr(memory, "MESSAGE_SECONDS", seconds)
    server = alone(4)
    async with running(server) as manager:
        await until(lambda: reason(server))
        before = server.calls.count(("patch", "hyperjobs", "hj/status"))
        for free in (3, 2, 1):
            put = server.put(CLUSTERS, member("a", free))
            await until(partial(seen_by_a_round, manager, put))
        # A round looks at the room that is left; its words wait for the bounded rate.
        await until(lambda: 0.1 < (due_in(manager.queue, "default/hj") or 0) <= seconds)
        assert server.calls.count(("patch", "hyperjobs", "hj/status")) == before


async def test_a_hyperjob_of_the_same_name_begins_anew() -> None:
    server = alone(8)
    async with running(server) as manager:
        await until(lambda: reason(server) == "Dispatching")
        server.remove(HYPERJOBS, "default/hj")
        await until(lambda: manager.observer.objects_of("default/hj") is None)
        for resource in (VCJOBS, PROPAGATION_POLICIES):
            server.remove(resource, "default/hj-trainer-0")
        other = named("hj", group(replicas=1))
        other["metadata"]["uid"] = "hj-other"
        server.put(HYPERJOBS, other)
        await until(lambda: server.items(VCJOBS))
        (made,) = server.items(VCJOBS)
        assert made["metadata"]["ownerReferences"][0]["uid"] == "hj-other"


class WithMembers(ApiServer):
    """Answers for the pods of members too."""

    def __init__(self, *pods: Object) -> None:
        super().__init__()
        self.pods = pods
        self.asked: list[str] = []

    def answer(self, call: Call) -> Any:
        if call.subresource != "proxy":
            return super().answer(call)
        self.asked.append(f"{call.method} {call.name}")
        return {"items": self.pods}


async def test_the_pods_of_a_failed_sub_job_are_read_before_anything_follows_from_it() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-02T03:00:09Z"}
    states = [{"name": "main", "state": {"terminated": ended}}]
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Failed", "containerStatuses": states}}
    server = WithMembers(pod)
    server.put(CLUSTERS, member("a", 16))
    server.put(HYPERJOBS, named("hj", group(replicas=1), failurePolicy={"maxRestarts": 1}))
    async with running(server):
        await until(lambda: server.items(VCJOBS))
        made = server.get(VCJOBS, "default/hj-trainer-0")
        bound = binding("hj-trainer-0", cluster="a", status=vcjob_status("Failed"))
        bound["metadata"]["ownerReferences"][0]["uid"] = made["metadata"]["uid"]
        bound["spec"]["resource"]["uid"] = made["metadata"]["uid"]
        server.put(RESOURCE_BINDINGS, bound)
        await until(lambda: status(server).get("restarts") == 1)
    assert set(server.asked) == {"GET a"}
    (entry,) = status(server)["jobs"]
    assert entry["history"][0]["failure"]["exitCode"] == 137
