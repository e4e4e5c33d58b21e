"""Objects of a running sub-job that another client deletes: noticed, reported, repaired."""

import time
from pathlib import Path
from typing import Any

import pytest

from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.resources import CLUSTERS, EVENTS, RESOURCE_BINDINGS, WORKS
from tests.support.controller import eventually
from tests.support.life import Life, group, jobs_of, living, phase_of

pytestmark = pytest.mark.scenario

Object = dict[str, Any]
NOTICED = 5.0
JOB = "hj-g-0"


async def delete_binding(life: Life, _member: str) -> None:
    await life.kube.delete(RESOURCE_BINDINGS, binding_name(JOB), namespace="default")


async def delete_work(life: Life, member: str) -> None:
    space = f"karmada-es-{member}"
    (work,) = [
        each
        for each in (await life.kube.list(WORKS, namespace=space)).items
        if each["spec"]["workload"]["manifests"][0]["metadata"]["name"] == JOB
    ]
    await life.kube.delete(WORKS, work["metadata"]["name"], namespace=space)


DELETIONS = {"the ResourceBinding": delete_binding, "the Work": delete_work}
POLICIES = {
    "without a policy": ({}, 0),
    "with a policy": ({"failurePolicy": {"maxRestarts": 2}}, 1),
}


def runs_again(obj: Object) -> bool:
    (job,) = jobs_of(obj)
    return phase_of(obj) == "Running" and job.get("attempt") == 1


@pytest.mark.parametrize(
    ("what", "case"),
    [("the ResourceBinding", "with a policy"), ("the Work", "without a policy")],
)
async def test_a_deleted_object_is_noticed_and_the_sub_job_starts_again(
    what: str, case: str, tmp_path: Path
) -> None:
    fields, restarts = POLICIES[case]
    async with living(tmp_path) as life:
        await life.create("hj", group("g"), **fields)
        before = await life.until("hj", "Running")
        member, started = before["jobs"][0]["cluster"], before["jobs"][0]["startTime"]

        async def a_later_second() -> bool:
            return rfc3339(utc_now()) > started  # Volcano's times have no parts of a second

        await eventually(a_later_second, what="a later second than that of the start")
        await DELETIONS[what](life, member)
        gone = time.monotonic()
        await life.hyperjobs.now("default/hj", lambda obj: jobs_of(obj)[0].get("attempt") == 1)
        assert time.monotonic() - gone < NOTICED
        status = (await life.hyperjobs.now("default/hj", runs_again))["status"]
        (job,) = status["jobs"]
        assert status.get("restarts", 0) == restarts
        (run,) = job["history"]
        assert run["reason"] == "ObjectDeleted"
        assert "was deleted, and Karmada" in run["message"]
        assert job["startTime"] >= run["endTime"]
        notes = [
            each["note"]
            for each in (await life.kube.list(EVENTS)).items
            if each["reason"] == "Restarting"
        ]
        assert any("was deleted, and Karmada" in note for note in notes), notes
        assert await life.in_member(job["cluster"]) == {JOB: "Running"}


async def test_a_removed_cluster_counts_at_once_and_may_join_again(tmp_path: Path) -> None:
    async with living(tmp_path) as life:
        await life.create("hj", group("g"))
        before = await life.until("hj", "Running")
        member = before["jobs"][0]["cluster"]
        cluster = await life.kube.get(CLUSTERS, member)
        await life.kube.delete(CLUSTERS, member)
        gone = time.monotonic()
        await life.hyperjobs.now("default/hj", lambda obj: jobs_of(obj)[0].get("attempt") == 1)
        assert time.monotonic() - gone < NOTICED
        status = (await life.hyperjobs.now("default/hj", runs_again))["status"]
        (job,) = status["jobs"]
        assert job["cluster"] != member
        (run,) = job["history"]
        assert (run["reason"], run["cluster"]) == ("ClusterLost", member)

        kept = {
            key: cluster["metadata"][key]
            for key in ("name", "labels")
            if key in cluster["metadata"]
        }
        joined = {**cluster, "metadata": kept}
        joined.pop("status", None)
        await life.kube.create(CLUSTERS, joined)
        (job,) = (await life.until("hj", "Running"))["jobs"]
        assert (job["attempt"], job["cluster"] == member) == (1, False)


async def test_without_a_policy_a_lost_cluster_is_told_and_nothing_moves(tmp_path: Path) -> None:
    async with living(tmp_path, cluster_lost_timeout=1.0) as life:
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
