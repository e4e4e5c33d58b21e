"""After a restore from a backup: what Karmada would do to the sub-jobs of the members."""

import asyncio
from typing import Any

import pytest

from hyperjob.client.restored import Difference, Kind, Restored, correct, differences
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)
from tests.support.apiserver import ApiServer

Object = dict[str, Any]


def hyperjob(name: str, phase: str = "Running", **spec: object) -> Object:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": spec,
        "status": {"state": {"phase": phase}},
    }


def vcjob(name: str, phase: str = "Running") -> Object:
    labels = {LABEL_HYPERJOB: name.split("-", maxsplit=1)[0]}
    state = {"state": {"phase": phase}} if phase else {}
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels}, "status": state}


def policy(name: str, cluster: str) -> Object:
    affinities = [{"affinityName": "held", "clusterNames": [cluster]}]
    placement = {"clusterAffinities": affinities, "replicaScheduling": {"x": "y"}}
    return {
        "metadata": {"namespace": "ns", "name": name, "labels": {LABEL_HYPERJOB: "a"}},
        "spec": {"placement": placement},
    }


def by_key(*found: Object) -> dict[str, Object]:
    return {f"ns/{each['metadata']['name']}": each for each in found}


def restored(owner: Object, *jobs: Object, cluster: str = "east") -> Restored:
    policies = [policy(each["metadata"]["name"], cluster) for each in jobs]
    return Restored(hyperjobs=by_key(owner), jobs=by_key(*jobs), policies=by_key(*policies))


def kinds(found: list[Difference]) -> list[tuple[str, Kind, bool]]:
    return [(each.name, each.kind, each.suspends) for each in found]


@pytest.mark.parametrize(
    ("before", "members", "expected"),
    [
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0")),
            {"east": [vcjob("a-0")], "west": []},
            [],
            id="where Karmada expects it",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0")),
            {"east": [], "west": [vcjob("a-0")]},
            [("a-0", Kind.ELSEWHERE, False)],
            id="moved since",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0")),
            {"east": [vcjob("a-0")], "west": [vcjob("a-0")]},
            [("a-0", Kind.TWICE, False)],
            id="Karmada has started it a second time",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0")),
            {"east": [], "west": []},
            [("a-0", Kind.GONE, True)],
            id="deleted or suspended since",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0"), vcjob("a-1")),
            {"east": [vcjob("a-1")], "west": []},
            [("a-0", Kind.GONE, False)],
            id="another sub-job of the HyperJob runs, which must not be suspended",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0", "")),
            {"east": [], "west": []},
            [],
            id="it had not started at the time of the backup",
        ),
        pytest.param(
            restored(hyperjob("a", "Completed"), vcjob("a-0", "Completed")),
            {"east": [], "west": []},
            [],
            id="it had ended at the time of the backup",
        ),
        pytest.param(
            restored(hyperjob("a", suspend=True), vcjob("a-0")),
            {"east": [], "west": []},
            [],
            id="its HyperJob is suspended",
        ),
        pytest.param(
            restored(hyperjob("a"), vcjob("a-0")),
            {"west": []},
            [],
            id="its cluster could not be read",
        ),
        pytest.param(
            restored(hyperjob("a", "Queued")),
            {"east": [vcjob("a-0")], "west": []},
            [("a-0", Kind.UNPLACED, True)],
            id="admitted since: another cluster could get it",
        ),
        pytest.param(
            restored(hyperjob("a", "Queued")),
            {"east": [vcjob("a-0", "Completed")], "west": []},
            [("a-0", Kind.UNPLACED, False)],
            id="admitted and ended since",
        ),
        pytest.param(
            restored(hyperjob("b")),
            {"east": [vcjob("a-0")], "west": []},
            [("a-0", Kind.FOREIGN, False)],
            id="created since",
        ),
    ],
)
def test_differences_between_karmada_and_its_members(
    before: Restored, members: dict[str, list[Object]], expected: list[tuple[str, Kind, bool]]
) -> None:
    assert kinds(differences(before, members)) == expected


def work(cluster: str, binding: str) -> Object:
    notes = {
        "resourcebinding.karmada.io/namespace": "ns",
        "resourcebinding.karmada.io/name": binding,
    }
    metadata = {"namespace": f"karmada-es-{cluster}", "name": f"{binding}-work"}
    return {"metadata": {**metadata, "uid": binding, "annotations": notes}}


async def test_a_moved_sub_job_is_pinned_to_the_cluster_that_runs_it() -> None:
    server = ApiServer()
    server.put(HYPERJOBS, hyperjob("a"))
    server.put(PROPAGATION_POLICIES, policy("a-0", "east"))
    bound = {
        "placement": policy("a-0", "east")["spec"]["placement"],
        "clusters": [{"name": "east", "replicas": 2}],
    }
    server.put(
        RESOURCE_BINDINGS, {"metadata": {"namespace": "ns", "name": "a-0-job"}, "spec": bound}
    )
    server.put(WORKS, work("east", "a-0-job"))
    server.put(WORKS, work("east", "b-0-job"))
    found = differences(restored(hyperjob("a"), vcjob("a-0")), {"east": [], "west": [vcjob("a-0")]})
    said: list[str] = []
    async with asyncio.timeout(10):
        await correct(server.kube, found, said=said.append)
        writes = list(server.calls)
        await correct(server.kube, found)
    pinned = server.get(PROPAGATION_POLICIES, "ns/a-0")
    assert pinned is not None
    assert pinned["spec"]["placement"] == policy("a-0", "west")["spec"]["placement"]
    binding = server.get(RESOURCE_BINDINGS, "ns/a-0-job")
    assert binding is not None
    assert binding["spec"]["clusters"] == [{"name": "west", "replicas": 2}]
    assert binding["spec"]["placement"] == pinned["spec"]["placement"]
    assert [each["metadata"]["name"] for each in server.items(WORKS)] == ["b-0-job-work"]
    assert said == ["vcjob ns/a-0 is pinned to west, where it is"]
    assert not [verb for verb, kind, _ in writes if kind == VCJOBS.plural]


async def test_a_hyperjob_whose_sub_jobs_are_gone_is_suspended_once() -> None:
    server = ApiServer()
    server.put(HYPERJOBS, hyperjob("a"))
    for name in ("a-0-job", "a-1-job"):
        server.put(WORKS, work("east", name))
    found = differences(restored(hyperjob("a"), vcjob("a-0"), vcjob("a-1")), {"east": []})
    async with asyncio.timeout(10):
        await correct(server.kube, found)
    assert server.calls.count(("patch", HYPERJOBS.plural, "a")) == 1
    suspended = server.get(HYPERJOBS, "ns/a")
    assert suspended is not None
    assert suspended["spec"]["suspend"] is True
    assert server.items(WORKS) == []
