"""Every transition of the table in docs/lifecycle.md, and no other, can occur."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hyperjob_core.api.phases import Phase
from hyperjob_engine.model.observed import Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind
from tests.unit.engine.arrows import NEW, arrows
from tests.unit.engine.builders import (
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
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
    decided = plan(CASES[case](origin))
    assert decided.status["state"]["phase"] == into
    assert decided.status["state"]["reason"]
    assert decided.status["state"]["message"]


def test_the_table_names_every_case_once_and_every_phase() -> None:
    rows = arrows()
    assert sorted(row.case for row in rows) == sorted(CASES)
    assert {row.into for row in rows} == {str(phase) for phase in Phase}
    left = {origin for row in rows for origin in row.origins}
    assert left == {NEW, *(str(phase) for phase in Phase if not phase.is_terminal)}
