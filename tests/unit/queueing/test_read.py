"""What queue admission reads of a HyperJob, and of vcjobs whose HyperJob is gone."""

from dataclasses import replace

import pytest

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import parse_binding
from hyperjob_queueing.queues import priority_of, value_of
from hyperjob_queueing.read import unit_of, unit_of_remains
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import (
    GPU,
    Object,
    binding,
    child,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    owner,
    policy,
    task,
    template,
    vcjob_status,
)

PRIORITIES: dict[str, Object] = {"low": {"value": 10}, "high": {"value": 1000}}


def read(raw: Object, *objects: Object) -> QueuedHyperJob | None:
    seen = observed(raw, *objects, admission=QueueAdmission.BUILTIN)
    return unit_of(replace(seen, priority=priority_of(seen.hyperjob, PRIORITIES)))


def gpus(found: QueuedHyperJob) -> dict[str, int]:
    return {part.name: part.request.demand[GPU] // 10**9 for part in found.parts}


def test_a_new_one_waits_whole() -> None:
    urgent = template(task(replicas=8), queue="research", priorityClassName="high")
    found = read(hyperjob(group(templateSpec=urgent), group("aux", replicas=1)))
    assert gpus(found) == {"hj-trainer-0": 8, "hj-trainer-1": 8, "hj-aux-0": 8}
    assert [part.queue for part in found.parts] == ["research", "research", "default"]
    assert (found.minimum, found.priority) == (3, 1000)
    assert not found.held
    assert not found.made


def test_a_sub_job_that_left_a_cluster_asks_for_room_in_another() -> None:
    left = job_status(1, excludedClusters=["b"], excludedUntil="2026-01-02T04:00:00Z")
    found = read(hyperjob(status={"jobs": [left]}))
    assert [part.request.excluded for part in found.parts] == [frozenset(), frozenset({"b"})]


def test_replicated_jobs_of_one_template_keep_the_clusters_that_each_names() -> None:
    shared = template(task(replicas=8))  # the informer caches keep one copy of equal templates
    pinned = [
        group(name, replicas=2, templateSpec=shared, clusterNames=[where], clusterPolicy="Required")
        for name, where in (("left", "a"), ("right", "b"))
    ]
    found = read(hyperjob(*pinned))
    assert {part.name: part.request.preferred for part in found.parts} == {
        "hj-left-0": ("a",),
        "hj-left-1": ("a",),
        "hj-right-0": ("b",),
        "hj-right-1": ("b",),
    }


def test_who_is_made_or_recorded_holds_a_share_until_it_ends() -> None:
    status = {"jobs": [job_status(0, admitted=True), job_status(1, phase="Completed", cluster="a")]}
    found = read(hyperjob(status=status))
    assert found.held == {"hj-trainer-0"}
    assert found.ended == {"hj-trainer-1"}
    assert not found.made
    running = read(hyperjob(), job(phase="Running"), policy(cluster="b"))
    assert running.held == running.made == {"hj-trainer-0"}
    assert running.clusters == {"hj-trainer-0": "b"}


@pytest.mark.parametrize(
    "raw",
    [
        hyperjob(suspend=True),
        hyperjob(deletionTimestamp="2026-01-02T03:04:00Z"),
        hyperjob(status={"conditions": [{"type": "Completed", "status": "True"}]}),
    ],
    ids=["suspended", "deleted", "ended"],
)
def test_what_lives_of_it_is_charged_until_it_is_gone_and_nothing_else(raw: Object) -> None:
    """A finalizer, or a policy that protects from deletion, gives no share away."""
    found = read(raw, job(phase="Running", gpus=30), policy())
    assert gpus(found) == {"hj-trainer-0": 30}, "as it is, not as its template says"
    assert found.held == found.made == {"hj-trainer-0"}
    assert found.minimum == 0, "nothing of it waits"
    assert read(raw) is None
    assert read(raw, job(phase="Completed"), policy()) is None
    assert read(raw, job(), policy()) is None, "no member has it"
    ended = binding(cluster="a", status=vcjob_status("Completed"))
    assert read(raw, job(phase="Running"), policy(), ended) is None, "its member knows better"
    assert read(raw, job(phase="Running", owners=owner("uid-other", "other"))) is None


@pytest.mark.parametrize(
    "raw", [hyperjob(suspend=True), hyperjob(deletionTimestamp="2026-01-02T03:04:00Z")]
)
def test_a_vcjob_is_charged_from_the_opening_of_its_gate_and_while_it_is_being_orphaned(
    raw: Object,
) -> None:
    held, opened = binding(gate="held", cluster="a"), binding(gate="open", cluster="a")
    for made in (job(gpus=4), job(gpus=4, owners=[])):
        assert read(raw, made, policy(), held) is None
        assert gpus(read(raw, made, policy(), opened)) == {"hj-trainer-0": 4}
        sent = binding(cluster="a")
        assert gpus(read(raw, made, policy(), sent)) == {"hj-trainer-0": 4}, "it has no gate"
        for why in ("dispatching", "scheduling"):
            stays = binding(cluster="a", suspension={why: True})
            assert read(raw, made, policy(), stays) is None
    running = job(phase="Running", gpus=4, owners=[])
    assert gpus(read(raw, running, policy())) == {"hj-trainer-0": 4}


def test_what_a_sub_job_is_to_have_more_of_waits_by_itself() -> None:
    larger = hyperjob(group(gpus=12), minAvailable=1)
    found = read(larger, job(phase="Running", gpus=8), policy())
    assert gpus(found) == {"hj-trainer-0": 8, "hj-trainer-1": 12, "hj-trainer-0+": 4}
    assert found.minimum == 1
    more = next(part for part in found.parts if part.grows)
    assert more.request.preferred == ("a",)
    assert more.request.required, "a vcjob grows where it is"
    smaller = read(hyperjob(group(gpus=4)), job(phase="Running", gpus=8), policy())
    assert gpus(smaller) == {"hj-trainer-0": 4, "hj-trainer-1": 4}


def test_what_grows_beyond_minavailable_asks_its_queue_for_all_that_it_is_to_have_more_of() -> None:
    few = template(task(replicas=8, minAvailable=2), minAvailable=2)
    running = job(phase="Running", gpus=2)
    running["spec"]["tasks"][0] |= {"minAvailable": 2}
    running["spec"]["minAvailable"] = 2
    found = read(hyperjob(group(replicas=1, templateSpec=few)), running, policy())
    assert {
        part.name: (part.request.demand.get(GPU, 0) // NANO, part.request.everything[GPU] // NANO)
        for part in found.parts
    } == {"hj-trainer-0": (2, 2), "hj-trainer-0+": (0, 6)}


@pytest.mark.parametrize(("running", "counted"), [(0, 2), (2, 2), (5, 5)])
def test_of_pods_beyond_minavailable_those_that_run_are_charged_and_not_those_without_a_node(
    running: int, counted: int
) -> None:
    few = template(task(replicas=200, minAvailable=2), minAvailable=2)
    made = job(phase="Running", gpus=200)
    made["spec"] |= {"minAvailable": 2}
    made["spec"]["tasks"] = few["tasks"]
    status = vcjob_status("Running", pods={"running": running, "pending": 200 - running})
    seen = binding(cluster="a", status=status)
    found = read(hyperjob(group(replicas=1, templateSpec=few)), made, policy(), seen)
    assert gpus(found) == {"hj-trainer-0": counted}


def test_what_waits_for_another_group_does_not_stand_in_line_yet() -> None:
    later = group("later", replicas=1, dependsOn=[{"name": "trainer", "status": "Ready"}])
    found = read(hyperjob(group(), later))
    assert set(gpus(found)) == {"hj-trainer-0", "hj-trainer-1"}
    running = [*child(0, "Running"), *child(1, "Running")]
    assert "hj-later-0" in gpus(read(hyperjob(group(), later), *running))


def test_an_open_automatic_split_is_cut_into_pieces_that_make_up_its_sum() -> None:
    split = {"mode": "auto", "accelerators": 2048, "acceleratorType": GPU}
    found = read(hyperjob(group(replicas=1, gpus=8, splitPolicy=split)))
    assert sum(gpus(found).values()) == 2048
    assert len(found.parts) == 128
    assert found.minimum == 128
    assert "hj-trainer-0" in gpus(found)


@pytest.mark.parametrize("exists", [True, False], ids=["exists", "is to be created again"])
def test_an_automatic_split_that_is_made_keeps_its_share(*, exists: bool) -> None:
    split = {"mode": "auto", "accelerators": 24, "acceleratorType": GPU}
    records = [
        job_status(0, accelerators=16, admitted=True),
        job_status(1, accelerators=8, admitted=True),
    ]
    raw = hyperjob(group(replicas=1, gpus=8, splitPolicy=split), status={"jobs": records})
    found = read(raw, *[*child(0, gpus=16), *child(1)] if exists else ())
    if exists:
        assert gpus(found) == {"hj-trainer-0": 16, "hj-trainer-1": 8}
    assert sum(gpus(found).values()) == 24
    assert found.held == set(gpus(found))


@pytest.mark.parametrize(
    ("phase", "counts", "more", "expected"),
    [
        ("Running", {"running": 1}, {}, {"hj-trainer-0": 90}),
        ("Pending", {"pending": 1}, {}, {"hj-trainer-0": 2}),
        ("Pending", {"terminating": 1}, {}, {"hj-trainer-0": 90}),
        ("Pending", {"unknown": 1}, {}, {"hj-trainer-0": 90}),
        ("", {}, {}, {"hj-trainer-0": 90}),  # no report yet
        ("Completed", {"succeeded": 1}, {}, {"hj-trainer-0": 0}),
        ("Completed", {"succeeded": 1, "running": 3}, {}, {}),
        ("Completed", {"succeeded": 1}, {"minSuccess": 1}, {}),
    ],
)
def test_pods_may_outlive_a_vcjob_by_the_longest_grace_period_of_those_that_run(
    phase: str, counts: Object, more: Object, expected: dict[str, int]
) -> None:
    made = job(phase=phase)
    made["status"] = made.get("status", {}) | counts
    made["spec"] |= more
    made["spec"]["tasks"][0]["template"]["spec"]["terminationGracePeriodSeconds"] = 90
    bound = binding(cluster="a")
    bound["status"] = {"aggregatedStatus": [{"clusterName": "a", "applied": True}]}
    found = read(hyperjob(), made, policy(), bound)
    assert {name: each.total_seconds() for name, each in found.grace.items()} == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("", -5), ("high", 1000), ("gone", 0), ("odd", 0), ("low", -5)]
)
def test_without_a_class_the_least_default_class_gives_the_priority(
    name: str, expected: int
) -> None:
    classes = {
        "low": {"value": -5, "globalDefault": True},
        "usual": {"value": 70, "globalDefault": True},
        "high": {"value": 1000},
        "odd": {"value": "much"},
    }
    assert value_of(name, classes) == expected


