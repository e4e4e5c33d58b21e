"""The structural schemas of Kubernetes' pod template and PersistentVolumeClaim.

They come from a file that `docs.generators.podschema` writes.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Final

from hyperjob_core.api.meta import Object

DATA: Final = files("hyperjob_core.api").joinpath("corev1.json")


def schema(name: str) -> Object:
    """Return the schema of a type, with all references resolved; the caller may change it."""
    expanded = _expand(_definitions()[name])
    assert isinstance(expanded, dict)
    return expanded


@cache
def _definitions() -> Object:
    definitions: Object = json.loads(DATA.read_text())  # noqa: TID251 - our own
    return definitions


def _expand(value: object) -> object:
    """Return a part of a schema with the target of each reference in its place."""
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        beside = {key: item for key, item in value.items() if key != "$ref"}
        return schema(value["$ref"]) | beside
    return {key: _expand(item) for key, item in value.items()}
