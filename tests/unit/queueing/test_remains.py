"""A queue is charged for vcjobs that live though their HyperJob does not exist any more."""

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import parse_binding
from hyperjob_queueing.read import unit_of, unit_of_remains
from tests.unit.engine.builders import (
    Object,
    binding,
    hyperjob,
    job,
    observed,
    policy,
    task,
    template,
    vcjob_status,
)

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
    for unit in (gone, unit_of(seen)):
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
