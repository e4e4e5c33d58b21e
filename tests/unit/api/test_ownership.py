"""Whose an object is: its controller."""

from typing import Any

import pytest

from hyperjob_core.api.ownership import is_controlled, named


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


def test_an_object_is_named_with_its_namespace() -> None:
    assert named("Secret", {"metadata": {"namespace": "a", "name": "b"}}) == "Secret a/b"
    assert named("Queue", {"metadata": {"name": "b"}}) == "Queue b"
