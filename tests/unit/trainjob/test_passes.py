"""A pass of a TrainJob on an API server in memory: what it writes, and what a refusal changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    HYPERJOBS,
    NAMESPACES,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
from hyperjob_core.tasks import cancel
from hyperjob_trainjobs.follow import Passes
from tests.support.apiserver import ApiServer, refusal
from tests.support.trainjobs import job, runtime, stored, trainjob
from tests.unit.controller.test_pass import until

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


class Recorder:
    """Keeps the reasons of Events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, _regarding: Any, _type: str, reason: str, *_: str) -> None:
        self.reasons.append(reason)


@dataclass
class World:
    server: ApiServer = field(default_factory=ApiServer)
    recorder: Recorder = field(default_factory=Recorder)

    @asynccontextmanager
    async def passes(self) -> AsyncIterator[Passes]:
        kinds = TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, NAMESPACES, HYPERJOBS
        caches = {kind: Informer(self.server.kube, kind) for kind in kinds}
        tasks = [asyncio.ensure_future(each.run()) for each in caches.values()]
        for each in caches.values():
            await each.synced.wait()
        self.server.calls.clear()
        try:
            yield Passes(self.server.kube, caches, self.recorder, now=lambda: NOW)  # type: ignore[arg-type]
        finally:
            await cancel(tasks)


def world() -> World:
    made = World()
    made.server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
    made.server.put(TRAINJOBS, stored(trainjob()))
    return made


async def test_a_pass_creates_the_hyperjob_once() -> None:
    one = world()
    async with one.passes() as passes:
        await passes.reconcile("team/tj")
        await until(lambda: passes._caches[HYPERJOBS].get("team/tj"))
        await passes.reconcile("team/tj")
        assert await passes.reconcile("team/gone") is None
    assert one.server.calls == [("create", "hyperjobs", "tj")]


async def refused(one: World) -> None:
    """Make a pass of a TrainJob whose runtime has nothing that trains."""
    one.server.put(CLUSTER_TRAINING_RUNTIMES, runtime("torch", job("dataset-initializer")))
    async with one.passes() as passes:
        await passes.reconcile("team/tj")
    assert one.server.calls == [("patch", "trainjobs", "tj/status")]


async def test_a_trainjob_that_cannot_be_a_hyperjob_has_a_status_and_no_hyperjob() -> None:
    one = world()
    await refused(one)
    found = one.server.get(TRAINJOBS, "team/tj")
    assert [each["type"] for each in found["status"]["conditions"]] == ["Failed"]


async def test_the_runtime_of_the_namespace_counts_only_if_the_trainjob_names_that_kind() -> None:
    one = world()
    one.server.remove(CLUSTER_TRAINING_RUNTIMES, "torch")
    mine = runtime()
    mine |= {"kind": "TrainingRuntime", "metadata": {**mine["metadata"], "namespace": "team"}}
    one.server.put(TRAINING_RUNTIMES, mine)
    wanted = {"name": "torch", "kind": "TrainingRuntime"}
    one.server.put(TRAINJOBS, stored(trainjob("mine", runtimeRef=wanted)))
    async with one.passes() as passes:
        await passes.reconcile("team/tj")
        await passes.reconcile("team/mine")
    assert [each["metadata"]["name"] for each in one.server.items(HYPERJOBS)] == ["mine"]


async def test_a_pass_that_meets_a_hyperjob_which_its_cache_does_not_have_writes_no_status() -> (
    None
):
    one = world()
    one.server.fails = lambda verb, *_: refusal(409, "AlreadyExists") if verb == "create" else None
    async with one.passes() as passes:
        assert await passes.reconcile("team/tj") is None
    assert [verb for verb, _, _ in one.server.calls] == ["create"]


@pytest.mark.parametrize(
    ("code", "reason"), [(400, "BadRequest"), (403, "Forbidden"), (422, "Invalid")]
)
async def test_a_hyperjob_that_is_refused_is_an_event_and_is_tried_again(
    code: int, reason: str
) -> None:
    one = world()
    one.server.fails = lambda verb, *_: refusal(code, reason) if verb == "create" else None
    async with one.passes() as passes:
        with pytest.raises(KubeError):
            await passes.reconcile("team/tj")
    assert one.recorder.reasons == ["HyperJobRefused"]


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (409, "Conflict")])
async def test_a_trainjob_that_is_deleted_during_its_pass_needs_no_status(
    code: int, reason: str
) -> None:
    one = world()
    one.server.fails = lambda _, __, name: refusal(code, reason) if "/status" in name else None
    await refused(one)
