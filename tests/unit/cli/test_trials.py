"""`smoke-test` and `after-restore` on an API server in memory with members behind its proxy."""

import json
from typing import Any

import pytest

from hyperjob.cli.after_restore import _say
from hyperjob.cli.smoke_test.trial import manifest
from hyperjob.client.restored import Difference, Kind
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, VCJOBS
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.fleet import Fleet, Object, Run, runner
from tests.unit.cli.objects import cluster, hyperjob

EXAMPLE = """
metadata: {name: x}
spec:
  replicatedJobs:
    - name: hello
      templateSpec:
        queue: default
        tasks: [{name: main, template: {spec: {containers: [{name: main, image: busybox}]}}}]
"""


def test_the_trial_has_a_replicated_job_for_each_cluster() -> None:
    made = manifest(EXAMPLE, clusters=["a", "b"])
    first, second = made["spec"]["replicatedJobs"]
    assert made["spec"]["minAvailable"] == 2
    assert (first["name"], first["clusterNames"], first["clusterPolicy"]) == (
        "hello-0",
        ["a"],
        "Required",
    )
    assert (second["name"], second["clusterNames"]) == ("hello-1", ["b"])
    template = first["templateSpec"]
    assert template == second["templateSpec"]
    assert template["queue"] == "default"
    assert template["tasks"][0]["template"]["spec"]["containers"][0]["image"] == "busybox"
    prefix, _, token = made["metadata"]["name"].rpartition("-")
    assert (prefix, len(token)) == ("smoke-test", 4)
    assert manifest(EXAMPLE, clusters=["a"])["metadata"]["name"] != made["metadata"]["name"]


def test_the_trial_takes_another_image_and_queue() -> None:
    made = manifest(EXAMPLE, clusters=["a"], image="mirror/busybox", queue="research")
    (job,) = made["spec"]["replicatedJobs"]
    assert job["templateSpec"]["queue"] == "research"
    (task,) = job["templateSpec"]["tasks"]
    assert task["template"]["spec"]["containers"][0]["image"] == "mirror/busybox"


@pytest.fixture
def fleet() -> Fleet:
    server = Fleet()
    for name, ready in (("c", True), ("b", True), ("a", False), ("d", True)):
        server.put(CLUSTERS, cluster(name, ready=ready))
    return server


@pytest.fixture
def run(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(fleet, monkeypatch)


def ending(fleet: Fleet, phase: str) -> list[Object]:
    """Let a controller end every HyperJob in a phase; return the HyperJobs."""
    made: list[Object] = []

    def heard(kind: str, old: Object | None, new: Object | None) -> None:
        if kind == HYPERJOBS.kind and old is None and new is not None:
            made.append(new)
            status = hyperjob(phase)["status"]
            fleet.put(HYPERJOBS, {**new, "status": status})

    fleet.listen(heard)
    return made


def test_a_smoke_test_runs_on_the_first_two_ready_clusters_and_deletes_its_hyperjob(
    run: Run, fleet: Fleet
) -> None:
    ending(fleet, "Completed")
    found = run("smoke-test", "-o", "json")
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert (report["clusters"], report["completed"], report["namespace"]) == (
        ["b", "c"],
        True,
        "ml",
    )
    assert fleet.items(HYPERJOBS) == []
    assert "completed on b, c" in found.stderr
    assert f"creating HyperJob {report['name']} on b, c" in found.stderr


def test_a_smoke_test_that_fails_keeps_its_hyperjob_and_says_how_to_look(
    run: Run, fleet: Fleet
) -> None:
    ending(fleet, "Failed")
    found = run("smoke-test", "--cluster", "d", "--cluster", "d")
    assert found.exit_code == 4
    (kept,) = fleet.items(HYPERJOBS)
    where = f"{kept['metadata']['name']} -n ml"
    assert kept["spec"]["minAvailable"] == 1, "a cluster named twice counts once"
    assert f"the HyperJob is kept: kubectl hyperjob why {where}; kubectl delete hj {where}" in (
        found.stderr
    )


def vcjob(name: str, *, phase: str = "Running", owner: str = "llm") -> Object:
    return {
        "metadata": {"name": name, "namespace": "ml", "labels": {LABEL_HYPERJOB: owner}},
        "status": {"state": {"phase": phase}},
    }


def test_without_differences_a_restore_needs_nothing(run: Run, fleet: Fleet) -> None:
    for name in ("a", "b", "c", "d"):
        fleet.members[name] = ApiServer()
    found = run("after-restore")
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")
    assert json.loads(run("after-restore", "-o", "json").stdout) == {
        "differences": [],
        "unread": {},
    }


def test_differences_and_unread_clusters_fail_the_command(run: Run, fleet: Fleet) -> None:
    for name in ("a", "b", "c"):
        fleet.members[name] = ApiServer()
    fleet.members["c"].put(VCJOBS, vcjob("llm-0", owner="gone"))
    fleet.members["b"].put(VCJOBS, {"metadata": {"name": "other", "namespace": "ml"}})
    found = run("after-restore")
    assert found.exit_code == 1
    assert found.stderr == "error: clusters cannot be read: d: cluster d is unreachable\n"
    header, row = found.stdout.splitlines()
    assert header.split() == ["NAMESPACE", "VCJOB", "MEMBER", "KARMADA", "MESSAGE"]
    assert row.split(maxsplit=4)[:4] == ["ml", "llm-0", "c", "-"]
    fleet.members["d"] = ApiServer()
    again = run("after-restore", "-o", "json")
    assert again.stderr == "error: 1 vcjobs differ between Karmada and the members\n"
    (difference,) = json.loads(again.stdout)["differences"]
    assert (difference["kind"], difference["found"]) == ("Unknown", "c")
    fleet.members["c"].change(VCJOBS, "ml/llm-0", {"status": {"state": {"phase": "Completed"}}})
    assert run("after-restore").exit_code == 0, "a vcjob that has ended starts nothing"


def test_a_karmada_that_cannot_be_read_is_an_error(run: Run, fleet: Fleet) -> None:
    fleet.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no vcjobs") if resource is VCJOBS else None
    )
    found = run("after-restore")
    assert found.exit_code == 1
    assert "Error from server (Forbidden): no vcjobs" in found.stderr


def difference(kind: Kind, **more: Any) -> Difference:
    return Difference(
        namespace="ml", name="llm-0", kind=kind, hyperjob="llm", expected="e", found="f", **more
    )


SAID = {
    "Karmada would start it in e again: --apply pins it to f": difference(Kind.ELSEWHERE),
    "both clusters have it: delete it in f, or wait for its end": difference(Kind.TWICE),
    "Karmada would start it again: --apply suspends HyperJob llm": difference(
        Kind.GONE, suspends=True
    ),
    "Karmada would start it again beside other sub-jobs of HyperJob llm, which run": difference(
        Kind.GONE
    ),
    "HyperJob llm would start it in any cluster: --apply adopts it where it is, and resumes a"
    " suspended HyperJob": difference(Kind.UNPLACED, adopts=True),
    "HyperJob llm does not need it: delete it there": difference(Kind.UNPLACED),
    "Karmada has no HyperJob llm: apply it again with clusterNames [f], or delete the vcjob"
    " there": difference(Kind.FOREIGN),
}


@pytest.mark.parametrize(("text", "each"), SAID.items(), ids=[*map(str, range(len(SAID)))])
def test_each_difference_has_its_remedy(text: str, each: Difference) -> None:
    assert _say(each) == text
