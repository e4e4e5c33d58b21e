"""After a restore from a backup: what Karmada would do to the sub-jobs of the members."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hyperjob.client.restored import Difference, Kind, Restored, correct, differences
from hyperjob_core.api.names import (
    AFFINITY_UNGATED,
    LABEL_ATTEMPT,
    LABEL_HYPERJOB,
    LABEL_INDEX,
)
from hyperjob_core.kube.errors import Conflict, Forbidden
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)
from tests.support.apiserver import ApiServer

Object = dict[str, Any]
FIRST_WORK = "karmada-es-east/work-0"


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


def kinds(found: list[Difference]) -> list[tuple[str, Kind, str]]:
    """Return name, kind and what `--apply` does to it, if `suspends` or `adopts` says so."""
    return [
        (each.name, each.kind, "suspends" * each.suspends + f"adopts in {each.found}" * each.adopts)
        for each in found
    ]


JOB, ENDED = vcjob("a-0"), vcjob("a-0", "Completed")
KNOWN = restored(hyperjob("a"), JOB)
QUEUED = restored(hyperjob("a", "Queued"))
GONE = ("a-0", Kind.GONE, "")
ADOPTED = ("a-0", Kind.UNPLACED, "adopts in east")

DIFFERENCES: dict[str, tuple[Restored, dict[str, list[Object]], list[tuple[str, Kind, str]]]] = {
    "where Karmada expects it": (KNOWN, {"east": [JOB], "west": []}, []),
    "moved since": (KNOWN, {"east": [], "west": [JOB]}, [("a-0", Kind.ELSEWHERE, "")]),
    "Karmada has started it a second time": (
        KNOWN,
        {"east": [JOB], "west": [JOB]},
        [("a-0", Kind.TWICE, "")],
    ),
    "deleted or suspended since": (
        KNOWN,
        {"east": [], "west": []},
        [("a-0", Kind.GONE, "suspends")],
    ),
    "another sub-job of the HyperJob runs, which must not be suspended": (
        restored(hyperjob("a"), JOB, vcjob("a-1")),
        {"east": [vcjob("a-1")], "west": []},
        [GONE],
    ),
    "it had not started at the time of the backup": (
        restored(hyperjob("a"), vcjob("a-0", "")),
        {"east": [], "west": []},
        [],
    ),
    "it had ended at the time of the backup": (
        restored(hyperjob("a", "Completed"), ENDED),
        {"east": [], "west": []},
        [],
    ),
    "its HyperJob is suspended": (
        restored(hyperjob("a", suspend=True), JOB),
        {"east": [], "west": []},
        [],
    ),
    "its cluster could not be read": (KNOWN, {"west": []}, []),
    "admitted since: another cluster could get it": (
        QUEUED,
        {"east": [JOB], "west": []},
        [ADOPTED],
    ),
    "admitted and ended since": (QUEUED, {"east": [ENDED], "west": []}, [ADOPTED]),
    "admitted and moved since: the cluster that runs it": (
        QUEUED,
        {"east": [vcjob("a-0", "Failed")], "west": [JOB]},
        [("a-0", Kind.UNPLACED, ""), ("a-0", Kind.UNPLACED, "adopts in west")],
    ),
    "resumed since": (
        restored(hyperjob("a", "Suspended", suspend=True)),
        {"east": [JOB], "west": []},
        [ADOPTED],
    ),
    "its HyperJob had ended": (
        restored(hyperjob("a", "Failed")),
        {"east": [JOB], "west": []},
        [("a-0", Kind.UNPLACED, "")],
    ),
    "another sub-job of the HyperJob started since, which must not be suspended": (
        KNOWN,
        {"east": [], "west": [vcjob("a-1")]},
        [GONE, ("a-1", Kind.UNPLACED, "adopts in west")],
    ),
    "created since": (
        restored(hyperjob("b")),
        {"east": [JOB], "west": []},
        [("a-0", Kind.FOREIGN, "")],
    ),
}


@pytest.mark.parametrize(
    ("before", "members", "expected"), DIFFERENCES.values(), ids=DIFFERENCES.keys()
)
def test_differences_between_karmada_and_its_members(
    before: Restored, members: dict[str, list[Object]], expected: list[tuple[str, Kind, str]]
) -> None:
    assert kinds(differences(before, members)) == expected


def work(cluster: str, binding: str) -> Object:
    notes = {
        "resourcebinding.karmada.io/namespace": "ns",
        "resourcebinding.karmada.io/name": binding,
    }
    metadata = {"namespace": f"karmada-es-{cluster}", "name": f"{binding}-work"}
    return {"metadata": {**metadata, "uid": binding, "annotations": notes}}


async def corrected(
    server: ApiServer, found: list[Difference], *, heard: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Correct the differences; return what is said, which `heard` hears too."""
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        heard(text)

    async with asyncio.timeout(10):
        await correct(server.kube, found, said=say)
    return said


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
    found = differences(KNOWN, {"east": [], "west": [JOB]})
    said = await corrected(server, found)
    writes = list(server.calls)
    await corrected(server, found)
    pinned = server.get(PROPAGATION_POLICIES, "ns/a-0")
    assert pinned["spec"]["placement"] == policy("a-0", "west")["spec"]["placement"]
    binding = server.get(RESOURCE_BINDINGS, "ns/a-0-job")
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
    await corrected(server, found)
    assert server.calls.count(("patch", HYPERJOBS.plural, "a")) == 1
    suspended = server.get(HYPERJOBS, "ns/a")
    assert suspended["spec"]["suspend"] is True
    assert server.items(WORKS) == []


