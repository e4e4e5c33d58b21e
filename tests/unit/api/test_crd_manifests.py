"""The manifests that people have are valid, what is wrong in one is said."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.structural import ROOT, crds, violations

DATA = Path(__file__).parent / "data"
Object = dict[str, Any]


def manifests() -> Iterator[Any]:
    for file in sorted([*DATA.glob("*.yaml"), *(ROOT / "examples").glob("*.yaml")]):
        for number, obj in enumerate(yaml.safe_load_all(file.read_text())):
            if obj.get("kind") in crds():
                yield pytest.param(obj, id=f"{file.stem}-{number}")


def recorded() -> Iterator[Any]:
    for line in (DATA / "recorded.jsonl").read_text().splitlines():
        obj = json.loads(line)
        yield pytest.param(obj, id=f"{obj['kind']}-{obj['metadata']['name']}")


@pytest.mark.parametrize("obj", [*manifests()])
def test_a_manifest_of_the_documents_and_examples_is_valid(obj: Object) -> None:
    assert violations(obj) == []


@pytest.mark.parametrize("obj", [*recorded()])
def test_an_object_of_a_real_control_plane_is_valid_and_loses_nothing(obj: Object) -> None:
    assert violations(obj) == []