def test_without_a_default_class_the_priority_is_0() -> None:
    assert value_of("", {"high": {"value": 1000}}) == 0


@pytest.mark.parametrize(
    ("left", "is_early"),
    [
        ({}, False),
        ({"retryTime": "2026-01-02T03:04:15Z"}, True),
        ({"retryTime": "2026-01-02T03:04:05Z"}, False),
    ],
)
def test_a_gang_waits_for_no_room_before_all_of_it_can_be_created(
    left: Object, is_early: bool
) -> None:
    """An admission without a creation lapses, and the HyperJob would rest in its queue."""
    again = [
        job_status(0, phase="Unplaced", attempt=1, **left),
        job_status(1, phase="Unplaced", attempt=1),
    ]
    found = read(hyperjob(status={"jobs": again}))
    parts = {} if found is None else gpus(found)
    assert (parts == {}) is is_early


def test_a_gang_waits_for_no_room_while_an_old_object_of_it_is_being_deleted() -> None:
    again = {"jobs": [job_status(0, phase="Unplaced", attempt=1), job_status(1, phase="Unplaced")]}
    leaving = policy("hj-trainer-0", cluster="a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    found = read(hyperjob(status=again), leaving)
    assert found is None or not found.parts
    found = read(hyperjob(status=again), binding("hj-trainer-0", cluster="a"))
    assert found is None or not found.parts


NAME = "hj-trainer-0"


def applied(**fields: object) -> Object:
    made = binding(NAME, cluster="a", status={}, **fields)  # type: ignore[arg-type]
    made["status"]["conditions"] = [{"type": "FullyApplied", "status": "True"}]
    return made


def orphan(queue: str = "team") -> Object:
    return job(NAME, owners=[], spec=template(task(replicas=4, gpus=2), queue=queue))


@pytest.mark.parametrize(
    ("bound", "charged"),
    [
        pytest.param(applied(), True, id="applied in a member"),
        pytest.param(
            binding(NAME, cluster="a", status=vcjob_status("Running")), True, id="runs there"
        ),
        pytest.param(
            binding(NAME, cluster="a", status=vcjob_status("Completed")), False, id="has ended"
        ),
        pytest.param(binding(NAME, gate="open"), True, id="is applied next: its gate is open"),
        pytest.param(binding(NAME, gate="held"), False, id="its gate is closed"),
        pytest.param(binding(NAME, cluster="a"), True, id="is applied next: it has no gate"),
        pytest.param(
            binding(NAME, cluster="a", suspension={"dispatching": True}),
            False,
            id="suspended: labels are anybody's",
        ),
        pytest.param(
            binding(NAME, cluster="a", apply_error="no such API"), False, id="the member refuses it"
        ),
        pytest.param(binding("other"), False, id="the binding of another vcjob"),
    ],
)
def test_an_orphan_is_charged_while_a_member_has_it(bound: Object, charged: bool) -> None:
    unit = unit_of_remains("default/hj", [(orphan(), parse_binding(bound))])
    assert (unit is not None) is charged
    if unit is not None:
        (part,) = unit.parts
        assert part.queue == "team"
        assert part.request.demand["nvidia.com/gpu"] == 8 * 10**9
        assert unit.held == unit.made == {NAME}
        assert (unit.created, unit.priority, unit.minimum) == ("", 0, 0)


def test_without_vcjobs_nothing_is_charged() -> None:
    assert unit_of_remains("default/hj", []) is None


def test_a_vcjob_without_a_queue_is_charged_to_the_queue_default() -> None:
    unit = unit_of_remains("default/hj", [(orphan(queue=""), parse_binding(applied()))])
    assert unit.parts[0].queue == "default"


def test_what_lives_of_a_hyperjob_asks_for_nothing_more() -> None:
    """Neither the vcjobs of one that is deleted nor those of one that is gone need others."""
    gone = unit_of_remains("default/hj", [(orphan(), parse_binding(applied()))])
    raw = hyperjob(deletionTimestamp="2026-01-02T03:04:00Z")
    seen = observed(raw, job(NAME), applied(), admission=QueueAdmission.BUILTIN)
    lives = unit_of(replace(seen, priority=7))
    assert (lives.created, lives.priority) == (seen.hyperjob.created, 7)
    for unit in (gone, lives):
        assert unit.minimum == 0
        assert unit.held == unit.made == {NAME}


@pytest.mark.parametrize(
    ("vcjob", "bound", "lives"),
    [
        ("Running", None, True),
        ("Running", binding(NAME), True),
        ("Completed", binding(NAME), False),
        ("", binding(NAME), False),
        ("", applied(), True),
        ("", applied(suspension={"dispatching": True}), True),
        ("", binding(NAME, cluster="a", suspension={"dispatching": True}), False),
        ("Running", binding(NAME, status=vcjob_status("Completed")), False),
        ("Completed", binding(NAME, status=vcjob_status("Running")), True),
        ("", None, False),
    ],
)
def test_what_a_suspended_hyperjob_holds_is_what_its_members_say(
    vcjob: str, bound: Object | None, lives: bool
) -> None:
    """The binding is nearer to the member than the vcjob, whose status is put together of it."""
    objects = [job(NAME, phase=vcjob), *([] if bound is None else [bound])]
    seen = observed(hyperjob(suspend=True), *objects, admission=QueueAdmission.BUILTIN)
    assert (unit_of(seen) is not None) is lives


@pytest.mark.parametrize(
    ("gate", "bound", "lives"),
    [
        ("open", binding(NAME, cluster="a", gate="held", suspension={"dispatching": True}), True),
        ("held", binding(NAME, cluster="a", gate="held", suspension={"dispatching": True}), False),
        ("", binding(NAME, cluster="a", apply_error="a member forgets no pod by that"), True),
        ("", binding(NAME, cluster="a", suspension={"dispatching": True}), False),
    ],
    ids=["gate just opened", "gate held", "no gate", "suspended by its policy"],
)
def test_a_vcjob_that_karmada_may_apply_holds_its_share_before_its_report(
    gate: str, bound: Object, lives: bool
) -> None:
    """The binding follows the policy a moment later, and a failed apply wipes the report."""
    delivers = policy(NAME)
    delivers["metadata"]["annotations"] = {"training.volcano.sh/gate": gate} if gate else {}
    seen = observed(
        hyperjob(suspend=True), job(NAME), delivers, bound, admission=QueueAdmission.BUILTIN
    )
    assert (unit_of(seen) is not None) is lives


def test_a_vcjob_that_no_member_has_hides_none_that_one_has() -> None:
    strange = parse_binding(binding("other"))
    unit = unit_of_remains(
        "default/hj", [(orphan(), strange), (orphan(), parse_binding(applied()))]
    )
    assert unit.made == {NAME}
