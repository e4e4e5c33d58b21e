"""The jobs of a runtime after the patches of a TrainJob, as Trainer merges them.

Lists of objects merge by their key: volumes, containers, variables and pull secrets by name,
volume mounts by path; labels and selectors merge by key, all other values replace.
"""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import ANCESTOR
from hyperjob_core.api.wire import at, mapping, objects, string, string_map

_KEYS: Final[Mapping[str, str]] = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
}
_WHOLE: Final = frozenset({"env", "volumes"})
"""Lists by name whose items a patch replaces: an item has one of several kinds of source."""


def merged(old: Object, patch: Object) -> Object:
    """Return an object with a patch."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            continue
        before = result.get(name)
        if isinstance(value, dict):
            result[name] = merged(mapping(before), value)
        elif isinstance(value, list) and name in _WHOLE:
            result[name] = upserted(objects(before), objects(value))
        elif isinstance(value, list) and name in _KEYS:
            result[name] = _merged_list(objects(before), objects(value), _KEYS[name])
        else:
            result[name] = value
    return result


def upserted(items: list[Object], more: list[Object]) -> list[Object]:
    """Return named items with others, which replace those of the same name in their places."""
    found = {string(each.get("name")): each for each in items}
    return list((found | {string(each.get("name")): each for each in more}).values())


def patched(runtime: Object, trainjob: Object) -> Object:
    """Return the template of a runtime (metadata and spec) with the patches of a TrainJob."""
    template = mapping(at(runtime, "spec", "template"))
    for patch in objects(at(trainjob, "spec", "runtimePatches")):
        template = merged(template, mapping(at(patch, "trainingRuntimeSpec", "template")))
    return template


def step_of(job: Object) -> str:
    """Return the step of a replicatedJob: trainer, dataset-initializer, model-initializer."""
    return string_map(at(job, "template", "metadata", "labels")).get(ANCESTOR, "")


def pod_of(job: Object) -> Object:
    """Return the pod spec of a replicatedJob."""
    return mapping(at(job, "template", "spec", "template", "spec"))


def _merged_list(before: list[Object], patch: list[Object], key: str) -> list[Object]:
    """Return a list whose items of equal `key` are merged; new items follow."""
    found = {string(item.get(key)): item for item in before}
    for item in patch:
        name = string(item.get(key))
        found[name] = merged(found.get(name, {}), item)
    return list(found.values())
