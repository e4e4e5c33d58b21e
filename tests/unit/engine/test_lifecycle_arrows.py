"""Every transition of docs/lifecycle.md, and no other, can occur; the conditions of each phase."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperjob_core.api.limits import MAX_SUB_JOBS
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind
from hyperjob_engine.status.transitions import Weight, merge_patch, weigh
from tests.support.structural import assert_status
from tests.unit.engine.arrows import NEW, arrows
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
    vcjob_status,
)
from tests.unit.engine.plans import A

FULL = cluster("a", 0, total=100)


def status(origin: str, *phases: str, **fields: Any) -> Object:
    """A status in a phase, with a record of each sub-job."""
    jobs = [job_status(i, phase=phase) for i, phase in enumerate(phases)]
    state = {} if origin == NEW else {"state": {"phase": origin, "reason": "R", "message": "m"}}
    return {**state, **({"jobs": jobs} if jobs and origin != NEW else {}), **fields}


STAGES = (
    group("first", replicas=1),
    group("second", replicas=1, dependsOn=[{"name": "first", "status": "Ready"}]),
)
RESTARTS = {"failurePolicy": {"maxRestarts": 1}}
WAITS = {"suspension": {"scheduling": True}}
DEADLINE = {"activeDeadlineSeconds": 1, "activeDeadlineMode": "Total"}
ASK = {"training.volcano.sh/restart": "t1"}


def asked(origin: str) -> Observed:
    raw = hyperjob(status=status(origin, "Running", "Running"))
    raw["metadata"]["annotations"] = ASK
    return observed(raw, *child(0, "Running"), *child(1, "Running"), clusters=(A,))


def deadline_stops(origin: str) -> Observed:
    raw = hyperjob(
        status=status(origin, "Running", "Running"), checkpoint={"directory": "/c"}, **DEADLINE
    )
    return observed(raw, *child(0, "Running"), *child(1, "Running"), clusters=(A,))


def taken_back(origin: str) -> Observed:
    raw = hyperjob(status=status(origin, "Running", "Running"))
    look = observed(
        raw,
        *child(0, "Running"),
        *child(1, "Pending"),
        clusters=(A,),
        admission=QueueAdmission.BUILTIN,
    )
    names = frozenset({"hj-trainer-0", "hj-trainer-1"})
    return replace(look, verdict=QueueVerdict(admitted=names, reclaimed_for="ns/other"))


def seen(*objects: Object, **options: Any) -> Callable[[str], Observed]:
    """Look at objects with a status in the phase that the arrow leaves."""
    groups = options.pop("groups", ())
    phases = options.pop("phases", ())
    look = {key: options.pop(key) for key in ("clusters", "admission") if key in options}

    def give(origin: str) -> Observed:
        fields = dict(options)
        raw = hyperjob(*groups, status=status(origin, *phases), **fields)
        return observed(raw, *objects, **({"clusters": (A,)} | look))

    return give


def pods_failed(origin: str) -> Observed:
    """Look at a sub-job that Volcano calls Running although a pod of it has failed."""
    dead = PodTrouble(TroubleKind.ENDED, "head", " ended with exit code 1", failed=True)
    given = seen(*child(0, "Running"), *child(1, "Running"))(origin)
    return replace(given, pod_troubles={"hj-trainer-0": PodsTrouble(trouble=dead, pod="p")})


CASES: dict[str, Callable[[str], Observed]] = {
    "no-room": seen(clusters=(FULL,)),
    "next-without-room": seen(*child("hj-first-0", "Running"), groups=STAGES, clusters=(FULL,)),
    "queue-admits-none": seen(
        *child(0, **WAITS), *child(1, **WAITS), admission=QueueAdmission.VOLCANO_GLOBAL
    ),
    "next-in-queue": seen(
        *child("hj-first-0", "Running"),
        *child("hj-second-0", **WAITS),
        groups=STAGES,
        admission=QueueAdmission.VOLCANO_GLOBAL,
    ),
    "dispatched": seen(*child(0), *child(1)),
    "next-dispatched": seen(*child("hj-first-0", "Running"), *child("hj-second-0"), groups=STAGES),
    "enough-run": seen(*child(0, "Running"), *child(1, "Completed")),
    "fewer-run": seen(*child(0, "Running"), *child(1, "Pending"), phases=("Running", "Running")),
    "grows": seen(*child(0, "Running"), *child(1)),
    "one-failed": seen(*child(0, "Running"), *child(1, "Failed")),
    "pods-failed": pods_failed,
    "policy-restarts": seen(*child(0, "Running"), *child(1, "Failed"), **RESTARTS),
    "asked-for": asked,
    "taken-back": taken_back,
    "suspend": seen(*child(0, "Running"), *child(1), suspend=True),
    "nothing-left": seen(*child(0, "Completed"), suspend=True),
    "deadline-stops": deadline_stops,
    "deadline": seen(*child(0, "Running"), *child(1), **DEADLINE),
    "all-completed": seen(*child(0, "Completed"), *child(1, "Completed")),
    "success-policy": seen(
        *child(0, "Completed"), *child(1, "Running"), successPolicy={"operator": "Any"}
    ),
    "all-ended": seen(*child(0, "Completed"), *child(1, "Failed")),
    "policy-fails": seen(
        *child(0, "Running"),
        *child(1, "Failed"),
        failurePolicy={"maxRestarts": 3, "rules": [{"action": "FailHyperJob"}]},
    ),
    "restarts-spent": seen(*child(0, "Running"), *child(1, "Failed"), failurePolicy={}),
    "dependency-failed": seen(*child("hj-first-0", "Failed"), groups=STAGES),
}


@pytest.mark.parametrize(
    ("origin", "into", "case"),
    [
        pytest.param(origin, arrow.into, arrow.case, id=f"{origin}-{arrow.into}-{arrow.case}")
        for arrow in arrows()
        for origin in arrow.origins
    ],
)
def test_an_arrow_of_the_table_is_gone_when_it_says(origin: str, into: str, case: str) -> None:
    status = decided(CASES[case](origin))
    assert status["state"]["phase"] == into
    assert status["state"]["reason"]
    assert status["state"]["message"]
    allowed, found = table()[into], statuses(status)
    assert found.keys() == allowed.keys()
    assert all(found[kind] in allowed[kind] for kind in found), found


def test_the_table_names_every_case_once_and_every_phase() -> None:
    rows = arrows()
    assert sorted(row.case for row in rows) == sorted(CASES)
    assert {row.into for row in rows} == {str(phase) for phase in Phase}
    left = {origin for row in rows for origin in row.origins}
    assert left == {NEW, *(str(phase) for phase in Phase if not phase.is_terminal)}


PAGE = Path(__file__).parents[3] / "docs/lifecycle.md"


def table() -> dict[str, dict[str, list[str]]]:
    """Read the table of the documentation: by phase the statuses that each condition may have."""
    text = PAGE.read_text().partition("## Conditions")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]
    types = rows[0][1:]
    return {
        phase: dict(zip(types, (cell.split(", ") for cell in cells), strict=True))
        for phase, *cells in rows[1:]
    }


def statuses(status: Object) -> dict[str, str]:
    """The status of each condition, without the ends."""
    ends = ("Completed", "Failed")
    return {
        each["type"]: each["status"] for each in status["conditions"] if each["type"] not in ends
    }


def decided(look: object) -> Object:
    status = plan(look).status  # type: ignore[arg-type]
    assert_status(status)
    return status


def test_the_table_has_every_phase() -> None:
    assert list(table()) == [str(phase) for phase in Phase]


ONE = group(replicas=1)
TOO_LARGE = hyperjob(group(replicas=1, gpus=9))
INVALID = hyperjob(group(replicas=MAX_SUB_JOBS + 1))
HELD = {"suspension": {"dispatching": True}, "gate": "held"}
ALTERNATIVES = {
    "a gang behind its gate is not admitted": (hyperjob(ONE), child(**HELD), "Admitted", "False"),
    "a dispatched gang is admitted": (hyperjob(ONE), child(), "Admitted", "True"),
    "one that waits for room goes on": (hyperjob(ONE), [], "Reconciling", "True"),
    "one that never fits does not": (TOO_LARGE, [], "Reconciling", "False"),
    "one that never fits is stalled": (TOO_LARGE, [], "Stalled", "True"),
    "an invalid one is stalled": (INVALID, [], "Stalled", "True"),
}


@pytest.mark.parametrize(
    ("raw", "objects", "kind", "status"), ALTERNATIVES.values(), ids=list(ALTERNATIVES)
)
def test_where_a_phase_has_two_statuses_its_objects_decide(
    raw: Object, objects: list[Object], kind: str, status: str
) -> None:
    small = cluster("a", 8, total=8) if raw is TOO_LARGE else cluster("a", 4, total=8)
    look = observed(raw, *objects, clusters=(small,))
    assert statuses(decided(look))[kind] == status


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = decided(observed(hyperjob(ONE), *child(), clusters=(A,)))
    later = observed(hyperjob(ONE, status=first), *child(phase="Running"), clusters=(A,))
    second = decided(replace(later, now=NOW + timedelta(seconds=60)))
    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert {kind for kind, time in times.items() if time == "2026-01-02T03:05:05Z"} == {
        "Running",
        "Reconciling",
    }
    assert {each["observedGeneration"] for each in second["conditions"]} == {1}
    assert all(each["reason"] and each["message"] for each in second["conditions"])


def test_a_step_towards_the_start_waits_for_others_although_conditions_follow_it() -> None:
    first = decided(observed(hyperjob(ONE), *child(), clusters=(A,)))
    pending = vcjob_status("Pending", {"pending": 8})
    objects = [*child()[:2], binding("hj-trainer-0", cluster="a", status=pending)]
    second = decided(observed(hyperjob(ONE, status=first), *objects, clusters=(A,)))
    assert second["conditions"] != first["conditions"]
    assert weigh(first, second) is Weight.STEPS


TOO_MUCH = {"full": cluster("a", 0, total=100), "too small": cluster("a", 0, total=4)}


@pytest.mark.parametrize("place", TOO_MUCH.values(), ids=list(TOO_MUCH))
def test_words_change_no_condition(place: Cluster) -> None:
    status = decided(observed(hyperjob(ONE), clusters=(place,)))
    other = replace(place, free={GPU: 3 * NANO})
    patch = merge_patch(status, decided(observed(hyperjob(ONE, status=status), clusters=(other,))))
    assert f"needs 8 {GPU}" in status["state"]["message"]
    assert patch.keys() <= {"state", "jobs"}
    assert patch["state"]["message"]


def test_the_conditions_of_other_components_stay() -> None:
    theirs = {"type": "Audited", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    raw = hyperjob(ONE, status={"conditions": [theirs]})
    status = decided(observed(raw, *child(phase="Completed"), clusters=(A,)))
    assert [each["type"] for each in status["conditions"][:2]] == ["Completed", "Audited"]
    assert theirs in status["conditions"]
