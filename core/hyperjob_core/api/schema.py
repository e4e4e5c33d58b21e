"""The CustomResourceDefinitions of HyperJobs and of Volcano's objects.

Every list and map has a maximum; the pod template is the structural schema of Kubernetes.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from hyperjob_core.api import names
from hyperjob_core.api.limits import MAX_PODS, MAX_TASKS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import HyperJobStatus
from hyperjob_core.api.table import schema_of

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


MAX_ITEMS: Final = 1024
"""The default maximum of items of a list and of entries of a map."""
_MAX_ITEMS: Final[Mapping[str, int]] = {
    "args": 16384,
    "command": 16384,
    "containers": 64,
    "ephemeralContainers": 64,
    "events": 64,
    "initContainers": 64,
    "policies": 64,
    "tasks": MAX_TASKS,
    "tolerations": 256,
    "topologySpreadConstraints": 64,
    "volumeMounts": 512,
    "volumes": 512,
}
"""Maxima of lists by the name of the field."""
_MAX_PROPERTIES: Final[Mapping[str, int]] = {
    "limits": 64,
    "overhead": 64,
    "plugins": 64,
    "requests": 64,
}
"""Maxima of maps by the name of the field."""
_EXPLAINED: Final[Mapping[tuple[str, ...], str]] = {
    ("replicatedJobs", "templateSpec", "tasks", "template"): "pod",
    ("replicatedJobs", "templateSpec", "volumes", "volumeClaim"): "pvc.spec",
}
"""The fields of Kubernetes' own types, and what `kubectl explain` calls them."""
_PODS_OF_TASK: Final = ("tasks", "replicas")


def bounded(node: Object, *path: str) -> Object:
    """Return the schema at `path` with a maximum for each list and map at or below it."""
    made = dict(node)
    name = path[-1] if path else ""
    if "properties" in node:
        made["properties"] = {
            key: _explained(*path, key) | bounded(child, *path, key)
            for key, child in node["properties"].items()
        }
    if isinstance(node.get("additionalProperties"), dict):
        made["additionalProperties"] = bounded(node["additionalProperties"], *path)
        made.setdefault("maxProperties", _MAX_PROPERTIES.get(name, MAX_ITEMS))
    if node.get("type") == "array":
        made["items"] = bounded(node["items"], *path)
        made.setdefault("maxItems", _MAX_ITEMS.get(name, MAX_ITEMS))
    if path[-2:] == _PODS_OF_TASK:
        made["maximum"] = MAX_PODS
    return made


def _explained(*path: str) -> Object:
    """Return the description of a field that Kubernetes explains; empty for another field."""
    kind = _EXPLAINED.get(path[:4])
    return {"description": f"See: kubectl explain {'.'.join((kind, *path[4:]))}"} if kind else {}


HYPERJOB_FILE: Final = Path("crds") / f"{names.GROUP}_{names.PLURAL}.yaml"

_JOBS: Final = "jobs.batch.volcano.sh"
_ROOT: Final = Path(__file__).parents[3]
HERE: Final = files("hyperjob_core.api")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HEADER: Final = (
    "# Made by `python -m hyperjob_core.api.schema` from hyperjob.yaml and the table"
    " HyperJobStatus there.\n"
)


def hyperjob_crd() -> Object:
    """Return the CRD of the HyperJob."""
    made = _read(HERE / "hyperjob.yaml")
    schema: Object = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    job = schema["spec"]["properties"]["replicatedJobs"]["items"]["properties"]
    job["templateSpec"] = {**_template(), **job["templateSpec"]}
    schema["spec"] = bounded(schema["spec"])
    schema["status"] = schema_of(HyperJobStatus)
    return made


@cache
def volcano_crds() -> Mapping[str, Object]:
    """Return Volcano's definitions by name, such as `jobs.batch.volcano.sh`."""
    read = [_read(path) for path in (HERE / "crds").iterdir() if path.name.endswith(".yaml")]
    found = {definition["metadata"]["name"]: definition for definition in read}
    task = _spec(found[_JOBS])["properties"]["tasks"]["items"]["properties"]
    _key_pod_lists(task["template"]["properties"]["spec"]["properties"])
    return MappingProxyType(found)


def _read(path: Traversable) -> Object:
    """Return the definition in a file, with the types of Kubernetes that it refers to."""
    found: Object = expanded(yaml.load(path.read_bytes(), _LOADER))  # noqa: S506 - safe
    return found


def _spec(definition: Object) -> Object:
    """Return the schema of the spec of a definition with one version."""
    (version,) = definition["spec"]["versions"]
    found: Object = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _key_pod_lists(pod: Object) -> None:
    """Key the lists that may have an item twice in a Pod, and not in Volcano's CRD."""
    pod["hostAliases"] |= _list_map("ip")
    pod["imagePullSecrets"] |= _list_map("name")
    pod["imagePullSecrets"]["items"]["properties"]["name"]["default"] = ""
    for field in ("containers", "initContainers", "ephemeralContainers"):
        container = pod[field]["items"]["properties"]
        container["env"] |= _list_map("name")
        container["ports"] |= _list_map("containerPort", "protocol")
        container["ports"]["items"]["properties"]["protocol"]["default"] = "TCP"


def _list_map(*keys: str) -> Object:
    """Return the markers of a list whose items these keys tell apart."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def _template() -> Object:
    """Return the schema of a template: the spec of a vcjob without what Volcano's CRD sets.

    A HyperJob's webhook names a task without a name, a variable that is given twice, and says that
    a template must have tasks.
    """
    spec = _without_defaults(_spec(_read(HERE / "crds" / "batch.volcano.sh_jobs.yaml")))
    # Server-side apply merges the items of a list with a key, which every item must have.
    for name, key in (("tasks", "name"), ("volumes", "mountPath")):
        spec["properties"][name] |= _list_map(key)
        spec["properties"][name]["items"]["required"] = [key]
    del spec["properties"]["tasks"]["minItems"]
    return spec


def _without_defaults(node: Object) -> Object:
    """Return a copy of a schema without its defaults."""
    made = {key: value for key, value in node.items() if key != "default"}
    for key in {"items", "additionalProperties"} & made.keys():
        made[key] = _without_defaults(made[key])
    if "properties" in made:
        below: Object = made["properties"]
        made["properties"] = {name: _without_defaults(each) for name, each in below.items()}
    return made


class _Dumper(yaml.SafeDumper):
    """Writes each part as it is, not as an alias of an equal one."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def render() -> str:
    """Return the text of the file that users apply."""
    return _HEADER + yaml.dump(hyperjob_crd(), Dumper=_Dumper, sort_keys=False, width=100)


def main() -> None:
    """Write the file."""
    (_ROOT / HYPERJOB_FILE).write_text(render())


if __name__ == "__main__":
    main()
