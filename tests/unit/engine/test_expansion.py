"""Which sub-jobs a HyperJob has, of which objects, what becomes theirs, and who has a name."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_core.api.defaults import complete_template
from hyperjob_engine.expansion.expand import expand, fewest_of
from hyperjob_engine.expansion.members import adoptions, conflict, members_of, resize
from hyperjob_engine.expansion.objects import policy as policy_object
from hyperjob_engine.expansion.objects import taken_over, vcjob
from hyperjob_engine.model.observed import Observed, QueueAdmission
from hyperjob_engine.model.parse import parse_hyperjob, parse_job
from hyperjob_engine.model.planned import Adopt, DeleteChild, OpenGate
from hyperjob_engine.model.subjobs import SubJob, child_of
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import whole
from hyperjob_engine.status.transitions import action_events
from hyperjob_engine.steps.requeue import CONFLICT_RECHECK
from tests.unit.engine.builders import (
    Object,
    binding,
    group,
    hyperjob,
    job,
    job_status,
    labels,
    observed,
    owner,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.plans import A, decide, kinds, message, phase, wanted


def only_sub_job(raw: Object) -> SubJob:
    return wanted(parse_hyperjob(raw))[0]


def test_a_sub_jobs_vcjob_is_the_template_under_our_name_labels_and_ownership() -> None:
    metadata = {
        "labels": {
            "team": "x",
            "volcano.sh/hyperjob-name": "forged",
            "resourcetemplate.karmada.io/deletion-protected": "Always",
        },
        "annotations": {"a": "b", "work.karmada.io/conflict-resolution": "overwrite"},
    }
    raw = hyperjob(group(replicas=1, templateMetadata=metadata))
    made = vcjob(parse_hyperjob(raw), only_sub_job(raw))
    assert (made["apiVersion"], made["kind"]) == ("batch.volcano.sh/v1alpha1", "Job")
    assert made["metadata"] == {
        "name": "hj-trainer-0",
        "namespace": "default",
        "labels": {"team": "x", **labels(), "training.volcano.sh/job-index": "0"},
        "annotations": {"a": "b"},
        "ownerReferences": owner(),
    }
    assert made["spec"] == complete_template(raw["spec"]["replicatedJobs"][0]["templateSpec"])


@pytest.mark.parametrize(
    ("admission", "held", "affinity"),
    [
        (QueueAdmission.NONE, False, "hyperjob"),
        (QueueAdmission.VOLCANO_GLOBAL, True, "hyperjob-gang"),
        (QueueAdmission.VOLCANO_GLOBAL, False, "hyperjob-gang"),
        (QueueAdmission.BUILTIN, True, "hyperjob-held"),
    ],
)
def test_a_sub_jobs_policy_pins_it(admission: QueueAdmission, held: bool, affinity: str) -> None:
    raw = hyperjob(group(replicas=1))
    document = policy_object(
        parse_hyperjob(raw), only_sub_job(raw), "member1", admission=admission, held=held
    )
    assert document["metadata"]["name"] == "hj-trainer-0"
    assert document["metadata"]["ownerReferences"] == owner()
    assert document["spec"] == {
        "resourceSelectors": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "namespace": "default",
                "name": "hj-trainer-0",
            }
        ],
        "propagateDeps": True,
        "preemption": "Always",
        "conflictResolution": "Abort",
        "placement": {
            "clusterAffinities": [{"affinityName": affinity, "clusterNames": ["member1"]}],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        },
        **({"suspension": {"dispatching": True}} if held else {}),
    }


@pytest.mark.parametrize(
    ("replicas", "objects", "records", "kept", "leaving"),
    [
        pytest.param(2, [], [], [0, 1], [], id="nothing yet"),
        pytest.param(3, [job("hj-trainer-0")], [], [0, 1, 2], [], id="the lowest free are taken"),
        pytest.param(
            2, [job("hj-trainer-1"), job("hj-trainer-4")], [], [1, 4], [], id="names are stable"
        ),
        pytest.param(3, [job("hj-trainer-4")], [], [0, 1, 4], [], id="holes are filled first"),
        pytest.param(
            2, [], [job_status(1, phase="Completed"), job_status(2)], [1, 2], [],
            id="what the status recorded stays",
        ),
        pytest.param(
            1,
            [job("hj-trainer-0", phase="Pending"), job("hj-trainer-1", phase="Running")],
            [], [1], ["hj-trainer-0"],
            id="what does not run goes first",
        ),
        pytest.param(
            1,
            [job(f"hj-trainer-{i}", phase="Running") for i in range(3)],
            [], [0], ["hj-trainer-1", "hj-trainer-2"],
            id="of those that run the highest go",
        ),
        pytest.param(
            2,
            [job("hj-trainer-0", phase="Completed"), job("hj-trainer-1", phase="Failed"),
             job("hj-trainer-2", phase="Running")],
            [], [0, 2], ["hj-trainer-1"],
            id="a failed one goes before a completed one",
        ),
        pytest.param(
            1, [job("hj-trainer-0", phase="Pending")], [job_status(each) for each in range(3)],
            [0], ["hj-trainer-1", "hj-trainer-2"],
            id="what was never made goes before anything",
        ),
        pytest.param(
            1,
            [job("hj-trainer-7", owners=owner("other")), job("hj-trainer-x", phase="Running"),
             job("hj-trainer-01", phase="Running")],
            [], [0], [],
            id="strangers and other names are not counted",
        ),
    ],
)  # fmt: skip
def test_indices_in_use(
    replicas: int, objects: list[Object], records: list[Object], kept: list[int], leaving: list[str]
) -> None:
    raw = hyperjob(group(replicas=replicas), status={"jobs": records})
    seen = observed(raw, *objects)
    members = members_of(seen, expand(seen.hyperjob)[0])
    assert (list(members.kept), list(members.leaving)) == (kept, leaving)


def seen_child(*objects: Object) -> Observed:
    return observed(hyperjob(group(replicas=1)), *objects)


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], ""),
        ([job(), policy()], ""),
        ([job(owners=[])], ""),
        (
            [job(owners=[], marked={})],
            (
                "Job hj-trainer-0 exists and does not belong to this HyperJob; delete it, or give"
                " the HyperJob another name"
            ),
        ),
        (
            [job(owners=owner("older"))],
            "waits until the Job of an earlier HyperJob of this name is gone",
        ),
        (
            [policy(owners=owner("older", "x"))],
            (
                "PropagationPolicy hj-trainer-0 exists and does not belong to this HyperJob,"
                " controlled by HyperJob x; give one of the two HyperJobs another name"
            ),
        ),
        (
            [job(owners=[{"kind": "Deployment", "name": "d", "uid": "x", "controller": True}])],
            (
                "Job hj-trainer-0 exists and does not belong to this HyperJob, controlled by"
                " Deployment d; delete it, or give the HyperJob another name"
            ),
        ),
        ([job(phase="Running"), policy(owners=owner("older"))], ""),
    ],
)
def test_a_strangers_object_is_told(objects: list[Object], text: str) -> None:
    found = conflict(child_of(seen_child(*objects), "hj-trainer-0"), "hj")
    assert (found.message if found else "") == text


@pytest.mark.parametrize(
    ("live", "wanted", "operations"),
    [
        pytest.param(
            template(task(replicas=4, minAvailable=4, maxRetry=3), minAvailable=4, queue="q"),
            template(task(replicas=4)), None,
            id="what webhooks defaulted is no difference",
        ),
        pytest.param(
            template(task(replicas=8, minAvailable=8), minAvailable=8),
            template(task(replicas=4)),
            [("test", "/spec/tasks/0/name", "worker"), ("add", "/spec/tasks/0/replicas", 4),
             ("add", "/spec/tasks/0/minAvailable", 4), ("add", "/spec/minAvailable", 4)],
            id="down: minAvailable that meant all follows",
        ),
        pytest.param(
            template(task(replicas=4, minAvailable=4), minAvailable=4),
            template(task(replicas=8)),
            [("test", "/spec/tasks/0/name", "worker"), ("add", "/spec/tasks/0/replicas", 8),
             ("add", "/spec/tasks/0/minAvailable", 8), ("add", "/spec/minAvailable", 8)],
            id="up: minAvailable that meant all follows",
        ),
        pytest.param(
            template(task(replicas=8, minAvailable=2), minAvailable=2),
            template(task(replicas=4)),
            [("test", "/spec/tasks/0/name", "worker"), ("add", "/spec/tasks/0/replicas", 4)],
            id="a smaller minAvailable stays",
        ),
        pytest.param(
            template(task(replicas=4), minAvailable=4),
            template(task(replicas=4), minAvailable=3),
            [("add", "/spec/minAvailable", 3)],
            id="minAvailable alone",
        ),
        pytest.param(
            template(task(replicas=4)),
            template(task(replicas=4), priorityClassName="high"),
            [("add", "/spec/priorityClassName", "high")],
            id="priority class",
        ),
        pytest.param(
            template(task(image="old")), template(task("renamed"), queue="other"), None,
            id="what Volcano refuses is not tried",
        ),
        pytest.param(template(task()), template(task(), task("b")), None, id="tasks do not come"),
    ],
)  # fmt: skip
def test_only_what_volcano_lets_change_is_changed(
    live: Object, wanted: Object, operations: list[tuple[str, str, object]] | None
) -> None:
    parsed = parse_hyperjob(hyperjob())
    change = resize(parse_job(job(spec=live), owner=parsed), wanted)
    if operations is None:
        assert change is None
    else:
        assert [(o["op"], o["path"], o["value"]) for o in change.operations] == operations


def test_a_binding_of_a_predecessor_is_not_believed() -> None:
    old = binding(cluster="a", status={"state": {"phase": "Failed"}})
    old["metadata"]["ownerReferences"][0]["uid"] = "older"
    child = child_of(seen_child(job(), old), "hj-trainer-0")
    assert child.report is None
    assert child.binding is None


def test_the_bindings_report_comes_first_and_the_vcjobs_fills_in() -> None:
    fresh = binding(cluster="a", status={"state": {"phase": "Running"}})
    assert child_of(seen_child(job(phase="Pending"), fresh), "hj-trainer-0").phase == "Running"
    empty = binding(cluster="a", status={})
    assert child_of(seen_child(job(phase="Pending"), empty), "hj-trainer-0").phase == "Pending"


@pytest.mark.parametrize(
    ("tasks", "wanted", "existing", "together"),
    [
        ([(4, None)], None, 0, (4,)),
        ([(200, 1)], None, 0, (1,)),
        ([(200, 1)], 1, 0, (1,)),
        ([(200, 1)], 64, 0, (64,)),
        ([(200, 1)], 1, 40, (40,)),
        ([(200, 1)], 1, 500, (200,)),
        ([(1, None), (8, 2)], None, 0, (1, 2)),
        ([(1, None), (8, 2)], 5, 0, (1, 4)),
        ([(1, None), (8, 2)], 9, 0, (1, 8)),
        ([(4, 2), (4, 2)], 7, 0, (4, 3)),
        ([(4, None), (4, None)], 3, 0, (3, 0)),
        ([(4, 0)], None, 0, (0,)),
        ([(4, 9)], None, 0, (4,)),
    ],
)
def test_the_pods_that_start_together_are_those_of_volcanos_pod_group(
    tasks: list[tuple[int, int | None]],
    wanted: int | None,
    existing: int,
    together: tuple[int, ...],
) -> None:
    made: list[Object] = [
        {"replicas": replicas, **({} if least is None else {"minAvailable": least})}
        for replicas, least in tasks
    ]
    job: Object = {"tasks": made, **({} if wanted is None else {"minAvailable": wanted})}
    assert fewest_of(job, existing) == together


def test_a_sub_job_asks_for_the_pods_that_start_together_and_counts_all_its_accelerators() -> None:
    elastic = template(task(replicas=200, gpus=1, minAvailable=1))
    (found,) = expand(parse_hyperjob(hyperjob(group(replicas=1, templateSpec=elastic))))
    made = found.sizes[0]
    assert made.demand["nvidia.com/gpu"] == whole(1)
    assert (made.fewest, made.pods, made.accelerators) == (1, 200, 200)


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
    (sub_job,) = wanted(seen.hyperjob)
    found = adoptions(seen.hyperjob, sub_job, child_of(seen, sub_job.name))
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


NAME = "hj-trainer-0"


def told(reason: str, at: str = "2026-01-02T03:04:00Z") -> Object:
    """Give the HyperJob as it is after a pass that told this of its sub-job."""
    record = job_status(0, phase="Unplaced")
    jobs = [{**record, "reason": reason, "lastTransitionTime": at}]
    return hyperjob(group(replicas=1), status={"jobs": jobs})


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
    found = decide(told("BeingDeleted", told_at), left)
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
    assert kinds(decide(told("NameConflict"))) == [("Look", NAME), ("CreateChild", NAME)]


def test_a_policy_made_for_a_name_that_is_a_strangers_goes() -> None:
    found = decide(hyperjob(group(replicas=1)), job(owners=[], marked={}), policy())
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
    found = decide(hyperjob(), *taken, stamped, admission=admission)
    opened = [action for action in found.actions if isinstance(action, OpenGate)]
    assert [action for action in opened if action.name == NAME] == []


def test_a_binding_whose_owner_and_resource_differ_is_no_vcjobs() -> None:
    held = {"dispatching": True, "scheduling": False}
    forged = binding(cluster="a", gate="held", suspension=held)
    forged["spec"]["resource"]["uid"] = "uid-of-another"
    found = decide(
        hyperjob(group(replicas=1)),
        job(),
        policy(suspended=True),
        forged,
        admission=QueueAdmission.VOLCANO_GLOBAL,
    )
    assert [action for action in found.actions if isinstance(action, OpenGate)] == []


def test_a_binding_of_another_kind_is_named_and_looked_at_again() -> None:
    """Karmada names the binding of a batch Job as that of a vcjob."""
    other = binding()
    other["spec"]["resource"]["apiVersion"] = "batch/v1"
    other["metadata"]["ownerReferences"] = []
    found = decide(hyperjob(group(replicas=1)), other)
    assert found.actions == ()
    assert phase(found) == ("Pending", "NameConflict")
    assert f"{NAME}-job belongs to batch/v1 Job {NAME}" in message(found)
    assert found.requeue_after == CONFLICT_RECHECK


def test_a_policy_that_lost_its_labels_is_labelled_again() -> None:
    bare = policy()
    bare["metadata"]["labels"] = {}
    found = decide(hyperjob(group(replicas=1)), job(phase="Running"), bare)
    (action,) = found.actions
    assert isinstance(action, Adopt)
    assert (action.kind, action.uid) == ("PropagationPolicy", f"pp-{NAME}")
    assert action.patch["metadata"]["labels"]["volcano.sh/hyperjob-name"] == "hj"