def listed_works(server: ApiServer) -> list[Difference]:
    """Store two Works of a sub-job that its member lacks; return this difference."""
    server.put(HYPERJOBS, hyperjob("a"))
    for number in range(2):
        found = work("east", "a-0-job")
        found["metadata"] |= {"name": f"work-{number}", "uid": f"uid-{number}"}
        server.put(WORKS, found)
    return differences(KNOWN, {"east": []})


async def test_a_work_that_is_gone_since_the_listing_is_no_error() -> None:
    server = ApiServer()
    found = listed_works(server)
    await corrected(server, found, heard=lambda _: server.remove(WORKS, FIRST_WORK))
    assert server.items(WORKS) == []


async def test_a_work_that_was_created_again_since_the_listing_stays() -> None:
    server = ApiServer()
    found = listed_works(server)

    def create_again(_: str) -> None:
        first = server.get(WORKS, FIRST_WORK)
        server.remove(WORKS, FIRST_WORK)
        server.put(WORKS, {**first, "metadata": {**first["metadata"], "uid": "another"}})

    with pytest.raises(Conflict):
        await corrected(server, found, heard=create_again)
    kept = server.get(WORKS, FIRST_WORK)
    assert kept["metadata"]["uid"] == "another"


async def test_a_work_that_may_not_be_deleted_is_an_error() -> None:
    server = ApiServer()
    server.put(HYPERJOBS, hyperjob("a"))
    server.put(WORKS, work("east", "a-0-job"))
    server.fails = lambda verb, _resource, _name: Forbidden({}) if verb == "delete" else None
    with pytest.raises(Forbidden):
        await corrected(server, differences(KNOWN, {"east": []}))


def of_member(name: str) -> Object:
    """Return a vcjob as Karmada has created it in a member, with its metadata."""
    labels = {
        LABEL_HYPERJOB: "a",
        LABEL_INDEX: "0",
        LABEL_ATTEMPT: "2",
        "team": "ml",
        "propagationpolicy.karmada.io/permanent-id": "x",
    }
    notes = {LABEL_ATTEMPT: "2", "work.karmada.io/name": "x"}
    metadata = {"namespace": "ns", "name": name, "labels": labels, "annotations": notes}
    return {
        "metadata": metadata | {"uid": "m", "resourceVersion": "7", "finalizers": ["x"]},
        "spec": {"minAvailable": 2},
        "status": {"state": {"phase": "Running"}},
    }


