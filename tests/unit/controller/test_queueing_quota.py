"""Volcano Global's arithmetic, against its dispatcher as the embedded control plane has it."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.queues import bounded
from hyperjob_queueing.quota import Charge, Charges, charge_of, forecast_dispatch
from hyperjob_sandbox.karmada.volcano_global import Candidate, dispatch
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import queue

Object = dict[str, Any]
NANO = 10**9


def gpus(number: int) -> dict[str, int]:
    return parse_resources({GPU: str(number)})


def charge(
    name: str, number: int, *, waits: bool = True, own: bool = True, **fields: Any
) -> Charge:
    sub_job = f"ns/{name}" if own else ""
    return Charge(
        queue=fields.pop("queue", "q"), request=gpus(number), waits=waits, sub_job=sub_job, **fields
    )


def filled(*charges: Charge) -> Charges:
    made = Charges()
    for number, each in enumerate(charges):
        made.put(each.sub_job or f"other-{number}", each)
    return made


def test_what_is_not_suspended_counts_whatever_it_is_of() -> None:
    charges = filled(
        charge("a", 4, waits=False),
        charge("b", 8),
        charge("c", 2, waits=False, own=False),
        charge("d", 1, waits=False, queue="other"),
    )
    assert charges.released() == {"q": gpus(6), "other": gpus(1)}
    assert charges.released(lambda key: key == "ns/a") == {"q": gpus(2), "other": gpus(1)}
    assert [each.sub_job for each in charges.waiting()] == ["ns/b"]


def test_what_has_ended_asks_for_nothing_and_is_no_trouble() -> None:
    charges = filled(charge("a", 0, waits=False))
    assert charges.released(lambda _key: True) == {}


def test_a_binding_that_changes_or_goes_is_counted_as_it_is_now() -> None:
    charges = Charges()
    assert charges.put("x", charge("a", 4))
    assert not charges.put("x", charge("a", 4))
    assert charges.put("x", charge("a", 4, waits=False))
    assert charges.released() == {"q": gpus(4)}
    assert charges.put("x", charge("a", 0, waits=False)), "it asks for nothing once it has ended"
    assert charges.put("x", None)
    assert charges.released() == {}
    assert not charges.put("x", None)


def test_of_other_workloads_that_wait_nothing_is_kept() -> None:
    charges = Charges()
    assert not charges.put("x", charge("a", 4, own=False))
    assert not list(charges.waiting())


TWO = {"replicaRequirements": {"resourceRequest": {GPU: "2"}}}
HELD = {"suspension": {"scheduling": True, "dispatching": True}}


@pytest.mark.parametrize(
    ("spec", "amount", "waits"),
    [
        ({}, 0, False),
        ({"replicas": 4, **TWO}, 8, False),
        ({"replicas": 4, "replicaRequirements": {}}, 0, False),
        (TWO, 0, False),
        ({"replicas": 1, **TWO, **HELD}, 2, True),
    ],
)
def test_a_binding_asks_for_replicas_times_its_request(
    spec: Object, amount: int, waits: bool
) -> None:
    since = {"creationTimestamp": "2026-01-02T03:04:05Z"}
    found = charge_of({"metadata": since, "spec": spec}, queue="q", sub_job="ns/a")
    assert found.created == since["creationTimestamp"]
    assert found.request.get(GPU, 0) == amount * NANO
    assert found.waits is waits


def test_unknown_queues_and_priority_classes_are_passed_over_without_a_word() -> None:
    charges = filled(charge("a", 1), charge("b", 1, queue="gone"), charge("c", 1))
    found = forecast_dispatch(
        charges, [bounded(queue("q"), gpus(8))], lambda key: None if key == "ns/c" else 0
    )
    assert found == {"ns/a": True}


@st.composite
def bindings(draw: st.DrawFn) -> list[tuple[Charge, int]]:
    return [
        (
            charge(
                f"j{number}",
                draw(st.integers(0, 8)),
                waits=draw(st.booleans()),
                queue=draw(st.sampled_from(["q", "r", "gone"])),
                created=str(draw(st.integers(0, 3))),
            ),
            draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(0, 10)))
    ]


@settings(deadline=None)
@given(bindings(), st.none() | st.integers(0, 12), st.integers(0, 24))
def test_it_foretells_what_the_dispatcher_does(
    made: list[tuple[Charge, int]], capability: int | None, everything: int
) -> None:
    """The order over queues decides nothing: no queue's use counts in another."""
    queues = {"q": queue("q", gpus=capability), "r": queue("r")}
    raw: dict[str, Object] = {"q": {"spec": {}}, "r": {"spec": {}}}
    if capability is not None:
        raw["q"]["spec"]["capability"] = {GPU: str(capability)}
    candidates = [
        Candidate(one.sub_job, one.queue, urgency, one.created, Counter(one.request), one.waits)
        for one, urgency in made
    ]
    urgencies = {each.sub_job: urgency for each, urgency in made}
    found = forecast_dispatch(
        filled(*(replace(each) for each, _ in made)),
        [bounded(each, gpus(everything)) for each in queues.values()],
        urgencies.__getitem__,
    )
    assert {key for key, goes in found.items() if goes} == set(
        dispatch(candidates, raw, gpus(everything))
    )
