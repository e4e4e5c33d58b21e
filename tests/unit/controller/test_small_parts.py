"""Small parts of decisions, each with the sides that a whole pass seldom has."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_controller.admission.releases import _queue
from hyperjob_controller.caches.informers import Caches, slim_deployment, slim_job
from hyperjob_controller.caches.mutationcache import _version
from hyperjob_controller.memory import candidates as memory
from hyperjob_controller.memory.candidates import Candidates
from hyperjob_controller.memory.capacity import Capacity
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.options import SETTINGS
from hyperjob_controller.training.schedule import Lane, Schedule
from hyperjob_controller.training.watch import LoggedTask, _tasks
from hyperjob_controller.wake.handlers import _is_settled
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.client import EventType
from hyperjob_engine.expansion.adopt import adoptions
from hyperjob_engine.expansion.expand import expand, sub_jobs
from hyperjob_engine.gang.gate import openings
from hyperjob_engine.gang.places import pinned_place_of, review_places
from hyperjob_engine.gang.rejections import check_rejection
from hyperjob_engine.lifecycle.decisions import Recreation, Restart
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.lifecycle.loss import next_loss
from hyperjob_engine.lifecycle.records import with_restart
from hyperjob_engine.lifecycle.silence import SilentCounts, count_silent
from hyperjob_engine.lifecycle.unstarted import next_due, not_started
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import GangRecord, Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.record import Rejection
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.placement.capacity import summarise
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.evict import loss_of
from hyperjob_engine.queueing.queues import Tree
from hyperjob_engine.queueing.workload import Entry
from hyperjob_engine.reasons.outcomes import Loss, Requested
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.derive import _joined
from tests.unit.controller.builders import (
    GPU,
    NOW,
    VCJOB_APIS,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    labels,
    observed,
    owner,
    policy,
    task,
    template,
)
from tests.unit.controller.queueworld import queue, unit


def members_of(seen: Observed) -> list[tuple[SubJob, Any]]:
    groups = expand(seen.hyperjob)
    indices = {each.replicated_job.name: range(len(each.sizes)) for each in groups}
    wanted = sub_jobs(seen.hyperjob, groups, indices)
    return [(each, child_of(seen, each.name)) for each in wanted]


# Whose objects they are.

OTHERS = [{"kind": "CronJob", "name": "other", "uid": "u", "controller": True}]
BARE: dict[str, str] = {"volcano.sh/hyperjob-name": "hj"}
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


@pytest.mark.parametrize(
    ("metadata", "opens"),
    [
        ({}, True),
        ({"deletionTimestamp": "2026-01-02T03:04:00Z"}, False),
        ({"ownerReferences": []}, False),
        ({"labels": {**labels(), "training.volcano.sh/attempt": "1"}}, True),
    ],
    ids=["ours", "being deleted", "an orphan", "of a later attempt than the status has"],
)
def test_only_gates_of_vcjobs_that_are_ours_and_stay_are_opened(
    metadata: Object, opens: bool
) -> None:
    made = job()
    made["metadata"] |= metadata
    seen = observed(hyperjob(group(replicas=1)), made, policy(), binding(cluster="a", gate="held"))
    children = [child for _, child in members_of(seen)]
    found = openings(children, minimum=1, admission=QueueAdmission.NONE, ready=["hj-trainer-0"])
    assert [each.name for each in found] == (["hj-trainer-0"] if opens else [])


# Places.


@pytest.mark.parametrize(
    ("phase", "status", "stays"),
    [
        ("", None, True),
        ("Pending", None, False),
        ("", {}, False),  # its member has it, and has reported nothing of it yet
    ],
)
def test_what_a_member_has_is_not_moved(phase: str, status: Object | None, stays: bool) -> None:
    seen = observed(
        hyperjob(group(replicas=1)),
        job(phase=phase),
        policy(cluster="a"),
        binding(cluster="a", gate="held", status=status),
        admission=QueueAdmission.BUILTIN,
    )
    ((sub_job, child),) = members_of(seen)
    assert (pinned_place_of(seen, sub_job, child, frozenset()) is not None) is stays


def test_what_this_pass_has_placed_counts_as_a_domain_of_those_that_are_reviewed() -> None:
    """With maxDomains 1 a held sub-job follows to the cluster of the others."""
    raw = hyperjob(group(replicas=2, gpus=4), maxDomains=1)
    seen = observed(
        raw,
        job(gpus=4),
        policy(cluster="b"),
        binding(cluster="b", gate="held"),
        clusters=(cluster("a", 8), cluster("b", -4)),
        admission=QueueAdmission.BUILTIN,
    )
    first, second = members_of(seen)
    place = pinned_place_of(seen, *first, frozenset())
    assert place is not None
    request = second[0].request()
    found = review_places(seen, [place], standing=[], placed=[(request, "a")])
    assert found.moves == {"hj-trainer-0": "a"}
    apart = replace(seen, clusters=(cluster("a", 4), cluster("b", -4), cluster("c", 8)))
    found = review_places(apart, [place], standing=[], placed=[(request, "a")])
    assert not found.moves, "c would be a second domain"


# Times.


def test_the_first_cluster_that_will_count_as_lost_is_waited_for() -> None:
    seen = observed(hyperjob(group(replicas=1)))

    def loss(seconds: int, *, is_lost: bool = False) -> Loss:
        return Loss(cluster="a", at=NOW + timedelta(seconds=seconds), is_lost=is_lost)

    assert next_loss(seen, {}) is None
    assert next_loss(seen, {"x": loss(-1, is_lost=True)}) is None
    losses = {"x": loss(9), "y": loss(5), "z": loss(-1, is_lost=True)}
    assert next_loss(seen, losses) == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("seconds", "excluded", "wait"), [(-1, False, None), (0, False, None), (1, True, 1)]
)
def test_a_cluster_is_left_out_until_its_time(
    seconds: int, excluded: bool, wait: int | None
) -> None:
    until = NOW + timedelta(seconds=seconds)
    left = [{"cluster": "b", "times": 2, "retryTime": f"{until:%Y-%m-%dT%H:%M:%SZ}"}]
    record = {"name": "hj-trainer-0", "replicatedJob": "trainer", "index": 0, "rejections": left}
    seen = observed(hyperjob(group(replicas=1), status={"jobs": [record]}))
    ((_, child),) = members_of(seen)
    found = check_rejection(child, now=NOW)
    assert found.rejections == (Rejection(cluster="b", times=2, retry_time=until),)
    assert found.excluded == (frozenset({"b"}) if excluded else frozenset())
    assert found.wait == (None if wait is None else timedelta(seconds=wait))


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [
        (60, SilentCounts(silent=2, unmoved=3)),
        (30, SilentCounts(silent=2, unmoved=3)),
        (29, SilentCounts()),
    ],
)
def test_silent_ones_and_those_without_progress_are_counted_apart(
    seconds: int, counts: SilentCounts
) -> None:
    since = f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
    applied = [{"type": "FullyApplied", "status": "True", "lastTransitionTime": since}]
    objects: list[Object] = []
    for index in range(5):
        name = f"hj-trainer-{index}"
        silent = index < 2
        bound = binding(name, cluster="a", status={} if silent else None)
        if not silent:
            pending = {"state": {"phase": "Pending", "lastTransitionTime": since}}
            bound = binding(name, cluster="a", status=pending)
        bound["status"]["conditions"] = applied
        objects += [job(name), policy(name), bound]
    names = [f"hj-trainer-{index}" for index in range(5)]
    seen = observed(
        hyperjob(group(replicas=5)), *objects, clusters=(cluster("a"),), followers=names
    )
    assert count_silent(seen, members_of(seen)) == counts
    lost = replace(cluster("a"), not_ready_since=NOW)
    assert count_silent(replace(seen, clusters=(lost,)), members_of(seen)) == SilentCounts()
    other = replace(seen, clusters=(lost, cluster("b")))
    assert count_silent(other, members_of(seen)) == SilentCounts(), "b is not its cluster"


# Dependencies.


@pytest.mark.parametrize(
    ("policy_of", "phases", "hopeless"),
    [
        (None, ("Failed", "Running"), True),
        (None, ("Aborted", "Running"), True),
        (None, ("Completed", "Running"), False),
        ({"maxRestarts": 1}, ("Failed", "Running"), False),
        ({}, ("Failed", "Running"), False),
    ],
)
def test_what_depends_on_a_failed_sub_job_never_starts_unless_a_policy_makes_that_again(
    policy_of: Object | None, phases: Sequence[str], hopeless: bool
) -> None:
    first = group("first", replicas=2, gpus=1)
    second = group("second", replicas=1, dependsOn=[{"name": "first", "status": "Complete"}])
    third = group("third", replicas=1, dependsOn=[{"name": "second", "status": "Ready"}])
    spec = {} if policy_of is None else {"failurePolicy": policy_of}
    jobs = [
        job(f"hj-first-{index}", phase=phase, marked=labels(rj="first"))
        for index, phase in enumerate(phases)
    ]
    seen = observed(hyperjob(first, second, third, **spec), *jobs)
    found = waiting(seen, members_of(seen))
    assert set(found.for_what) == {"hj-second-0", "hj-third-0"}
    assert found.hopeless == (frozenset(found.for_what) if hopeless else frozenset())


# The status.


def test_a_cluster_without_accelerators_counts_none() -> None:
    cpu = template(task(gpus=0, replicas=2))
    raw = hyperjob(group(replicas=1, templateSpec=cpu))
    running = job(phase="Running", pods={"running": 2}, spec=cpu)
    seen = observed(raw, running, policy(cluster="a"), binding(cluster="a"))
    status = plan(seen).status
    assert status is not None
    assert status["clusters"] == [{"name": "a", "jobs": 1, "ready": 1, "running": 2}]


# Queues.


def test_the_loss_of_a_stop_counts_from_the_checkpoint_else_from_the_start_else_from_the_creation():
    """At most an hour counts, and no time at all counts as an hour."""

    def entry(**fields: str) -> Entry:
        made = Entry(replace(unit("x", 4), **fields))
        made.hold({each.name: (each, "a") for each in made.unit.parts})
        return made

    times = {"created": "2026-01-02T03:00:00Z", "since": "2026-01-02T03:02:00Z"}
    kept = {"kept": "2026-01-02T03:04:00.500000Z"}
    assert loss_of(entry(**times, **kept), now=NOW) == 18 * NANO
    assert loss_of(entry(**times, kept=""), now=NOW) == 125 * 4 * NANO
    assert loss_of(entry(created=times["created"], since="", kept=""), now=NOW) == 245 * 4 * NANO
    assert loss_of(entry(created="", since="", kept=""), now=NOW) == 3600 * 4 * NANO
    assert loss_of(entry(created="2020-01-02T03:00:00Z"), now=NOW) == 3600 * 4 * NANO


def test_a_queue_lends_only_what_is_there_and_reclaimable() -> None:
    lender, giver = queue("lender"), replace(queue("giver"), reclaimable=True)
    keeper = replace(queue("keeper"), reclaimable=False)
    urgent = replace(queue("urgent"), reclaimable=True, priority=1)
    tree = Tree((lender, giver, keeper, urgent), {})
    assert tree.lent("giver", "lender") == ("giver", "lender")
    assert tree.lent("keeper", "lender") is None
    assert tree.lent("urgent", "lender") is None
    assert tree.lent("giver", "urgent") == ("giver", "urgent")
    assert tree.lent("giver", "giver") is None
    assert tree.lent("gone", "lender") is None


QUEUE_NAMES = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")


@pytest.mark.parametrize(
    ("marked", "annotated", "expected"),
    [
        ({}, {}, "default"),
        ({QUEUE_NAMES[0]: "a"}, {QUEUE_NAMES[0]: "b", QUEUE_NAMES[1]: "c"}, "a"),
        ({}, {QUEUE_NAMES[0]: "b", QUEUE_NAMES[1]: "c"}, "b"),
        ({QUEUE_NAMES[1]: "d"}, {QUEUE_NAMES[1]: "c"}, "c"),
        ({QUEUE_NAMES[1]: "d"}, {}, "default"),
    ],
)
def test_a_deployment_is_in_the_queue_that_its_pod_template_names(
    marked: Object, annotated: Object, expected: str
) -> None:
    metadata = {"labels": marked, "annotations": annotated}
    assert _queue({"spec": {"template": {"metadata": metadata}}}) == expected


# What is kept in memory.


def test_of_other_workloads_only_what_names_them_and_their_queue_is_kept() -> None:
    metadata = {
        "name": "x",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "deletionTimestamp": "2026-01-02T03:04:00Z",
    }
    of_template = {"labels": {QUEUE_NAMES[0]: "a"}}
    spec = {"template": {"metadata": of_template, "spec": {"containers": []}}, "replicas": 3}
    deployment = {"metadata": {**metadata, "labels": {"a": "b"}}, "spec": spec, "status": {"a": 1}}
    assert slim_deployment(deployment) == {
        "metadata": metadata,
        "spec": {"template": {"metadata": of_template}},
    }
    vcjob = {"metadata": {"name": "x", "labels": {}}, "spec": {"queue": "q", "tasks": []}}
    assert slim_job(vcjob) == {"metadata": {"name": "x"}, "spec": {"queue": "q"}}


@pytest.mark.parametrize("webhooks", [True, False])
def test_webhooks_are_always_watched_and_waited_for_where_the_queue_admission_follows_them(
    webhooks: bool,
) -> None:
    caches = Caches(None, webhooks=webhooks)  # type: ignore[arg-type]  # no call is made
    assert (caches.mutating_webhooks in caches.required) is webhooks
    assert caches.all.count(caches.mutating_webhooks) == 1
    assert {caches.queues, caches.priority_classes} <= set(caches.all) - set(caches.required)
    assert len(caches.all) == len(set(caches.all)) == 10


def test_only_clusters_of_which_something_changed_are_worked_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked: list[list[str]] = []

    def noted(summaries: Any, *more: Any) -> Any:
        found = list(summaries)
        worked.append(sorted(each.name for each in found))
        return whole(found, *more)

    whole = memory.candidates
    monkeypatch.setattr(memory, "candidates", noted)
    vcjob, pinned = job(phase="Running", pods={"running": 8}), policy(cluster="b")
    vcjob["status"]["state"]["lastTransitionTime"] = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    reservations = Reservations(
        hyperjob=lambda _: hyperjob(),
        job=lambda _: vcjob,
        policy=lambda _: pinned,
        binding=lambda _: None,
        lag=timedelta(seconds=60),
    )
    candidates = Candidates(reservations)
    report = {"allocatable": {GPU: "16"}}
    summaries = {
        name: summarise({"metadata": {"name": name}, "status": {"resourceSummary": report}})
        for name in ("a", "b")
    }

    def look(seconds: float) -> dict[str, int]:
        found = candidates.of(summaries, now=NOW + timedelta(seconds=seconds))
        return {each.name: each.free[GPU] // 10**9 for each in found}

    assert look(0) == {"a": 16, "b": 16}
    assert look(0) == {"a": 16, "b": 16}
    reservations.update("default/hj-trainer-0", now=NOW)
    assert look(1) == {"a": 16, "b": 8}
    assert look(59) == {"a": 16, "b": 8}
    assert look(60) == {"a": 16, "b": 16}, "it has ended by time"
    assert look(61) == {"a": 16, "b": 16}
    reservations.expire(now=NOW + timedelta(seconds=62))
    assert look(62) == {"a": 16, "b": 16}
    assert look(63) == {"a": 16, "b": 16}
    assert worked == [["a", "b"], ["b"], ["b"], ["b"], ["b"]]


def test_the_queue_admission_that_follows_is_shown_as_auto() -> None:
    show = SETTINGS["queue_admission"].show
    assert show is not None
    assert [show(each) for each in (None, *QueueAdmission)] == [
        "auto",
        "volcano-global",
        "builtin",
        "none",
    ]


# Logs.


def test_every_fourth_read_is_a_search_and_hyperjobs_of_a_lane_take_turns() -> None:
    schedule = Schedule()
    for number in range(2):
        for key in ("ns/a", "ns/b", "ns/c"):
            schedule.put((key, f"{key[3:]}{number}"), due=0, lane=Lane.REPORT)
    for number in range(3):
        schedule.put((f"ns/s{number}", f"s{number}"), due=0, lane=Lane.SEARCH)
    taken = [schedule.take(1) for _ in range(10)]
    order = [item[1] if item else None for item in taken]
    assert order == ["a0", "b0", "c0", "s0", "a1", "b1", "c1", "s1", "s2", None]


def test_an_item_that_is_put_off_is_waited_for_until_its_new_time() -> None:
    schedule = Schedule()
    schedule.put(("ns/a", "a"), due=1, lane=Lane.REPORT)
    schedule.put(("ns/a", "a"), due=9, lane=Lane.REPORT)
    assert schedule.wait(5) == 4
    schedule.put(("ns/b", "b"), due=5, lane=Lane.SEARCH)
    assert schedule.wait(5) == 0, "one lane alone has an item"
    assert schedule.take(5) == ("ns/b", "b")
    assert schedule.wait(9) == 0


def test_the_log_of_a_task_is_that_of_its_default_container_else_of_its_first() -> None:
    def made(name: str, *containers: str, default: str = "", **fields: int) -> Object:
        spec = {"containers": [{"name": each} for each in containers]}
        marks = {"annotations": {"kubectl.kubernetes.io/default-container": default}}
        return {"name": name, "template": {"metadata": marks, "spec": spec}, **fields}

    spec = {
        "tasks": [
            made("first", "main", "side", replicas=3),
            made("default", "main", "side", default="side", replicas=2),
            made("unknown", "main", default="gone"),
            made("", "main"),
            made("empty"),
        ]
    }
    assert list(_tasks(spec)) == [
        LoggedTask("first", "main", 3),
        LoggedTask("default", "side", 2),
        LoggedTask("unknown", "main", 1),
    ]


# Several sides.


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (1, "c0"), (8, "c0,c1,c2,c3,c4,c5,c6,c7"), (9, "c0,c1,c2,c3,c4,c5,c6,c7,+1")],
)
def test_a_column_names_eight_and_counts_the_others(number: int, text: str) -> None:
    assert _joined([f"c{index}" for index in range(number)]) == text


@pytest.mark.parametrize(
    ("status", "settled"),
    [
        ({}, False),
        ({"observedGeneration": 1}, True),
        ({"observedGeneration": 0}, False),
        ({"observedGeneration": 2}, False),
    ],
)
def test_a_status_of_the_present_spec_is_settled(status: Object, settled: bool) -> None:
    assert _is_settled(hyperjob(status=status)) is settled
    assert not _is_settled({"metadata": {}, "status": {}})


def test_clusters_that_are_no_candidates_have_no_room_in_the_end() -> None:
    reservations = Reservations(
        hyperjob=lambda _: None,
        job=lambda _: None,
        policy=lambda _: None,
        binding=lambda _: None,
        lag=timedelta(seconds=60),
    )

    class Clusters:
        def add_handler(self, handler: Any) -> None:
            for name, ready in (("a", "True"), ("b", "False")):
                handler(
                    EventType.ADDED,
                    None,
                    {
                        "metadata": {"name": name},
                        "status": {
                            "conditions": [{"type": "Ready", "status": ready}],
                            "apiEnablements": VCJOB_APIS,
                            "resourceSummary": {"allocatable": {GPU: "8"}},
                        },
                    },
                )

    capacity = Capacity(
        Clusters(),  # type: ignore[arg-type]  # all that it calls
        reservations,
        now=lambda: NOW,
    )
    found, later = capacity.eventual()
    assert [each.name for each in found] == ["a", "b"]
    assert {name: free[GPU] for name, free in later.items()} == {"a": 8 * 10**9}
    assert capacity.room("a") == {GPU: 8 * 10**9}
    assert capacity.room("b") is None
    assert capacity.room("c") is None


@pytest.mark.parametrize(
    ("version", "overtakes"), [("7", True), ("8", True), ("6", False), ("", False), ("odd", False)]
)
def test_a_version_that_is_no_number_is_older_than_any(version: str, overtakes: bool) -> None:
    assert (_version({"metadata": {"resourceVersion": version}}) >= 7) is overtakes


@pytest.mark.parametrize(
    ("gives_back", "gang", "admitted", "attempts"),
    [
        (False, None, True, 1),
        (True, None, False, 1),
        (True, GangRecord(attempts=2), False, 2),
        (False, GangRecord(attempts=2), True, 2),
    ],
)
def test_a_restart_that_gives_back_is_admitted_no_more_and_keeps_or_gets_the_record_of_its_gang(
    gives_back: bool, gang: GangRecord | None, admitted: bool, attempts: int
) -> None:
    entry = {"name": "hj-trainer-0", "replicatedJob": "trainer", "index": 0, "admitted": True}
    status = {"jobs": [entry], "gang": {"attempts": 1}, "restarts": 3}
    seen = observed(hyperjob(group(replicas=1), status=status), job(phase="Running"), policy())
    again = Recreation(name="hj-trainer-0", reason=Reason.JOB_FAILED, cause=Requested("k", "t"))
    decided = Restart(again=(again,), spent=1, gives_back=gives_back, gang=gang)
    found = with_restart(seen, members_of(seen), decided, words=lambda _: "why")
    record = found.hyperjob.records["hj-trainer-0"]
    assert (record.admitted, record.attempt, record.message) == (admitted, 1, "why")
    assert found.hyperjob.gang is not None
    assert found.hyperjob.gang.attempts == attempts
    assert found.hyperjob.status["restarts"] == 4
    assert (found.verdict == QueueVerdict()) is gives_back
    planned = TimeUse.LOST_TO_PLANNED_STOPS if gives_back else TimeUse.LOST_TO_FAILURES
    assert found.stopped_by is planned


@pytest.mark.parametrize(
    ("ages", "wait"),
    [((100, 600), 300), ((600, 100), 300), ((100, 901), 800), ((100, 900), 800), ((900,), None)],
)
def test_the_first_start_timeout_that_is_to_come_is_waited_for(
    ages: Sequence[int], wait: int | None
) -> None:
    objects: list[Object] = []
    for index, age in enumerate(ages):
        name = f"hj-trainer-{index}"
        since = f"{NOW - timedelta(seconds=age):%Y-%m-%dT%H:%M:%SZ}"
        bound = binding(name, cluster="a", status={"state": {"phase": "Pending"}})
        bound["status"]["conditions"] = [
            {"type": "FullyApplied", "status": "True", "lastTransitionTime": since}
        ]
        objects += [job(name), policy(name), bound]
    seen = observed(hyperjob(group(replicas=len(ages))), *objects, clusters=(cluster("a"),))
    found = next_due(seen, members_of(seen))
    assert found == (None if wait is None else timedelta(seconds=wait))
    late = not_started(
        seen, members_of(seen), minimum=1, next_try=lambda times, _: GangRecord(attempts=times)
    )
    names = [f"hj-trainer-{index}" for index, age in enumerate(ages) if age >= 900]
    if not names:
        assert late is None
        return
    assert late is not None
    assert [each.name for each in late.again] == names
    assert (late.gives_back, late.spent, late.gang) == (True, 0, GangRecord(attempts=1))