class WithMember(ApiServer):
    """An API server whose member `east` has the vcjob `ns/a-0`."""

    def answer(self, call: Call) -> Any:
        if call.resource is CLUSTERS and call.subresource:
            assert call.name == "east"
            return of_member("a-0")
        return super().answer(call)


async def test_a_sub_job_that_was_admitted_since_is_adopted_where_it_runs() -> None:
    server = WithMember()
    server.put(HYPERJOBS, hyperjob("a", "Queued", replicatedJobs=[]))
    before = restored(hyperjob("a", "Queued"))
    found = differences(before, {"east": [of_member("a-0")]})
    said = await corrected(server, found)
    owner = {
        **HYPERJOBS.head,
        "name": "a",
        "uid": "a",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    own = {LABEL_HYPERJOB: "a", LABEL_INDEX: "0", LABEL_ATTEMPT: "2"}
    job = server.get(VCJOBS, "ns/a-0")
    assert job["spec"] == {"minAvailable": 2}
    assert "status" not in job
    assert job["metadata"]["labels"] == own | {"team": "ml"}
    assert job["metadata"]["annotations"] == {LABEL_ATTEMPT: "2"}
    assert job["metadata"]["ownerReferences"] == [owner]
    assert "finalizers" not in job["metadata"]
    pinned = server.get(PROPAGATION_POLICIES, "ns/a-0")
    assert pinned["metadata"]["labels"] == own
    assert pinned["metadata"]["ownerReferences"] == [owner]
    assert "suspension" not in pinned["spec"]
    assert pinned["spec"]["placement"]["clusterAffinities"] == [
        {"affinityName": AFFINITY_UNGATED, "clusterNames": ["east"]}
    ]
    assert said == ["vcjob ns/a-0 is known to Karmada again, in east"]
    known = Restored(hyperjobs=by_key(hyperjob("a")), jobs=by_key(job), policies=by_key(pinned))
    assert differences(known, {"east": [of_member("a-0")]}) == []


async def test_a_hyperjob_that_was_resumed_since_is_resumed_before_its_vcjob_exists() -> None:
    server = WithMember()
    server.put(HYPERJOBS, hyperjob("a", "Suspended", suspend=True))
    server.put(PROPAGATION_POLICIES, policy("a-0", "west"))
    before = restored(hyperjob("a", "Suspended", suspend=True))
    said = await corrected(server, differences(before, {"east": [of_member("a-0")]}))
    resumed = server.get(HYPERJOBS, "ns/a")
    assert resumed["spec"]["suspend"] is False
    pinned = server.get(PROPAGATION_POLICIES, "ns/a-0")
    affinities = pinned["spec"]["placement"]["clusterAffinities"]
    assert [each["clusterNames"] for each in affinities] == [["east"]]
    writes = [(verb, kind) for verb, kind, _ in server.calls if verb in ("patch", "create")]
    assert writes[0] == ("patch", HYPERJOBS.plural)
    assert writes[-1] == ("create", VCJOBS.plural)
    assert said[0] == "HyperJob ns/a is resumed"


async def test_a_vcjob_that_karmada_deletes_in_its_member_is_not_adopted() -> None:
    server = WithMember()
    server.put(HYPERJOBS, hyperjob("a", "Suspended", suspend=True))
    server.put(RESOURCE_BINDINGS, {"metadata": {"namespace": "ns", "name": "a-0-job"}})
    before = restored(hyperjob("a", "Suspended", suspend=True))
    said = await corrected(server, differences(before, {"east": [of_member("a-0")]}))
    assert said == ["vcjob ns/a-0 is being deleted in east"]
    assert not [verb for verb, _, _ in server.calls if verb in ("patch", "create")]
