"""The life of a HyperJob over HTTP, down to the members: moved, suspended, lost and found."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    CLUSTERS,
    CRDS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    VCJOBS,
    WORKS,
)
from hyperjob_sandbox.clusters import VolcanoGlobal
from hyperjob_sandbox.topology import Topology
from tests.support.controller import eventually, running_controller
from tests.support.sandbox import GPU, Follower, config, following
from tests.support.stack import HYPERJOB_CRD

Object = dict[str, Any]
FAILURES = 'failures: [{job: "*-moves-*", cluster: member1, exitCode: 3}, {job: "*-crashes-*"}]\n'
LOST_AFTER = 1.0
SPARE = 5.0
ROUNDS = int(os.environ.get("HYPERJOB_SUSPEND_ROUNDS", "3"))


@dataclass(frozen=True, slots=True)
class Life:
    """A simulated Karmada with two members, and a controller at work."""

    kube: Kube
    topology: Topology
    hyperjobs: Follower

    async def create(self, name: str, *groups: Object, **spec: Any) -> None:
        """Create a HyperJob with the webhook's defaults, without which members refuse updates."""
        document = {
            "apiVersion": HYPERJOBS.api_version,
            "kind": HYPERJOBS.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicatedJobs": list(groups), **spec},
        }
        await self.kube.create(HYPERJOBS, document)

    async def change(self, name: str, body: Object) -> None:
        """Merge something into a HyperJob."""
        await self.kube.patch(HYPERJOBS, name, body, kind=PatchType.MERGE, namespace="default")

    async def until(self, name: str, *phases: str) -> Object:
        """Wait until a HyperJob is in one of the phases now; give its status."""
        found = await self.hyperjobs.now(f"default/{name}", lambda obj: phase_of(obj) in phases)
        status: Object = found["status"]
        return status

    async def answered(self, verb: str, stamp: str) -> None:
        """Wait until HyperJob hj runs, and its last request of this verb is the stamped one."""
        await self.hyperjobs.now(
            "default/hj",
            lambda obj: (
                obj["status"].get("requests") == {verb: stamp} and phase_of(obj) == "Running"
            ),
        )

    async def in_member(self, member: str) -> dict[str, str]:
        """Give the phase of each vcjob that a member has."""
        items = (await self.topology.clusters[member].kube.list(VCJOBS)).items
        return {
            item["metadata"]["name"]: ((item.get("status") or {}).get("state") or {}).get(
                "phase", ""
            )
            for item in items
        }


def phase_of(obj: Object) -> str:
    return str(((obj.get("status") or {}).get("state") or {}).get("phase", ""))


def jobs_of(obj: Object) -> list[Object]:
    jobs: list[Object] = (obj.get("status") or {}).get("jobs") or []
    return jobs


