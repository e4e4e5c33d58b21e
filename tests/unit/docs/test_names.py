"""A class of the controller, or of the webhook, has a name of its own: no two mean other things."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.rooms import PACKAGES

ROOT = Path(__file__).parents[3]


def public_classes(source: str) -> list[str]:
    """Return the names of the classes of a module that other modules may use."""
    found = (node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return [name for name in found if not name.startswith("_")]


@pytest.mark.parametrize("package", sorted({*PACKAGES} - {"hyperjob", "hyperjob_core"}))
def test_no_two_classes_of_a_package_have_one_name(package: str) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGES[package].rglob("*.py")):
        for name in public_classes(path.read_text()):
            places[name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
