"""The annotation with what the sub-jobs of a leader hold of each cluster."""

from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.microtime import micro_time
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.queueing.claims import Claims, from_text, to_text, together
from hyperjob_engine.resources import Resources
from tests.unit.engine.builders import GPU, NOW


def gpus(number: int) -> Resources:
    return {GPU: number * NANO}


@pytest.mark.parametrize(
    ("created", "left"),
    [
        (NOW - timedelta(seconds=5), {"a": gpus(6), "b": gpus(4)}),
        (NOW - timedelta(seconds=4), {"a": gpus(8), "b": gpus(4)}),
        (None, {"a": gpus(8), "b": gpus(4)}),
    ],
)
def test_claims_are_left_without_the_present_sub_jobs_that_are_older(
    created: Any, left: dict[str, Resources]
) -> None:
    claims = Claims(NOW, {"a": gpus(8), "b": gpus(4)})
    assert claims.without([("a", gpus(2), created), ("c", gpus(1), created)]) == left


def test_nothing_is_left_of_claims_whose_sub_jobs_are_all_there() -> None:
    old = NOW - timedelta(hours=1)
    claims = Claims(NOW, {"a": gpus(8), "b": gpus(4)})
    present = [("a", gpus(5), old), ("a", gpus(5), old), ("b", gpus(3), old)]
    assert claims.without(present) == {"b": gpus(1)}


def test_sums_of_the_same_cluster_are_added() -> None:
    assert together({"b": gpus(1), "a": gpus(2)}, {"b": gpus(3)}, {}) == {
        "a": gpus(2),
        "b": gpus(4),
    }


def test_claims_read_back_as_they_were_written_without_empty_amounts() -> None:
    claims = Claims(NOW, {"b": gpus(1), "a": {GPU: 0}})
    assert from_text(to_text(claims)) == Claims(NOW, {"b": gpus(1)})
    many = Claims(NOW, {f"cluster-{number}": gpus(1) for number in range(3000)})
    assert to_text(many) == "", "an annotation that would be too long"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"at": "%s"}',
        '{"at": "yesterday", "on": {}}',
        '{"at": "%s", "on": []}',
        '{"at": "%s", "on": {"a": 1}}',
        '{"at": "%s", "on": {"a": {"cpu": "1"}}}',
        '{"at": "%s", "on": {"a": {"cpu": -1}}}',
    ],
)
def test_claims_of_another_form_are_no_claims(text: str) -> None:
    assert from_text(text.replace("%s", micro_time(NOW))) is None


def test_claims_may_be_of_nothing() -> None:
    assert from_text(f'{{"at": "{micro_time(NOW)}", "on": {{"a": {{"cpu": 0}}}}}}') is not None
