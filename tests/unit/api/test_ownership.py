"""Whose an object is: its controller, or the program whose label it has."""

from typing import Any

import pytest

from hyperjob_core.api.ownership import is_controlled, manager_of, named


@pytest.mark.parametrize(
    ("reference", "owned"),
    [
        ({"uid": "u", "controller": True}, True),
        ({"uid": "u"}, False),
        ({"uid": "u", "controller": False}, False),
        ({"uid": "", "controller": True}, False),
        ({"uid": "another", "controller": True}, False),
    ],
)
def test_an_object_belongs_to_the_object_that_its_controller_reference_has(
    reference: dict[str, Any], owned: bool
) -> None:
    found = {"metadata": {"ownerReferences": [{"uid": "other"}, reference]}}
    assert is_controlled(found, "u") is owned
    assert not is_controlled(found, "")
    assert not is_controlled({}, "u")


def test_the_label_of_an_object_names_the_program_that_created_it() -> None:
    labels = {"app.kubernetes.io/managed-by": "hyperjob-certs"}
    assert manager_of({"metadata": {"labels": labels}}) == "hyperjob-certs"
    assert manager_of({"metadata": {"labels": None}}) == manager_of({}) == ""


def test_an_object_is_named_with_its_namespace() -> None:
    assert named("Secret", {"metadata": {"namespace": "a", "name": "b"}}) == "Secret a/b"
    assert named("Queue", {"metadata": {"name": "b"}}) == "Queue b"
