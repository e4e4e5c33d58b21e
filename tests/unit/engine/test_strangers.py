"""Names that are taken, and objects of ours that no cache has: judged, never fought over."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import Adopt, DeleteChild, OpenGate, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import action_events
from hyperjob_engine.steps.requeue import CONFLICT_RECHECK
from tests.unit.engine.builders import (
    Object,
    binding,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    vcjob_status,
)
from tests.unit.engine.plans import A, kinds, message, phase

NAME = "hj-trainer-0"


def told(reason: str, at: str = "2026-01-02T03:04:00Z") -> Object:
    """Give the HyperJob as it is after a pass that told this of its sub-job."""
    record = job_status(0, phase="Unplaced")
    jobs = [{**record, "reason": reason, "lastTransitionTime": at}]
    return hyperjob(group(replicas=1), status={"jobs": jobs})


def decided(raw: Object, *objects: Object) -> Plan:
    return plan(observed(raw, *objects, clusters=(A,)))


@pytest.mark.parametrize(
    ("told_at", "looks", "again"),
    [
        pytest.param("2026-01-02T03:04:03Z", [], timedelta(seconds=3), id="it-may-go-yet"),
        pytest.param(
            "2026-01-02T03:04:00Z", [("Look", NAME)], CONFLICT_RECHECK, id="it-does-not-go"
        ),
    ],
)
def test_a_binding_that_does_not_go_has_its_vcjob_looked_up(
    told_at: str, looks: list[tuple[str, str]], again: timedelta
) -> None:
    """One that lost its label is in no cache, while it runs."""
    left = binding(cluster="a", status=vcjob_status("Running"))
    found = decided(told("BeingDeleted", told_at), left)
    assert (kinds(found), found.requeue_after) == (looks, again)
    assert phase(found) == ("Pending", "BeingDeleted")
    assert action_events(found.actions) == ()


def test_pods_of_a_strangers_vcjob_do_not_hide_it() -> None:
    """Its pods are under the name of the sub-job: "of its earlier attempt" was said for good."""
    left = binding(cluster="a", status=vcjob_status("Running"))
    seen = observed(told("BeingDeleted"), left, clusters=(A,))
    found = plan(replace(seen, pods_left={NAME: 1}))
    assert kinds(found) == [("Look", NAME)]


def test_a_name_that_was_taken_is_looked_up_before_anything_is_made_for_it() -> None:
    """A policy made first would take the stranger's vcjob to a cluster of ours."""
    assert kinds(decided(told("NameConflict"))) == [("Look", NAME), ("CreateChild", NAME)]


def test_a_policy_made_for_a_name_that_is_a_strangers_goes() -> None:
    found = decided(hyperjob(group(replicas=1)), job(owners=[], marked={}), policy())
    (action,) = found.actions
    assert isinstance(action, DeleteChild)
    assert (action.job_uid, action.policy_uid) == (None, f"pp-{NAME}")
    assert phase(found) == ("Pending", "NameConflict")


@pytest.mark.parametrize("admission", QueueAdmission)
def test_the_gate_of_a_strangers_vcjob_stays_shut(admission: QueueAdmission) -> None:
    """Its binding was stamped because our policy took it; only its own UID makes it ours."""
    taken = [job(owners=[], marked={}), policy(suspended=True)]
    held = {"dispatching": True, "scheduling": False}
    stamped = binding(cluster="a", gate="held", suspension=held)
    found = plan(observed(hyperjob(), *taken, stamped, clusters=(A,), admission=admission))
    opened = [action for action in found.actions if isinstance(action, OpenGate)]
    assert [action for action in opened if action.name == NAME] == []


def test_a_binding_whose_owner_and_resource_differ_is_no_vcjobs() -> None:
    held = {"dispatching": True, "scheduling": False}
    forged = binding(cluster="a", gate="held", suspension=held)
    forged["spec"]["resource"]["uid"] = "uid-of-another"
    found = plan(
        observed(
            hyperjob(group(replicas=1)),
            job(),
            policy(suspended=True),
            forged,
            clusters=(A,),
            admission=QueueAdmission.VOLCANO_GLOBAL,
        )
    )
    assert [action for action in found.actions if isinstance(action, OpenGate)] == []


def test_a_binding_of_another_kind_is_named_and_looked_at_again() -> None:
    """Karmada names the binding of a batch Job as that of a vcjob."""
    other = binding()
    other["spec"]["resource"]["apiVersion"] = "batch/v1"
    other["metadata"]["ownerReferences"] = []
    found = decided(hyperjob(group(replicas=1)), other)
    assert found.actions == ()
    assert phase(found) == ("Pending", "NameConflict")
    assert f"{NAME}-job belongs to batch/v1 Job {NAME}" in message(found)
    assert found.requeue_after == CONFLICT_RECHECK


def test_a_policy_that_lost_its_labels_is_labelled_again() -> None:
    bare = policy()
    bare["metadata"]["labels"] = {}
    found = decided(hyperjob(group(replicas=1)), job(phase="Running"), bare)
    (action,) = found.actions
    assert isinstance(action, Adopt)
    assert (action.kind, action.uid) == ("PropagationPolicy", f"pp-{NAME}")
    assert action.patch["metadata"]["labels"]["volcano.sh/hyperjob-name"] == "hj"
