"""The shape of Kubernetes' pod template and volume claim, as structural schemas.

It comes from a file that `hyperjob.kube.podschema` writes; nothing here changes it.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Final

from hyperjob.api.meta import Object

DATA: Final = files("hyperjob.api").joinpath("corev1.json")


def schema(name: str) -> Object:
    """Return a type with all that it refers to in place; the caller owns the result."""
    expanded = _expand(_definitions()[name])
    assert isinstance(expanded, dict)
    return expanded


@cache
def _definitions() -> Object:
    definitions: Object = json.loads(DATA.read_text())
    return definitions


def _expand(value: object) -> object:
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        beside = {key: item for key, item in value.items() if key != "$ref"}
        return schema(value["$ref"]) | beside
    return {key: _expand(item) for key, item in value.items()}
