"""Messages between Karmada and a member get lost; a sub-job runs nevertheless, over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_controller.options import Tuning
from hyperjob_core.api.names import ASKED_AGAIN, RESTART_REQUEST
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CRDS, EVENTS, HYPERJOBS, VCJOBS, WORKS
from hyperjob_sandbox.clusters import VolcanoGlobal
from hyperjob_sandbox.karmada.execution import ExecutionController
from hyperjob_sandbox.topology import Topology
from tests.support.controller import eventually, running_controller
from tests.support.sandbox import GPU, Follower, cluster_statuses, config, following
from tests.support.stack import HYPERJOB_CRD

Object = dict[str, Any]
JOB = "hj-trainer-0"
SLOW = "test.example.com/slow"


@dataclass(frozen=True, slots=True)
class Life:
    """A simulated Karmada with two members, and a controller at work."""

    kube: Kube
    topology: Topology
    hyperjobs: Follower

    async def running(self) -> Object:
        """Wait until the HyperJob runs; give its status."""

        def runs(obj: Object) -> bool:
            return bool((obj.get("status") or {}).get("state", {}).get("phase") == "Running")

        status: Object = (await self.hyperjobs.now("default/hj", runs))["status"]
        return status


@asynccontextmanager
async def living(directory: Path, **options: Any) -> AsyncIterator[Life]:
    settings = config(volcano_global=VolcanoGlobal(enabled=False))
    async with (
        Topology(settings, directory) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig, user_agent="test") as kube,
    ):
        await kube.apply(CRDS, yaml.safe_load(HYPERJOB_CRD.read_text()), field_manager="test")
        async with (
            following(kube, HYPERJOBS) as (hyperjobs,),
            running_controller(topology.kubeconfig, "default", cluster_status_lag=1.0, **options),
        ):
            yield Life(kube, topology, hyperjobs)


def pinned() -> Object:
    """Give a HyperJob on member1 with all that Volcano's webhook would add, as ours adds it."""
    container = {"name": "c", "image": "x", "resources": {"limits": {GPU: 1}, "requests": {GPU: 1}}}
    template = {
        "metadata": {"annotations": {"sandbox.hyperjob.volcano.sh/seconds": "3600"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    sizes = {"replicas": 1, "minAvailable": 1, "maxRetry": 3}
    spec = {
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": 1,
        "minAvailable": 1,
        "tasks": [{"name": "worker", "template": template, **sizes}],
    }
    trainer = {"name": "trainer", "replicas": 1, "templateSpec": spec}
    where = {"clusterNames": ["member1"], "clusterPolicy": "Required"}
    return {
        **HYPERJOBS.head,
        "metadata": {"name": "hj", "namespace": "default"},
        "spec": {"replicatedJobs": [trainer | where]},
    }


async def in_member(life: Life) -> Object | None:
    """Give the vcjob as member1 has it."""
    try:
        return await life.topology.clusters["member1"].kube.get(VCJOBS, JOB, namespace="default")
    except NotFound:
        return None


async def told(life: Life, reason: str) -> list[str]:
    """Give the notes of the Events of a reason."""
    items = (await life.kube.list(EVENTS, namespace="default")).items
    return [item["note"] for item in items if item["reason"] == reason]


async def until_running(life: Life) -> Object:
    """Wait until the sub-job runs without having spent anything; give its entry."""
    status = await life.running()
    assert status["restarts"] == 0
    (entry,) = status["jobs"]
    assert (entry["phase"], entry["cluster"]) == ("Running", "member1")
    assert "silence" not in entry
    return dict(entry)


async def quiet(life: Life) -> None:
    """Wait until Karmada has written all that it has to say of the sub-job."""
    versions: list[str] = []
    while len(versions) < 2 or versions[-1] != versions[-2]:
        await cluster_statuses(4)
        works = (await life.kube.list(WORKS)).items
        versions.append(",".join(work["metadata"]["resourceVersion"] for work in works))


async def test_what_goes_with_its_predecessor_in_the_member_is_applied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old vcjob ends slowly in its member; Karmada updates it for the new one, and it goes."""
    lost = ""  # the uid of an object of whose changes Karmada hears nothing
    hear = ExecutionController._on_object

    def half_deaf(
        self: ExecutionController, event: EventType, old: Object | None, new: Object | None
    ) -> None:
        if (new or old or {})["metadata"]["uid"] != lost:
            hear(self, event, old, new)

    monkeypatch.setattr(ExecutionController, "_on_object", half_deaf)
    async with living(tmp_path, tuning=Tuning(silence=timedelta(seconds=2))) as life:
        member = life.topology.clusters["member1"].kube
        await life.kube.create(HYPERJOBS, pinned())
        await life.running()
        old = await in_member(life)

        async def hold(*finalizers: str) -> None:
            body = {"metadata": {"finalizers": list(finalizers)}}
            await member.patch(VCJOBS, JOB, body, kind=PatchType.MERGE, namespace="default")

        await hold(SLOW)
        lost = old["metadata"]["uid"]
        again = {"metadata": {"annotations": {RESTART_REQUEST: "1"}}}
        await life.kube.patch(HYPERJOBS, "hj", again, kind=PatchType.MERGE, namespace="default")

        async def updated() -> bool:
            new = await life.kube.list(VCJOBS, namespace="default")
            seen = await in_member(life)
            assert seen["metadata"]["uid"] == lost
            uid = (seen["metadata"].get("annotations") or {}).get("resourcetemplate.karmada.io/uid")
            return bool(new.items) and new.items[0]["metadata"]["uid"] == uid

        await eventually(updated, what="the old vcjob, updated on its way out")
        await quiet(life)
        await hold()

        async def gone() -> bool:
            return await in_member(life) is None

        await eventually(gone, what="an empty member")
        entry = await until_running(life)
        assert entry["attempt"] == 1, "the one that was asked for"
        made = await in_member(life)
        assert ASKED_AGAIN in made["metadata"]["annotations"]
        assert set(await told(life, "AskedAgain")) == {f"Asked Karmada to apply {JOB} again"}
        (warning,) = await told(life, "NothingReported")
        assert "cluster member1 has reported nothing since" in warning
