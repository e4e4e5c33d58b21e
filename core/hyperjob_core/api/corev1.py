"""The structural schemas of Kubernetes' pod template and PersistentVolumeClaim.

They come from a file that `docs.generators.podschema` writes.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from hyperjob_core.api.meta import Object

DATA: Final = files("hyperjob_core.api").joinpath("corev1.json")

POD_TEMPLATE: Final = "PodTemplateSpec"
CLAIM: Final = "PersistentVolumeClaimSpec"


def schema(name: str) -> Object:
    """Return the schema of a type, with all references resolved; the caller may change it."""
    found: Object = expanded(_definitions()[name])
    return found


@cache
def _definitions() -> Object:
    definitions: Object = json.loads(DATA.read_text())  # noqa: TID251 - our own
    return definitions


def expanded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a part of a schema with the target of each reference in its place."""
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        beside = {key: item for key, item in value.items() if key != "$ref"}
        return schema(value["$ref"]) | beside
    return {key: expanded(item) for key, item in value.items()}
