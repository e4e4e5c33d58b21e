"""A name that is not known, and the known name that may be meant."""

import pytest

from hyperjob_core.text import MAX_COMPARED, MAX_HINTS, Hints, did_you_mean, is_typo


@pytest.mark.parametrize(
    ("value", "known", "hint"),
    [
        ("pytroch", ["pytorch", "mpi"], '; did you mean "pytorch"?'),
        ("SVC", ["svc", "ssh"], '; did you mean "svc"?'),
        ("horovod", ["pytorch", "mpi"], ""),
        ("svc", ["svc"], ""),
        ("", ["a"], ""),
        ("x" * 1000, ["x" * 999], ""),
        ("gpu-esat", ["gpu-west", "gpu-east"], '; did you mean "gpu-east"?'),
        ("gpu-esat", ["gpu-east", "gpu-west"], '; did you mean "gpu-east"?'),
        ("us-gpu-2", ["us-gpu-1", "us-gpu-02", "eu-gpu-2"], '; did you mean "us-gpu-02"?'),
        ("mastr", ["mpimaster", "worker"], '; did you mean "mpimaster"?'),
        ("gpu", ["cpu", "memory"], ""),
    ],
)
def test_a_guess_is_made_only_where_something_is_near(value: str, known: list[str], hint: str):
    assert did_you_mean(value, known) == hint


@pytest.mark.parametrize(
    ("value", "typo"),
    [
        ("HyperJob", True),
        ("hyperjobs", True),
        ("HyprJob", True),
        ("HyperJbo", True),
        ("HyperNode", False),
        ("Job", False),
        ("", False),
        ("HyperJob" * 100_000, False),
    ],
)
def test_a_typo_has_few_wrong_letters(value: str, typo: bool):
    assert is_typo(value, "HyperJob") is typo


def test_hints_of_one_review_cost_no_more_however_many_names_are_wrong():
    hints = Hints()
    known = [f"{'ab' * 30}{number:03}" for number in range(1000)]
    for _ in range(1000):
        hints.did_you_mean("ba" * 32, known)
    assert hints.made <= MAX_HINTS
    assert hints.compared <= MAX_COMPARED + 64 * 64
