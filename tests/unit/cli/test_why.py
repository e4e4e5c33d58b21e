"""What `hyperjob why` prints of an explanation, as text and as a value."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hyperjob.cli import why
from hyperjob.cli.kubectl.access import Access
from hyperjob.client.durations import expected_words
from hyperjob.client.why.evidence import Explanation
from hyperjob.client.why.explain import explain
from hyperjob_core.api import table
from hyperjob_core.api.status import ExpectedStart
from tests.unit.cli.objects import NOW, Object, hyperjob
from tests.unit.client.test_why import FORBIDDEN, evidence, waiting


def shown(answer: Explanation, events: list[Object]) -> list[str]:
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    lines = why.explanation_lines(answer, events, now, lambda words: f"{words} --context c")
    return [line.plain for line in lines]


def test_it_is_said_with_warnings_what_could_not_be_seen_and_the_next_command() -> None:
    event = {
        "type": "Warning",
        "reason": "Refused",
        "message": "not today",
        "lastTimestamp": "2026-01-01T00:59:00Z",
    }
    over = event | {"lastTimestamp": "2025-12-31T23:59:59Z", "message": "before it was queued"}
    job = waiting("WaitingForQueue", "waits for queue default")
    obj = hyperjob("Queued", job, reason="WaitingForQueue", message="number 2 of 3")
    answer = explain(evidence(obj, bindings=FORBIDDEN))
    assert shown(answer, [event, over, {"type": "Normal", "reason": "Created"}]) == [
        "ml/llm is Queued",
        "  WaitingForQueue  number 2 of 3",
        "  event 60s ago  Refused: not today",
        "  not visible to you  resourcebindings: you may not",
        "Next:  kubectl hyperjob top --by queue --context c",
    ]


@pytest.mark.parametrize(
    ("words", "aimed"),
    [
        ("kubectl get hj", "kubectl --kubeconfig '/a b' --context k get hj"),
        ("kubectl hyperjob top", "kubectl hyperjob top --kubeconfig '/a b' --context k"),
        ("kubectl --context host logs x", "kubectl --context host logs x"),
        (
            "kubectl hyperjob queue open q && kubectl edit hj x",
            (
                "kubectl hyperjob queue open --kubeconfig '/a b' --context k q"
                " && kubectl --kubeconfig '/a b' --context k edit hj x"
            ),
        ),
    ],
)
def test_a_command_has_the_flags_of_its_api_server(words: str, aimed: str) -> None:
    assert Access(kubeconfig=Path("/a b"), context="k").command(words) == aimed


def test_as_a_value_it_says_the_same() -> None:
    obj = hyperjob("Suspended", reason="Suspended", message="suspended with 0 of 1 ended")
    answer = explain(evidence(obj))
    assert why.explanation_value(answer, str) == {
        "namespace": "ml",
        "name": "llm",
        "phase": "Suspended",
        "message": "suspended with 0 of 1 ended",
        "outcome": "NeedsHelp",
        "headline": "is Suspended",
        "queueAdmission": "",
        "training": {},
        "causes": [
            {
                "reason": "Suspended",
                "message": "suspended with 0 of 1 ended",
                "next": "kubectl hyperjob resume llm -n ml",
                "needsHelp": True,
                "log": [],
            }
        ],
        "notVisible": [],
    }


def test_the_expected_start_is_said_in_words_and_as_a_value_with_whose_end_gives_room() -> None:
    expected = {"time": "2026-01-01T03:10:00Z", "after": "ml/base-model"}
    obj = hyperjob("Queued", waiting("WaitingForQueue", "waits"), expectedStart=expected)
    answer = explain(evidence(obj))
    assert shown(answer, [])[2] == (
        "  expected to start in about 2 h 10 min, when base-model ends (its estimate)"
    )
    assert why.explanation_value(answer, str)["expectedStart"] == expected


@pytest.mark.parametrize(
    ("time", "namespace", "words"),
    [
        ("2026-01-01T01:00:30Z", "ml", "within a minute, when a ends"),
        ("2026-01-01T00:30:00Z", "ml", "within a minute, when a ends"),
        ("2026-01-01T01:59:00Z", "ml", "in about 59 min, when a ends"),
        ("2026-01-01T02:58:00Z", "ml", "in about 2 h, when a ends"),
        ("2026-01-02T02:00:00Z", "ml", "in about 1 d 1 h, when a ends"),
        ("2026-01-03T01:00:00Z", "other", "in about 2 d, when ml/a ends"),
    ],
)
def test_an_expected_start_is_a_rough_length_of_time(time: str, namespace: str, words: str) -> None:
    found = table.read(ExpectedStart, {"time": time, "after": "ml/a"})
    assert found is not None
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    assert (
        expected_words(found, now, namespace=namespace)
        == f"expected to start {words} (its estimate)"
    )
