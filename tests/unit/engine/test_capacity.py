from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_engine.model.observed import ReportedStatus
from hyperjob_engine.model.parse import parse_report
from hyperjob_engine.placement.capacity import promised_on, reservation, summarise
from hyperjob_engine.reasons.reason import trouble_text
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import GPU, NOW, Object, vcjob_status

LAG = timedelta(seconds=30)
DEMAND = parse_resources({GPU: "16", "pods": "16"})


def raw_cluster(**changes: Any) -> Object:
    status: Object = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "apiEnablements": [
            {"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]}
        ],
        "resourceSummary": {
            "allocatable": {GPU: "32", "cpu": "1024", "pods": "4k"},
            "allocated": {GPU: "12", "cpu": "6", "pods": "6"},
            "allocating": {GPU: "6", "pods": "6"},
        },
    }
    spec: Object = {"provider": "p", "region": "r", "zones": ["z"]}
    metadata: Object = {"name": "member1"}
    for path, value in changes.items():
        target = {"status": status, "spec": spec, "metadata": metadata}[path.split("_")[0]]
        field = path.split("_", 1)[1]
        if value is None:
            target.pop(field)
        else:
            target[field] = value
    return {"metadata": metadata, "spec": spec, "status": status}


def test_free_is_allocatable_less_allocated_less_allocating() -> None:
    summary = summarise(raw_cluster())
    assert summary.usable
    assert summary.free == parse_resources({GPU: "14", "cpu": "1018", "pods": "3988"})
    assert (summary.provider, summary.region, summary.zone) == ("p", "r", "z")


def test_zones_that_are_no_text_are_left_out() -> None:
    assert summarise(raw_cluster(spec_zones=["z1", 2, None, "z2"])).zone == "z1,z2"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"status_conditions": [{"type": "Ready", "status": "False", "reason": "Gone"}]},
            "is not Ready (Gone)",
        ),
        (
            {
                "status_conditions": [{"type": "Ready", "status": "False", "reason": "Gone"}],
                "spec_taints": [{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}],
            },
            "is not Ready (Gone)",
        ),
        ({"status_conditions": None}, "is not Ready"),
        ({"status_conditions": "nonsense"}, "is not Ready"),
        (
            {"spec_taints": [{"key": "maintenance", "effect": "NoSchedule"}]},
            "has taint maintenance:NoSchedule",
        ),
        ({"spec_taints": [{"key": "k", "effect": "NoExecute"}]}, "has taint k:NoExecute"),
        (
            {"status_apiEnablements": []},
            "does not serve batch.volcano.sh/v1alpha1 Job (is Volcano installed?)",
        ),
        (
            {
                "status_apiEnablements": [
                    {"groupVersion": "batch/v1", "resources": [{"kind": "Job"}]}
                ]
            },
            "does not serve batch.volcano.sh/v1alpha1 Job (is Volcano installed?)",
        ),
        ({"status_resourceSummary": None}, "reports no resourceSummary"),
        ({"metadata_deletionTimestamp": "2026-01-01T00:00:00Z"}, "is being removed"),
    ],
)
def test_a_cluster_is_no_candidate_and_says_why(changes: Object, reason: str) -> None:
    summary = summarise(raw_cluster(**changes))
    assert (summary.usable, trouble_text(summary.trouble)) == (False, reason)


@pytest.mark.parametrize(
    ("status", "is_known"),
    [("True", False), ("False", True), ("Unknown", True), ("unheard of", False), (None, False)],
)
def test_a_cluster_is_lost_since_its_condition_ready_became_false_or_unknown(
    status: str | None, is_known: bool
) -> None:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    others = {"type": "Cheap", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    summary = summarise(raw_cluster(status_conditions=[others, ready]))
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) if is_known else None
    assert summary.not_ready_since == since


def test_prefer_no_schedule_taints_repel_nobody() -> None:
    taints = [{"key": "k", "effect": "PreferNoSchedule"}]
    assert summarise(raw_cluster(spec_taints=taints)).usable


def report(phase: str, pods: dict[str, int], since: str = "2026-01-02T03:04:00Z") -> ReportedStatus:
    return parse_report(vcjob_status(phase, pods, since=since))


