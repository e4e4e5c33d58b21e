"""Parts of the engine that few situations reach: takeovers, terms, preferences, certain times."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_controller.admission.aside import culprit
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.virtualtime import run
from hyperjob_engine.expansion.adopt import conflict
from hyperjob_engine.expansion.objects import taken_over
from hyperjob_engine.members.podfailures import order
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.members import Expression
from hyperjob_engine.model.observed import PodCounts
from hyperjob_engine.model.parse import parse_hyperjob, parse_report
from hyperjob_engine.model.training import Track
from hyperjob_engine.model.wants import _keyed
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.items import kind_of
from hyperjob_engine.queueing.occupancy import Occupancy
from hyperjob_engine.reasons.crowded import LabelDemand, _requirement_text
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.status.goodput import GoodputAccount, certain_until, ratio
from tests.unit.controller.builders import NOW, Object, hyperjob, observed, owner
from tests.unit.controller.builders import job as vcjob
from tests.unit.controller.views import held, job, node, task, view


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


DEMANDS: dict[str, LabelDemand] = {
    "gpu": ("gpu", "Exists", ()),
    "no gpu": ("gpu", "DoesNotExist", ()),
    "gpu=H100": ("gpu", "In", ("H100",)),
    "gpu!=H100": ("gpu", "NotIn", ("H100",)),
    "gpu in (A100, H100)": ("gpu", "In", ("A100", "H100")),
    "gpu not in (A100, H100)": ("gpu", "NotIn", ("A100", "H100")),
    "gpu in ()": ("gpu", "In", ()),
    "generation>8": ("generation", "Gt", ("8",)),
    "generation<8": ("generation", "Lt", ("8",)),
    "gpuNearx": ("gpu", "Near", ("x",)),
}


@pytest.mark.parametrize("text", DEMANDS)
def test_a_requirement_reads_as_in_a_selector(text: str) -> None:
    assert _requirement_text(DEMANDS[text]) == text


@pytest.mark.parametrize(
    ("state", "last_line", "certain"),
    [
        (TimeUse.PRODUCTIVE, 30, 30),
        (TimeUse.PRODUCTIVE, 5, 10),
        (TimeUse.PRODUCTIVE, 90, 60),
        (TimeUse.PRODUCTIVE, None, 60),
        (TimeUse.STARTING, 30, 60),
        (None, 30, 60),
    ],
)
def test_an_account_is_certain_up_to_the_last_line_of_a_program_that_makes_steps(
    state: TimeUse | None, last_line: int | None, certain: int
) -> None:
    def at(seconds: int) -> timedelta:
        return timedelta(seconds=seconds)

    account = GoodputAccount(since=NOW + at(10), state=state)
    line = None if last_line is None else NOW + at(last_line)
    assert certain_until(account, line, NOW + at(60)) == NOW + at(certain)


def test_the_ratio_leaves_the_suspended_time_out() -> None:
    spent = {TimeUse.PRODUCTIVE: 3000, TimeUse.STARTING: 1000, TimeUse.SUSPENDED: 9000}
    assert ratio(GoodputAccount(since=NOW, state=None, spent=spent), NOW) == 0.75
    only = GoodputAccount(since=NOW, state=None, spent={TimeUse.SUSPENDED: 9000})
    assert ratio(only, NOW) == 0


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 64])
def test_the_hyperjob_of_a_failing_round_is_found_in_few_rounds(number: int) -> None:
    keys = [f"ns/j{each}" for each in range(number)]
    for guilty in keys:
        played: list[Sequence[str]] = []

        def fails(some: Sequence[str], guilty: str = guilty) -> bool:
            played.append(some)  # noqa: B023 - each search is over before the next begins
            return guilty in some

        assert run(culprit(keys, fails)) == guilty
        assert len(played) <= 2 + number.bit_length()


def test_no_hyperjob_is_guilty_of_a_round_that_fails_without_any_or_with_none() -> None:
    assert run(culprit(["ns/a", "ns/b"], lambda _: True)) is None
    assert run(culprit(["ns/a", "ns/b"], lambda _: False)) is None
    assert run(culprit([], lambda _: False)) is None


def test_two_hyperjobs_that_fail_together_are_named_by_the_later_one() -> None:
    keys = ["ns/a", "ns/b", "ns/c", "ns/d"]
    assert run(culprit(keys, lambda some: {"ns/a", "ns/c"} <= set(some))) == "ns/c"


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def preferring(*terms: tuple[int, str]) -> Object:
    return {
        "affinity": {
            "nodeAffinity": {
                PREFERRED: [
                    {
                        "weight": weight,
                        "preference": {
                            "matchExpressions": [
                                {"key": "rack", "operator": "In", "values": [rack]}
                            ]
                        },
                    }
                    for weight, rack in terms
                ]
            }
        }
    }


@pytest.mark.parametrize(
    ("terms", "scores"),
    [
        ([], [0, 0, 0, 0]),
        ([(10, "a")], [200, 0, 0, 0]),
        ([(10, "a"), (5, "b")], [200, 100, 0, 0]),
        ([(3, "a"), (2, "b")], [200, 132, 0, 0]),
        ([(10, "full"), (5, "b")], [0, 200, 0, 0]),
        ([(10, "elsewhere")], [0, 0, 0, 0]),
    ],
)
def test_nodes_score_by_the_weights_of_the_preferences_that_they_meet(
    terms: list[tuple[int, str]], scores: list[int]
) -> None:
    """The greatest weight of a node with room counts 200."""
    shown = view(
        [
            node("n0", labels={"rack": "a"}),
            node("n1", labels={"rack": "b"}),
            node("n2"),
            node("n3", 8, held("p", 8), labels={"rack": "full"}),
        ]
    )
    kind = kind_of(job(task(1, 8, **(preferring(*terms) if terms else {}))).pods[0])
    assert list(Ground(shown).leanings(kind)) == scores


@pytest.mark.parametrize(("lines", "part"), [(4, None), (5, 0.5), (9, 0.5)])
def test_the_part_of_time_that_a_process_waits_is_known_after_five_lines(
    lines: int, part: float | None
) -> None:
    track = Track(start_step=0, started=NOW, samples=((1, NOW),), waits=(0.5,) * lines)
    assert track.waited == part


@pytest.mark.parametrize(
    ("conditions", "began"),
    [
        ([], ""),
        ([("Pending", "2026-01-02T03:00:00Z")], ""),
        ([("Running", "")], ""),
        ([("Running", ""), ("Running", "2026-01-02T03:02:00Z")], "2026-01-02T03:02:00Z"),
        (
            [("Running", "2026-01-02T03:05:00Z"), ("Running", "2026-01-02T03:02:00Z")],
            "2026-01-02T03:02:00Z",
        ),
    ],
)
def test_a_vcjob_first_ran_at_the_earliest_time_of_its_condition(
    conditions: list[tuple[str, str]], began: str
) -> None:
    status = {
        "state": {"phase": "Running"},
        "conditions": [{"status": kind, "lastTransitionTime": time} for kind, time in conditions],
    }
    report = parse_report(status)
    assert report is not None
    assert report.began == began


@pytest.mark.parametrize(
    ("holder", "of_hyperjob", "of_predecessor"),
    [
        (owner("gone"), True, True),
        (owner("gone", name="other"), True, False),
        ([{"kind": "Deployment", "name": "hj", "uid": "x", "controller": True}], False, False),
    ],
)
def test_a_taken_name_says_whose_it_is(
    holder: list[Object], of_hyperjob: bool, of_predecessor: bool
) -> None:
    seen = observed(hyperjob(), vcjob("hj-trainer-0", owners=holder, marked={}))
    found = conflict(child_of(seen, "hj-trainer-0"), "hj")
    assert found is not None
    assert (found.kind, found.name) == ("Job", "hj-trainer-0")
    assert (found.of_hyperjob, found.of_predecessor) == (of_hyperjob, of_predecessor)
    own = observed(hyperjob(), vcjob("hj-trainer-0"))
    assert conflict(child_of(own, "hj-trainer-0"), "hj") is None
    assert conflict(child_of(own, "hj-trainer-1"), "hj") is None


def test_label_keys_of_a_term_add_the_labels_of_the_pod_itself() -> None:
    labels = {"app": "x", "version": "2"}
    term = {"matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["version", "absent"]}
    assert list(_keyed(term, labels)) == [
        Expression("app", "In", ("x",)),
        Expression("version", "NotIn", ("2",)),
    ]
    assert list(_keyed({}, labels)) == []


def test_a_failure_that_others_followed_comes_first_then_the_lost_peers_then_sigterm() -> None:
    first = ContainerFailure(pod="d", exit_code=1, time="2026-01-02T03:00:09Z")
    peer = ContainerFailure(pod="c", exit_code=1, message="RuntimeError: Connection closed by peer")
    ended = ContainerFailure(pod="b", exit_code=143)
    earlier = replace(first, pod="a", time="2026-01-02T03:00:08Z")
    assert sorted([ended, peer, first, earlier], key=order) == [earlier, first, peer, ended]
    untimed = replace(first, time="")
    assert order(untimed) > order(first), "a failure without a time is the last"


def test_all_phases_of_pods_count_in_their_sum() -> None:
    counts = PodCounts(pending=1, running=2, succeeded=4, failed=8, terminating=16, unknown=32)
    assert counts.total == 63


@pytest.mark.parametrize(("grace", "due"), [(0, 30), (60, 90)])
def test_an_ended_sub_job_counts_until_no_summary_has_its_pods(grace: int, due: int) -> None:
    occupancy = Occupancy(lag=timedelta(seconds=30))
    occupancy.fade("a", {"cpu": 1}, now=NOW, grace=timedelta(seconds=grace))
    occupancy.fade("", {"cpu": 1}, now=NOW)  # it was on no cluster
    assert occupancy.next_change() == NOW + timedelta(seconds=due)
    assert occupancy.next_change(after=NOW + timedelta(seconds=due)) is None
