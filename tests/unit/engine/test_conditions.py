"""The conditions of a HyperJob: the table of docs/lifecycle.md, and when they change."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hyperjob_core.api.limits import MAX_SUB_JOBS
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import Weight, merge_patch, weigh
from tests.support.structural import assert_status
from tests.unit.engine.arrows import arrows
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    observed,
    vcjob_status,
)
from tests.unit.engine.plans import A
from tests.unit.engine.test_lifecycle_arrows import CASES

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
    assert status is not None
    assert_status(status)
    return status


ARROWS = [
    pytest.param(origin, arrow.case, id=f"{origin}-{arrow.into}-{arrow.case}")
    for arrow in arrows()
    for origin in arrow.origins
]


@pytest.mark.parametrize(("origin", "case"), ARROWS)
def test_every_phase_has_the_conditions_of_the_table(origin: str, case: str) -> None:
    status = decided(CASES[case](origin))
    allowed = table()[status["state"]["phase"]]
    found = statuses(status)
    assert found.keys() == allowed.keys()
    assert all(found[kind] in allowed[kind] for kind in found), found


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
