"""Sub-jobs are lost with their Cluster, ResourceBinding or Work, or when Karmada evicts them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.names import LABEL_CLAIMED
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.decisions import WORK_SETTLES
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    labels,
    observed,
    policy,
    vcjob_status,
)

NAME = "hj-trainer-0"
SECOND = timedelta(seconds=1)
LONG = WORK_SETTLES + SECOND
READY = cluster("a")
NOT_READY = cluster("a", unusable="NotReady", not_ready_since=NOW - SECOND)


def workless(
    ago: timedelta,
    *,
    applied: str = "False",
    items: tuple[Object, ...] = (),
    **fields: Any,
) -> Object:
    """Build a ResourceBinding as Karmada leaves it without a Work."""
    known = binding(NAME, cluster="a", **fields)
    known["status"] = {
        "conditions": [
            {
                "type": "FullyApplied",
                "status": applied,
                "reason": "FullyAppliedFailed",
                "lastTransitionTime": rfc3339(NOW - ago),
            }
        ]
    }
    if items:
        known["status"]["aggregatedStatus"] = list(items)
    return known


def planned(
    known: Object, where: Any = READY, *, phase: str = "Running", on: str = "a", **fields: Any
) -> Plan:
    """Plan a HyperJob without a failure policy whose vcjob has lost its status."""
    record = job_status(0, phase=phase, cluster=on)
    raw = hyperjob(group(replicas=1), status={"jobs": [record | fields]})
    return plan(observed(raw, job(NAME), policy(NAME), known, clusters=(where,)))


def entry(decided: Plan) -> Object:
    (found,) = decided.status["jobs"]
    return dict(found)


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_a_sub_job_without_its_work_starts_again(phase: str) -> None:
    decided = entry(planned(workless(LONG), phase=phase))
    assert (decided["attempt"], decided["reason"]) == (1, "Restarting")
    assert decided["message"].endswith(
        "is lost: its Work was deleted, and Karmada deleted its pods on a"
    )


def test_a_short_time_without_a_work_is_said_and_ends_by_itself() -> None:
    decided = planned(workless(SECOND))
    now = entry(decided)
    assert "attempt" not in now
    assert now["reason"] == "ObjectDeleted"
    assert decided.requeue_after == WORK_SETTLES - SECOND


APPLY_FAILED = {"clusterName": "a", "appliedMessage": "connection refused"}
HEALTHY = {"clusterName": "a", "applied": True, "status": vcjob_status("Running")}
KEPT = {
    "an apply that failed": (workless(LONG, items=(APPLY_FAILED,)), {}),
    "a report": (workless(LONG, items=(HEALTHY,)), {}),
    "a condition that is not False": (workless(LONG, applied="Unknown"), {}),
    "a gate that is closed": (workless(LONG, suspension={"dispatching": True}), {}),
    "a vcjob that no cluster has reported": (workless(LONG), {"phase": "Placed"}),
    "a vcjob that is ended": (workless(LONG), {"phase": "Completed"}),
    "a report of another cluster": (workless(LONG), {"on": "b"}),
    "a cluster that is not Ready": (workless(LONG), {"where": NOT_READY}),
}


@pytest.mark.parametrize("case", KEPT)
def test_other_sub_jobs_stay(case: str) -> None:
    known, fields = KEPT[case]
    decided = entry(planned(known, **fields))
    assert "attempt" not in decided
    assert decided.get("reason") != "ObjectDeleted"


def evicted(**fields: Any) -> Object:
    """Build a ResourceBinding as Karmada leaves it when a cluster gets a taint NoExecute."""
    return binding(NAME, unscheduled=("NoClusterFit", "0/1 clusters"), **fields)


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_a_sub_job_that_karmada_evicts_starts_again(phase: str) -> None:
    decided = entry(planned(evicted(), phase=phase))
    assert (decided["attempt"], decided["reason"]) == (1, "Restarting")
    assert decided["message"].endswith("is lost: Karmada evicts it from cluster a")


NOT_EVICTED = {
    "before a cluster has reported it": (evicted(), {"phase": "Placed"}),
    "while its queue holds it": (evicted(suspension={"scheduling": True}), {}),
    "when it has ended": (evicted(), {"phase": "Completed"}),
    "from a cluster that may be disconnected": (evicted(), {"where": NOT_READY}),
    "while Karmada has not looked for another cluster": (binding(NAME), {}),
}


@pytest.mark.parametrize("case", NOT_EVICTED)
def test_no_sub_job_is_evicted(case: str) -> None:
    known, fields = NOT_EVICTED[case]
    assert "attempt" not in entry(planned(known, **fields))


CLAIMED = labels() | {LABEL_CLAIMED: "id"}

OTHER = cluster("b")
SIBLING = child(1, "Running", on="b")


def reported(
    *bindings: Object, phase: str = "Running", marked: Any = CLAIMED, where: Any = (READY, OTHER)
) -> Object:
    """Plan two sub-jobs without a failure policy that their clusters have reported."""
    records = [job_status(n, phase=phase, cluster="ab"[n]) for n in range(2)]
    raw = hyperjob(group(replicas=2), status={"jobs": records})
    vcjob = job(NAME, phase=phase, marked=marked)
    decided = plan(observed(raw, vcjob, policy(NAME), *SIBLING, *bindings, clusters=where))
    return dict(decided.status["jobs"][0])


def test_a_sub_job_without_its_resource_binding_starts_again_at_once() -> None:
    decided = reported()
    assert (decided["attempt"], decided["reason"]) == (1, "Restarting")
    text = "is lost: its ResourceBinding was deleted, and Karmada deleted its pods on a"
    assert decided["message"].endswith(text)
    (run,) = decided["history"]
    assert (run["reason"], run["cluster"]) == ("ObjectDeleted", "a")


OF_BEFORE = binding(NAME, cluster="a")
OF_BEFORE["metadata"]["ownerReferences"][0]["uid"] = "another"
BOUND = {
    "of a vcjob that Karmada has not claimed": {"marked": labels()},
    "of a vcjob that no cluster has reported": {"phase": ""},
    "of a vcjob that is ended": {"phase": "Completed"},
    "where that of an earlier vcjob is left": {"bindings": (OF_BEFORE,)},
}


@pytest.mark.parametrize("case", BOUND)
def test_a_resource_binding_is_not_missed(case: str) -> None:
    fields: dict[str, Any] = dict(BOUND[case])
    assert "attempt" not in reported(*fields.pop("bindings", ()), **fields)


REMOVED = replace(READY, usable=False, trouble=Trouble(ClusterTrouble.REMOVED))


@pytest.mark.parametrize(
    "where", [(OTHER,), (REMOVED, OTHER)], ids=["it is gone", "it is being removed"]
)
def test_a_sub_job_of_a_removed_cluster_starts_again_at_once(where: Any) -> None:
    decided = reported(binding(NAME, cluster="a"), where=where)
    assert (decided["attempt"], decided["reason"]) == (1, "Restarting")
    assert decided["message"].endswith("is lost: cluster a is gone")
    (run,) = decided["history"]
    assert (run["reason"], run["cluster"]) == ("ClusterLost", "a")


@pytest.mark.parametrize(("phase", "where"), [("Running", ()), ("Completed", (OTHER,))])
def test_no_cluster_is_missed_where_none_is_known_or_its_sub_job_has_ended(
    phase: str, where: Any
) -> None:
    assert "attempt" not in reported(binding(NAME, cluster="a"), phase=phase, where=where)


def test_a_vcjob_of_an_earlier_attempt_is_deleted_and_not_lost() -> None:
    decided = entry(planned(workless(LONG), attempt=1))
    assert decided["attempt"] == 1


@pytest.mark.parametrize(("left", "lost"), [({NAME: 1}, False), ({NAME: 0}, True), ({}, True)])
def test_a_sub_job_whose_pods_run_is_not_lost(left: dict[str, int], lost: bool) -> None:
    record = job_status(0, phase="Running")
    raw = hyperjob(group(replicas=1), status={"jobs": [record | {"cluster": "a"}]})
    seen = observed(raw, job(NAME), policy(NAME), workless(LONG), clusters=(READY,))
    assert ("attempt" in entry(plan(replace(seen, pods_left=left)))) is lost
