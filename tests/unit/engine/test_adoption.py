"""Which objects become those of a HyperJob, and which names are taken."""

from collections.abc import Sequence
from typing import Any

import pytest

from hyperjob_engine.expansion.expand import expand, sub_jobs
from hyperjob_engine.expansion.members import adoptions, conflict
from hyperjob_engine.expansion.objects import taken_over
from hyperjob_engine.model.observed import (
    Observed,
)
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import SubJob, child_of
from hyperjob_engine.reasons.reason import Reason
from tests.unit.engine.builders import (
    Object,
    group,
    hyperjob,
    job,
    observed,
    owner,
    policy,
)


def members_of(seen: Observed) -> list[tuple[SubJob, Any]]:
    groups = expand(seen.hyperjob)
    indices = {each.replicated_job.name: range(len(each.sizes)) for each in groups}
    wanted = sub_jobs(seen.hyperjob, groups, indices)
    return [(each, child_of(seen, each.name)) for each in wanted]


OTHERS = [{"kind": "CronJob", "name": "other", "uid": "u", "controller": True}]


ADOPTED: dict[str, tuple[Object, Sequence[str]]] = {
    "ours": ({}, []),
    "ours without its labels": ({"labels": {}}, ["Job", "PropagationPolicy"]),
    "ours that is being deleted": ({"labels": {}, "deletionTimestamp": "2026-01-02T03:04:00Z"}, []),
    "an orphan": ({"ownerReferences": []}, ["Job", "PropagationPolicy"]),
    "an orphan that is being deleted": (
        {"ownerReferences": [], "deletionTimestamp": "2026-01-02T03:04:00Z"},
        [],
    ),
    "another's": ({"ownerReferences": OTHERS}, []),
    "another's without our labels": ({"ownerReferences": OTHERS, "labels": {}}, []),
    "a stranger's": ({"ownerReferences": [], "labels": {}}, []),
}


@pytest.mark.parametrize(("metadata", "kinds"), ADOPTED.values(), ids=ADOPTED)
def test_what_bears_our_labels_or_is_ours_is_adopted(
    metadata: Object, kinds: Sequence[str]
) -> None:
    made, pinned = job(), policy()
    for each in (made, pinned):
        each["metadata"] |= metadata
    seen = observed(hyperjob(group(replicas=1)), made, pinned)
    ((sub_job, child),) = members_of(seen)
    found = adoptions(seen.hyperjob, sub_job, child)
    assert [each.kind for each in found] == kinds
    for each in found:
        patched = each.patch["metadata"]
        assert (each.name, patched["uid"]) == ("hj-trainer-0", each.uid)
        assert patched["labels"]["volcano.sh/replicatedjob-name"] == "trainer"
        whole = each.kind == "PropagationPolicy" or "ownerReferences" in metadata
        assert patched.get("ownerReferences") == (owner() if whole else None)


def test_a_vcjob_that_only_a_member_has_is_taken_over_with_its_spec_and_no_gate() -> None:
    ours = {
        "volcano.sh/hyperjob-name": "hj",
        "volcano.sh/replicatedjob-name": "trainer",
        "training.volcano.sh/attempt": "2",
    }
    found: Object = {
        "metadata": {
            "name": "hj-trainer-0",
            "namespace": "member-side",
            "uid": "of the member",
            "resourceVersion": "9",
            "labels": {**ours, "mine": "x", "work.karmada.io/name": "w", "karmada.io/managed": "1"},
            "annotations": {"note": "n", "resourcetemplate.karmada.io/uid": "u"},
        },
        "spec": {"minAvailable": 3},
        "status": {"state": {"phase": "Running"}},
    }
    policy, vcjob = taken_over(parse_hyperjob(hyperjob()), found, "b")
    assert vcjob["metadata"] == {
        "name": "hj-trainer-0",
        "namespace": "default",
        "labels": {**ours, "mine": "x"},
        "annotations": {"note": "n"},
        "ownerReferences": owner(),
    }
    assert (vcjob["apiVersion"], vcjob["kind"]) == ("batch.volcano.sh/v1alpha1", "Job")
    assert vcjob["spec"] == {"minAvailable": 3}
    assert "status" not in vcjob
    assert policy["metadata"]["labels"] == ours
    assert policy["metadata"]["ownerReferences"] == owner()
    (affinity,) = policy["spec"]["placement"]["clusterAffinities"]
    assert affinity == {"affinityName": "hyperjob", "clusterNames": ["b"]}
    assert "suspension" not in policy["spec"]
    del found["metadata"]["annotations"]
    assert "annotations" not in taken_over(parse_hyperjob(hyperjob()), found, "b")[1]["metadata"]


@pytest.mark.parametrize(("recorded", "attempt"), [(1, "2"), (3, "3")])
def test_a_vcjob_that_is_taken_over_is_of_the_present_attempt(recorded: int, attempt: str) -> None:
    """The controller gave up attempt 2 with its cluster, which came back with the pods."""
    known = {"name": "hj-trainer-0", "replicatedJob": "trainer", "attempt": recorded}
    given = {"name": "hj-trainer-0", "labels": {"training.volcano.sh/attempt": "2"}}
    seen = parse_hyperjob(hyperjob(status={"jobs": [known]}))
    for made in taken_over(seen, {"metadata": given, "spec": {}}, "b"):
        assert made["metadata"]["labels"]["training.volcano.sh/attempt"] == attempt


@pytest.mark.parametrize(
    ("holder", "reason", "words"),
    [
        (owner("gone"), Reason.BEING_DELETED, "waits until the Job of an earlier HyperJob"),
        (owner("gone", name="other"), Reason.NAME_CONFLICT, "give one of the two HyperJobs"),
        (
            [{"kind": "Deployment", "name": "hj", "uid": "x", "controller": True}],
            Reason.NAME_CONFLICT,
            "exists and does not belong to this HyperJob, controlled by Deployment hj; delete it",
        ),
    ],
)
def test_a_taken_name_says_whose_it_is(holder: list[Object], reason: Reason, words: str) -> None:
    seen = observed(hyperjob(), job("hj-trainer-0", owners=holder, marked={}))
    found = conflict(child_of(seen, "hj-trainer-0"), "hj")
    assert found.reason is reason
    assert words in found.message
    own = observed(hyperjob(), job("hj-trainer-0"))
    assert conflict(child_of(own, "hj-trainer-0"), "hj") is None
    assert conflict(child_of(own, "hj-trainer-1"), "hj") is None
