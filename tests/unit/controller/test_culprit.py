"""The HyperJob at which a round of the queue engine fails is found by trial rounds."""

from collections.abc import Sequence

import pytest

from hyperjob_controller.admission.releases import culprit
from hyperjob_core.virtualtime import run


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
