"""The names that others rely on."""

import pytest

from hyperjob_core.api import names


def test_a_child_is_named_as_the_go_controller_names_it() -> None:
    assert names.child_name("llm-training", "trainer", 1) == "llm-training-trainer-1"


@pytest.mark.parametrize(
    ("vcjob", "binding"),
    [("llm-training-trainer-1", "llm-training-trainer-1-job"), ("A:b", "a.b-job")],
)
def test_a_binding_is_named_as_karmada_names_it(vcjob: str, binding: str) -> None:
    assert names.binding_name(vcjob) == binding


def test_affinity_names_fit_into_a_binding() -> None:
    assert len(names.AFFINITY_GATED) <= 32
    assert len(names.AFFINITY_UNGATED) <= 32