def group(name: str, *, seconds: float = 3600, replicas: int = 1, **fields: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"limits": {GPU: 1}, "requests": {GPU: 1}}}
    template = {
        "metadata": {"annotations": {"sandbox.hyperjob.volcano.sh/seconds": str(seconds)}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    task = {"name": "worker", "replicas": 1, "template": template}
    spec = {"schedulerName": "volcano", "queue": "default", "maxRetry": 1, "tasks": [task]}
    return {"name": name, "replicas": replicas, "templateSpec": spec, **fields}


@asynccontextmanager
async def living(directory: Path, **options: Any) -> AsyncIterator[Life]:
    settings = config(FAILURES, volcano_global=VolcanoGlobal(enabled=False))
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


async def test_what_a_lost_cluster_had_runs_elsewhere_in_time_and_once_only(tmp_path: Path) -> None:
    async with living(tmp_path, cluster_lost_timeout=LOST_AFTER) as life:
        policy = {"maxRestarts": 1, "rules": [{"action": "MigrateJob", "onClusterLost": True}]}
        trainer = group("trainer", clusterNames=["member1"])
        await life.create("hj", trainer, failurePolicy=policy)
        await life.until("hj", "Running")
        assert await life.in_member("member1") == {"hj-trainer-0": "Running"}

        await life.topology.clusters["member1"].server.stop_listening()

        async def not_ready() -> bool:
            found = await life.kube.get(CLUSTERS, "member1")
            states = {item["type"]: item["status"] for item in found["status"]["conditions"]}
            return bool(states["Ready"] != "True")

        await eventually(not_ready, what="a cluster that is not Ready")
        began = time.monotonic()

        async def moved() -> bool:
            return await life.in_member("member2") == {"hj-trainer-0": "Running"}

        await eventually(moved, what="the sub-job on the other member")
        assert time.monotonic() - began < LOST_AFTER + SPARE
        status = await life.until("hj", "Running")
        assert status["restarts"] == 1
        (entry,) = status["jobs"]
        assert (entry["cluster"], entry["attempt"]) == ("member2", 1)
        assert entry["excludedClusters"] == ["member1"]

        await life.topology.clusters["member1"].server.start_listening()

        async def old_is_gone() -> bool:
            return not await life.in_member("member1")

        await eventually(old_is_gone, what="the end of the old copy")
        assert await life.in_member("member2") == {"hj-trainer-0": "Running"}
        works = (await life.kube.list(WORKS)).items
        assert [
            work["metadata"]["namespace"]
            for work in works
            if work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "hj-trainer-0"
        ] == ["karmada-es-member2"]


async def test_without_a_policy_a_lost_cluster_is_told_and_nothing_moves(tmp_path: Path) -> None:
    async with living(tmp_path, cluster_lost_timeout=LOST_AFTER) as life:
        await life.create("hj", group("trainer", clusterNames=["member1"]))
        await life.until("hj", "Running")
        await life.topology.clusters["member1"].server.stop_listening()
        status = await life.until("hj", "Degraded")
        assert status["jobs"][0]["reason"] == "ClusterLost"
        assert "cluster member1 is not Ready since" in status["state"]["message"]
        await life.topology.clusters["member1"].server.start_listening()
        status = await life.until("hj", "Running")
        assert status["restarts"] == 0
        assert await life.in_member("member1") == {"hj-trainer-0": "Running"}


async def test_what_fails_on_one_cluster_completes_on_another(tmp_path: Path) -> None:
    async with living(tmp_path) as life:
        policy = {"maxRestarts": 2, "rules": [{"action": "MigrateJob"}]}
        moves = group("moves", seconds=0.3, clusterNames=["member1"])
        await life.create("hj", moves, failurePolicy=policy)
        status = await life.until("hj", "Completed", "Failed")
        assert status["state"]["phase"] == "Completed", status["state"]
        assert status["restarts"] == 1
        (job,) = status["jobs"]
        assert job["cluster"] == "member2"
        (run,) = job["history"]
        assert (run["attempt"], run["cluster"], run["phase"]) == (0, "member1", "Failed")
        assert run["reason"] == "JobFailed"
        assert run["startTime"] <= run["endTime"] <= job["startTime"]
        failure = run["failure"]
        assert (failure["pod"], failure["container"]) == ("hj-moves-0-worker-0", "c")
        assert (failure["task"], failure["exitCode"]) == ("worker", 3)


async def test_a_crash_loop_ends_with_the_reason_and_takes_the_others_along(
    tmp_path: Path,
) -> None:
    async with living(tmp_path) as life:
        policy = {"maxRestarts": 1, "rules": [{"action": "RestartJob"}]}
        await life.create("hj", group("crashes", seconds=0.1), group("good"), failurePolicy=policy)
        status = await life.until("hj", "Failed")
        assert status["state"]["reason"] == "MaxRestartsExceeded"
        assert "hj-crashes-0 is Failed" in status["state"]["message"]
        assert status["restarts"] == 1
        assert "exit code 1" in status["state"]["message"]
        assert status["jobs"][0]["failure"]["pod"] == "hj-crashes-0-worker-0"
        assert len(status["jobs"][0]["history"]) == 1
        phases = {job["name"]: job["phase"] for job in status["jobs"]}
        assert phases == {"hj-crashes-0": "Failed", "hj-good-0": "Terminated"}

        async def others_are_gone() -> bool:
            found = {**await life.in_member("member1"), **await life.in_member("member2")}
            return "hj-good-0" not in found

        await eventually(others_are_gone, what="the end of the other sub-job")


async def test_rounds_of_suspend_and_resume_leave_a_healthy_job(tmp_path: Path) -> None:
    async with living(tmp_path) as life:
        short = group("short", seconds=0.2)
        await life.create("hj", group("trainer", replicas=2), short, minAvailable=2)
        key = "default/hj"
        await life.hyperjobs.now(
            key, lambda obj: "Completed" in [job["phase"] for job in jobs_of(obj)]
        )
        for _ in range(ROUNDS):
            await life.change("hj", {"spec": {"suspend": True}})
            status = await life.until("hj", "Suspended")
            found = {**await life.in_member("member1"), **await life.in_member("member2")}
            assert set(found) == {"hj-short-0"}
            assert len((await life.kube.list(PROPAGATION_POLICIES)).items) == 1
            await life.change("hj", {"spec": {"suspend": False}})
            await life.hyperjobs.now(
                key, lambda obj: obj["status"].get("jobsReady") == "3/3", seconds=30
            )
        status = await life.until("hj", "Running")
        assert status["restarts"] == 0
        attempts = [job.get("attempt", 0) for job in status["jobs"]]
        assert attempts == [ROUNDS, ROUNDS, 0], "each run has its number"


async def test_groups_start_in_order_and_one_success_is_enough(tmp_path: Path) -> None:
    async with living(tmp_path) as life:
        await life.create(
            "hj",
            group("prepare", seconds=0.5),
            group("train", dependsOn=[{"name": "prepare", "status": "Complete"}]),
            group("short", seconds=2, dependsOn=[{"name": "train", "status": "Ready"}]),
            successPolicy={"operator": "Any", "targetReplicatedJobs": ["short"]},
            ttlSecondsAfterFinished=2,
        )
        status = await life.until("hj", "Completed")
        assert status["state"]["reason"] == "SuccessPolicySatisfied"
        phases = {job["replicatedJob"]: job["phase"] for job in status["jobs"]}
        assert phases == {"prepare": "Completed", "train": "Terminated", "short": "Completed"}
        await life.hyperjobs.gone("default/hj")

        async def nothing_left() -> bool:
            return (
                not (await life.kube.list(VCJOBS)).items
                and not (await life.kube.list(PROPAGATION_POLICIES)).items
            )

        await eventually(nothing_left, what="a control plane without children")


@pytest.mark.parametrize("verb", ["restart", "migrate"])
async def test_a_request_by_annotation_is_answered_once(tmp_path: Path, verb: str) -> None:
    async with living(tmp_path) as life:
        await life.create("hj", group("trainer", replicas=2))
        before = await life.until("hj", "Running")
        stamp = datetime.now(UTC).strftime("%H%M%S")
        await life.change("hj", requesting(verb, f"{stamp} hj-trainer-0"))
        await life.answered(verb, stamp)
        after = await life.until("hj", "Running")
        assert [job.get("attempt", 0) for job in after["jobs"]] == [1, 0]
        assert after["restarts"] == 0
        if verb == "migrate":
            assert after["jobs"][0]["cluster"] != before["jobs"][0]["cluster"]
        await life.change("hj", requesting(verb, f"{stamp}-again hj-trainer-1"))
        await life.answered(verb, f"{stamp}-again")
        later = await life.until("hj", "Running")
        assert [job["attempt"] for job in later["jobs"]] == [1, 1]


def requesting(verb: str, words: str) -> Object:
    """Give the patch that makes a request by annotation."""
    return {"metadata": {"annotations": {f"training.volcano.sh/{verb}": words}}}