@pytest.mark.parametrize(
    ("seen", "complete", "expected"),
    [
        pytest.param(None, None, "held", id="nothing reported yet"),
        pytest.param(report("Pending", {}), None, "held", id="no pods yet"),
        pytest.param(report("Pending", {"pending": 9}), None, "held", id="some pods yet"),
        pytest.param(
            report("Pending", {"pending": 16}), NOW - timedelta(seconds=5), "held",
            id="all pods, but the summary may be older",
        ),
        pytest.param(
            report("Pending", {"pending": 16}), NOW - LAG, "shown",
            id="all pods for longer than the summary's lag",
        ),
        pytest.param(
            report("Running", {"running": 16}), None, "held", id="running since a moment ago"
        ),
        pytest.param(
            report("Running", {"running": 16}, "2026-01-02T03:03:00Z"), None, "shown",
            id="running for longer than the lag, as after a restart of ours",
        ),
        pytest.param(
            report("Running", {"running": 15}, "2026-01-02T03:03:00Z"), None, "held",
            id="running with a pod missing",
        ),
        pytest.param(
            report("Running", {"running": 16}, "2026-01-02T03:03:00Z"), NOW, "shown",
            id="running for longer than the lag, but seen only now",
        ),
        pytest.param(None, NOW - LAG, "shown", id="status wiped after all pods were seen"),
        pytest.param(report("Completed", {}), None, "none", id="completed"),
        pytest.param(report("Failed", {"failed": 1}), None, "none", id="failed"),
        pytest.param(report("Completing", {"terminating": 2}), None, "held", id="completing"),
    ],
)  # fmt: skip
def test_a_sub_job_reserves_until_the_summary_surely_counts_it(
    seen: ReportedStatus | None, complete: Any, expected: str
) -> None:
    entry = reservation(cluster="a", demand=DEMAND, report=seen, complete_since=complete, lag=LAG)
    actual = "none" if entry is None else "held" if entry.holds(NOW) else "shown"
    assert actual == expected


ALL_PODS = report("Pending", {"pending": 16})


@pytest.mark.parametrize(
    ("seen", "complete", "summarised", "expected"),
    [
        pytest.param(ALL_PODS, 6, 0, "shown", id="the summary changed after all pods were seen"),
        pytest.param(ALL_PODS, 4, 0, "held", id="it may have been on its way since before"),
        pytest.param(ALL_PODS, 6, 2, "held", id="the change was too early"),
        pytest.param(ALL_PODS, 6, None, "held", id="no change of the summary was seen"),
        pytest.param(report("Pending", {"pending": 9}), None, 0, "held", id="some pods yet"),
    ],
)
def test_a_summary_that_changes_after_all_pods_were_seen_counts_them(
    seen: ReportedStatus, complete: int | None, summarised: int | None, expected: str
) -> None:
    """Until the lag was over they counted twice, and a gang waited at its gate for that long."""
    entry = reservation(
        cluster="a",
        demand=DEMAND,
        report=seen,
        complete_since=None if complete is None else NOW - timedelta(seconds=complete),
        lag=LAG,
        summarised=None if summarised is None else NOW - timedelta(seconds=summarised),
    )
    assert ("held" if entry is not None and entry.holds(NOW) else "shown") == expected


def test_a_reservation_is_taken_off_what_is_free() -> None:
    summary = summarise(raw_cluster())
    assert promised_on(summary, {}).free[GPU] == parse_resources({GPU: "14"})[GPU]
    assert promised_on(summary, DEMAND).free[GPU] == -parse_resources({GPU: "2"})[GPU]


@pytest.mark.parametrize(
    ("nodes", "trouble"),
    [
        ({"totalNum": 3, "readyNum": 1}, ""),
        ({"totalNum": 3}, "has no ready node"),
        ({}, ""),
    ],
)
def test_a_cluster_without_a_ready_node_is_no_candidate(nodes: Object, trouble: str) -> None:
    raw = raw_cluster()
    raw["status"]["nodeSummary"] = nodes
    found = summarise(raw)
    assert (found.usable, trouble_text(found.trouble)) == (not trouble, trouble)
