"""What tables, trees and descriptions show of HyperJobs."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.cli import get as hyperjobs
from hyperjob.cli import top, tree
from hyperjob.cli.tree import Text
from hyperjob.client import usage
from hyperjob.client.members import pod_counts
from hyperjob.client.summary import read
from hyperjob.client.usage import Tally
from hyperjob_core.api.leader import Leader
from hyperjob_core.api.names import ARGUMENTS
from tests.unit.cli.objects import GPU, NOW, Object, cluster, hyperjob, pod, queue, sub_job

AT = datetime.fromisoformat(NOW).astimezone(UTC)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def cells(obj: Object, **more: Any) -> list[str]:
    return [str(cell) for cell in hyperjobs.row(read(obj), AT, **more)]


RUNNING = hyperjob(
    "Running",
    sub_job(phase="Running", cluster="east", running=2),
    sub_job(1, phase="Running", cluster="west", running=2),
    jobsReady="2/2",
    runningPods=4,
    restarts=1,
    message="all run",
    reason="JobsRunning",
)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (RUNNING, ["llm", "Running", "2/2", "4", "-", "east,west", "1", "JobsRunning", "60m"]),
        (hyperjob(), ["llm", "Pending", "0/0", "0", "-", "-", "0", "-", "60m"]),
        (
            hyperjob("Running", metadata={"deletionTimestamp": NOW}),
            ["llm", "Terminating", "0/0", "0", "-", "-", "0", "-", "60m"],
        ),
    ],
    ids=["runs", "has no status", "is being deleted"],
)
def test_a_row(obj: Object, expected: list[str]) -> None:
    assert cells(obj) == expected


def test_a_wide_row_adds_where_and_why() -> None:
    assert cells(RUNNING, wide=True, namespaces=True)[0] == "ml"
    assert cells(RUNNING, wide=True)[-4:] == ["default", "-", "-", "all run"]
    told = {"metadata": {"annotations": {ARGUMENTS: "--lr 0.1"}}}
    address = {"training": {"step": 1, "url": "https://tracker/run/7"}}
    assert cells(hyperjob("Running", **told, **address), wide=True)[-3:-1] == [
        "--lr 0.1",
        "https://tracker/run/7",
    ]
    assert cells(hyperjob("Running", training={"step": 1, "url": "js:x"}), wide=True)[-2] == "-"
    for wide in (False, True):
        for namespaces in (False, True):
            header = hyperjobs.header(wide=wide, namespaces=namespaces)
            assert len(header) == len(cells(RUNNING, wide=wide, namespaces=namespaces))


def test_what_is_said_of_one_sub_job_is_not_repeated_for_the_next() -> None:
    why = "needs 32 nvidia.com/gpu: each of gpu-east, gpu-west lacks 8 nvidia.com/gpu (24 free)"
    jobs = [sub_job(index, phase="Queued", message=why) for index in range(3)]
    told = hyperjob("Queued", *jobs)
    text = "\n".join(plain(list(tree.tree_lines(read(told), {}, {}))))
    assert (text.count(why), text.count("as above")) == (1, 2)


VCJOB: Object = {
    "status": {
        "running": 1,
        "pending": 1,
        "taskStatusCount": {"worker": {"phase": {"Running": 1, "Pending": 1}}},
    }
}


def test_the_tree_shows_groups_sub_jobs_clusters_tasks_and_pods() -> None:
    obj = hyperjob(
        "Starting",
        sub_job(phase="Pending", cluster="east", running=1, attempt=2, message="1 of 2 pods run"),
        sub_job(1, phase="Unplaced", message="needs 8"),
        message="1 of 2 needed sub-jobs run",
        jobsReady="0/2",
    )
    pods = {"llm-trainer-0": [pod("llm-trainer-0-worker-0", message="no node")]}
    assert plain(tree.tree_lines(read(obj), {"llm-trainer-0": VCJOB}, pods)) == [
        "llm  Starting  0/2 jobs, 0/2 pods run  1 of 2 needed sub-jobs run",
        "└─ trainer  2 sub-jobs",
        "   ├─ llm-trainer-0  Pending  8 nvidia.com/gpu  attempt 3  1 of 2 pods run",
        "   │  └─ on east  1 running, 1 pending",
        "   │     └─ worker  1 running, 1 pending",
        "   │        └─ llm-trainer-0-worker-0  Pending  no node",
        "   └─ llm-trainer-1  Unplaced  8 nvidia.com/gpu  needs 8",
    ]


def test_the_tree_counts_the_accelerators_of_the_alternative_and_names_it() -> None:
    container = {"name": "main", "resources": {"limits": {"example.com/npu": 8}}}
    tasks = [{"name": "worker", "template": {"spec": {"containers": [container]}}}]
    obj = hyperjob(
        "Running",
        sub_job(phase="Running", accelerators=16),
        alternatives=[{"replicatedJob": "trainer", "name": "npu", "message": "it had room"}],
    )
    obj["spec"]["replicatedJobs"][0]["alternatives"] = [
        {"name": "gpu"},
        {"name": "npu", "replicas": 1, "templateSpec": {"tasks": tasks}},
    ]
    assert plain(tree.tree_lines(read(obj), {}, {}))[1:] == [
        "└─ trainer  1 sub-job  alternative npu",
        "   └─ llm-trainer-0  Running  16 example.com/npu",
    ]
    (group,) = read(obj).groups
    assert (group.accelerator, group.size, group.whole) == ("example.com/npu", 16, 16)
    assert group.choice == "npu: it had room"
    (value,) = tree.tree_value(read(obj), {}, {})["replicatedJobs"]
    assert value["alternative"]["message"] == "it had room"


def test_the_tree_has_the_size_beside_its_bounds() -> None:
    obj = hyperjob(
        "Running",
        sub_job(phase="Running", accelerators=8),
        alternatives=[{"replicatedJob": "trainer", "name": "1"}],
        replicatedJobsStatus=[{"name": "trainer", "running": 1}],
    )
    obj["spec"]["replicatedJobs"][0] |= {"replicas": 3, "minReplicas": 1, "maxReplicas": 4}
    said = "└─ trainer  1 sub-job  runs with 1 of 3 sub-jobs, 1 to 4"
    assert plain(tree.tree_lines(read(obj), {}, {}))[1] == said
    (group,) = read(obj).groups
    assert group.whole == group.size, "what runs, not what it asks for"
    ran = [{"alternatives": f"trainer={size}", "milliseconds": 9000} for size in (1, 4)]
    obj["status"] |= {"speeds": ran, "runningPods": 1}
    (line,) = plain(top.size_lines([read(obj)], AT))
    assert line == "By size: ml/llm trainer=1 9s (50%), trainer=4 9s (50%)"
    made = {"trainer=1": 9000, "trainer=4": 6300}
    obj["status"]["goodput"] = {"since": "2026-01-02T03:04:05Z", "productive": made}
    (line,) = plain(top.size_lines([read(obj)], AT))
    assert line.endswith("trainer=1 9s (50%, 100% productive), trainer=4 9s (50%, 70% productive)")


def test_without_the_vcjob_pods_are_counted_from_the_status() -> None:
    job = read(hyperjob("Running", sub_job(phase="Running", cluster="east", running=1))).jobs[0]
    assert pod_counts(job, None) == {"running": 1, "pending": 1}


def test_the_tree_as_a_value_has_pods_only_where_they_were_read() -> None:
    found = tree.tree_value(read(RUNNING), {"llm-trainer-0": VCJOB}, {"llm-trainer-0": [pod("w")]})
    first, second = found["replicatedJobs"][0]["jobs"]
    assert first["tasks"] == {"worker": {"running": 1, "pending": 1}}
    assert [each["name"] for each in first["podList"]] == ["w"]
    assert "podList" not in second


def test_top_counts_by_cluster_what_there_is_and_what_hyperjobs_take() -> None:
    waits = hyperjob("Queued", sub_job(phase="Queued", reason="WaitingForQueue"))
    tally = Tally.of([read(RUNNING), read(waits)])
    uses = usage.clusters([cluster("west", used=12), cluster("east", ready=False)], tally)
    assert [
        (u.cluster, u.ready, u.allocatable, u.used, u.reserved, u.free, u.hyperjobs) for u in uses
    ] == [("east", False, 32, 0, 8, 24, 8), ("west", True, 32, 12, 0, 20, 8)]
    assert tally.waits_for == {GPU: 8}
    text = plain(top.cluster_lines(uses, tally.waits_for))
    # what a lost cluster has is no help
    assert text[-2].split() == ["all", "ready", GPU, "32", "12", "0", "20", "8"]
    assert text[-1] == "Waiting: 8 nvidia.com/gpu"


def test_what_runs_with_fewer_pods_than_it_has_is_shown_with_how_many() -> None:
    words = "runs with 1 of 2 pods"
    part = sub_job(phase="Running", cluster="west", running=1, message=words)
    found = read(hyperjob("Running", part, runningPods=1, jobsReady="1/1", message=words))
    assert hyperjobs.row(found, AT)[3] == "1/2"
    assert any(words in line for line in plain(tree.tree_lines(found, {}, {}))[1:])
    assert plain(top.part_lines([found])) == ["Run in part: ml/llm-trainer-0 with 1 of 2 pods"]
    assert not top.part_lines([read(RUNNING)])
    (use,) = usage.clusters([cluster("west", used=4)], Tally.of([found]))
    assert (use.used, use.free, use.hyperjobs) == (4, 28, 4)


@pytest.mark.parametrize(
    ("state", "closed", "shown"),
    [
        ("Open", {"east": "Open", "west": "Closed"}, "Open, closed in west"),
        ("Open", {"east": "Open", "west": "Open"}, "Open"),
        ("Closed", {"east": "Closed", "west": "Closed"}, "Closed"),
    ],
)
def test_top_names_the_clusters_that_have_closed_a_queue(
    state: str, closed: dict[str, str], shown: str
) -> None:
    items = [{"clusterName": name, "status": {"state": each}} for name, each in closed.items()]
    resource = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "gold"}
    binding = {"spec": {"resource": resource}, "status": {"aggregatedStatus": items}}
    (use,) = usage.queues([queue("gold", state)], Tally(), bindings=[binding])
    assert use.where == shown
    assert shown in plain(top.queue_lines([use]))[1]
    told = top.value(None, [use], {})["queues"][0]["closedIn"]
    assert list(told) == [name for name, each in closed.items() if each != "Open"]


@pytest.mark.parametrize(
    ("used", "phases", "free"),
    [
        (0, [], 32),
        (20, ["Running"], 12),
        (20, ["Running", "Placed"], 4),  # 12 are of other work, 8 reserved
        (4, ["Running"], 24),  # the status is late
        (20, ["Queued", "Placed", "Placed"], 0),
    ],
)
def test_top_subtracts_what_is_reserved_beside_the_work_of_others(
    used: int, phases: list[str], free: int
) -> None:
    jobs = [sub_job(number, phase=phase, cluster="west") for number, phase in enumerate(phases)]
    tally = Tally.of([read(hyperjob("Starting", *jobs))])
    (use,) = usage.clusters([cluster("west", used=used)], tally)
    assert (use.hyperjobs, use.free) == (8 * len(phases), free)


@pytest.mark.parametrize(
    ("leads", "admission", "said"),
    [
        (True, "volcano-global", ["Queue admission: volcano-global"]),
        (True, "", []),
        (
            False,
            "builtin",
            ["No controller holds the Lease: only one with --no-leader-elect admits HyperJobs"],
        ),
    ],
)
def test_top_names_the_queue_admission_at_work(
    leads: bool, admission: str, said: list[str]
) -> None:
    leader = Leader(holder="a", renewed=None, leads=leads, version="", admission=admission)
    assert plain(top.admission_lines(leader)) == said
    assert top.admission_lines(None) == []
    named = admission if leads else ""
    assert top.value(None, None, {}, leader).get("queueAdmission", "") == named


def test_top_shows_a_cluster_that_reports_nothing() -> None:
    (use,) = usage.clusters([{"metadata": {"name": "new"}}], Tally())
    assert (use.ready, use.allocatable, use.free) == (False, None, None)
    assert plain(top.cluster_lines([use], {}))[1].split() == [
        "new",
        "False",
        "-",
        "?",
        "?",
        "?",
        "?",
        "0",
    ]


def test_top_counts_by_queue_what_is_placed_and_what_waits() -> None:
    waits = hyperjob("Queued", sub_job(phase="Queued"), sub_job(1, phase="Unplaced"), queue="gold")
    waits["metadata"]["name"] = "other"
    found = [
        queue(),
        queue("gold", "Closed", capability={GPU: "64"}, deserved={GPU: "32"}),
        queue("idle"),
        queue("root"),
    ]
    summaries = [read(RUNNING), read(waits), read(hyperjob("Completed"))]
    uses = usage.queues(found, Tally.of(summaries), totals={GPU: 128})
    assert [(u.queue, u.state, u.capability, u.used, u.waiting) for u in uses] == [
        ("default", "Open", None, 16, 0),
        ("gold", "Closed", 64, 0, 16),
        ("idle", "Open", None, 0, 0),
    ]
    assert [u.deserved for u in uses] == [None, 32, None]
    # What gold deserves is its own; the others share the rest by weight.
    assert [u.share for u in uses] == [48, 32, 48]
    gold = plain(top.queue_lines(uses))[2]
    assert gold.split() == ["gold", "Closed", GPU, "32", "64", "0", "-", "16", "0", "1"]
    assert [(u.running_hyperjobs, u.waiting_hyperjobs) for u in uses] == [(1, 0), (0, 1), (0, 0)]


def test_a_parent_queue_counts_what_its_children_use() -> None:
    child = {"metadata": {"name": "default"}, "spec": {"parent": "all"}, "status": {}}
    uses = usage.queues([queue("all"), child], Tally.of([read(RUNNING)]), totals={GPU: 64})
    assert [(u.queue, u.share, u.used, u.running_hyperjobs) for u in uses] == [
        ("all", 64, 16, 1),
        ("default", 64, 16, 1),
    ]


@pytest.mark.parametrize(
    ("spec", "ended"),
    [
        ({"replicaRequirements": {"resourceRequest": {GPU: "8"}}}, 8),
        ({"replicaRequirements": {}}, 0),
        (
            {
                "replicaRequirements": {"resourceRequest": {GPU: "8"}},
                "suspension": {"scheduling": True},
            },
            0,
        ),
    ],
    ids=["counts", "gave its quota back", "was never released"],
)
def test_what_volcano_global_still_counts_of_the_ended_is_shown(spec: Object, ended: int) -> None:
    done = read(hyperjob("Completed", sub_job(phase="Completed", cluster="east")))
    binding = {"metadata": {"name": "llm-trainer-0-job", "namespace": "ml"}, "spec": spec}
    (use,) = usage.queues(
        [queue()],
        Tally.of([done]),
        totals={GPU: 64},
        ended=usage.held_by_ended([done], [binding]),
    )
    assert (use.used, use.ended) == (0, ended)
    header, row = plain(top.queue_lines([use]))
    assert dict(zip(header.split(), row.split(), strict=True))["ENDED"] == str(ended)


def test_a_replicated_job_without_sub_jobs_waits_beside_another_that_runs() -> None:
    raw = hyperjob("Running", sub_job(phase="Running", cluster="west"))
    first = raw["spec"]["replicatedJobs"][0]
    split = {"mode": "auto", "accelerators": 24}
    later = {**first, "name": "later", "splitPolicy": split}
    without = {"name": "cpu", "replicas": 3, "templateSpec": {"queue": "default", "tasks": []}}
    raw["spec"]["replicatedJobs"] += [later, without]
    tally = Tally.of([read(raw)])
    assert (tally.used, tally.waits) == ({("default", GPU): 8}, {("default", GPU): 24})
    raw["spec"]["suspend"] = True
    assert Tally.of([read(raw)]).waits_for == {}


malformed = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "state",
                    "phase",
                    "jobs",
                    "name",
                    "replicatedJobs",
                    "templateSpec",
                    "tasks",
                    "cluster",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(malformed, malformed)
def test_no_object_is_too_strange_to_be_shown(spec: Any, status: Any) -> None:
    obj = {"metadata": {"name": "x", "namespace": "y"}, "spec": spec, "status": status}
    summary = read(obj)
    cells(obj, wide=True)
    tree.tree_lines(summary, {}, {})
    assert Tally.of([summary]).waits_for is not None
