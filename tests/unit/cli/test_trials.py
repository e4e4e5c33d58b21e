"""`after-restore` on an API server in memory with members behind its proxy."""

import json
from typing import Any

import pytest

from hyperjob.cli.after_restore import _say
from hyperjob.client.restored import Difference, Kind
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.resources import CLUSTERS, VCJOBS
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.fleet import Fleet, Object, Run
from tests.unit.cli.objects import cluster


@pytest.fixture
def fleet() -> Fleet:
    server = Fleet()
    for name, ready in (("c", True), ("b", True), ("a", False), ("d", True)):
        server.put(CLUSTERS, cluster(name, ready=ready))
    return server


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
