"""The generator of the schema of Kubernetes' pod template, which the CRDs include.

Types and required fields come from the installed client; the list types of Kubernetes' API are a
table here. The result has no descriptions. `python -m docs.generators.podschema` writes the
file.
"""

import json
from pathlib import Path
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import CLAIM, DATA, POD_TEMPLATE

# Lists whose items are identified by a key; every other list is replaced as a whole, also those
# whose items Kubernetes identifies by a key and may repeat in a Pod (env, ports, imagePullSecrets,
# hostAliases): in a custom resource the API server would refuse the repetition.
_KEYS: Final = {
    ("Container", "volumeDevices"): ["devicePath"],
    ("Container", "volumeMounts"): ["mountPath"],
    ("PodSpec", "containers"): ["name"],
    ("PodSpec", "ephemeralContainers"): ["name"],
    ("PodSpec", "evictionResponders"): ["name"],
    ("PodSpec", "initContainers"): ["name"],
    ("PodSpec", "resourceClaims"): ["name"],
    ("PodSpec", "schedulingGates"): ["name"],
    ("PodSpec", "topologySpreadConstraints"): ["topologyKey", "whenUnsatisfiable"],
    ("PodSpec", "volumes"): ["name"],
    ("ResourceRequirements", "claims"): ["name"],
}
_SETS: Final = {("ContainerRestartRuleOnExitCodes", "values")}
_ATOMIC_MAPS: Final = {
    "ConfigMapKeySelector",
    "FileKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ResourceFieldSelector",
    "SecretKeySelector",
    "TypedLocalObjectReference",
}
_ATOMIC_FIELDS: Final = {("PodSpec", "nodeSelector")}
_QUANTITIES: Final = {
    ("EmptyDirVolumeSource", "sizeLimit"),
    ("PodSpec", "overhead"),
    ("ResourceFieldSelector", "divisor"),
    ("ResourceRequirements", "limits"),
    ("ResourceRequirements", "requests"),
    ("VolumeResourceRequirements", "limits"),
    ("VolumeResourceRequirements", "requests"),
}
_INT64: Final = {
    "activeDeadlineSeconds",
    "defaultUser",
    "expirationSeconds",
    "fsGroup",
    "runAsGroup",
    "runAsUser",
    "supplementalGroups",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "user",
}
_INT64_OF: Final = {("SleepAction", "seconds")}

_QUANTITY: Final[Object] = {
    "x-kubernetes-int-or-string": True,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$",
}
"""The form of a quantity; unlike controller-gen's it has no fractional exponents, which Kubernetes
does not read."""
# The metadata that a template may have. Tools write a null creation time.
_TEMPLATE_META: Final[Object] = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
        "finalizers": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "generateName": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}


def definitions() -> Object:
    """Return the types of a pod template and a volume claim by name, joined by `$ref`."""
    from kubernetes.client import V1PersistentVolumeClaimSpec, V1PodTemplateSpec

    raw: Object = {}
    for name, model in ((POD_TEMPLATE, V1PodTemplateSpec), (CLAIM, V1PersistentVolumeClaimSpec)):
        top = model.model_json_schema(mode="serialization", by_alias=True)
        raw |= {_name(key): value for key, value in top.pop("$defs", {}).items()}
        raw[name] = top
    # The metadata of stored objects is omitted: a template can set little of it.
    kept: Object = {"ObjectMeta": _TEMPLATE_META}
    waiting = [POD_TEMPLATE, CLAIM]
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = _object(name, raw[name])
            waiting.extend(_references(kept[name]))
    return dict(sorted(kept.items()))


def _name(definition: str) -> str:
    return definition.removeprefix("Core").removeprefix("V1")


def _object(name: str, raw: Object) -> Object:
    schema: Object = {"type": "object"}
    if raw.get("required"):
        schema["required"] = sorted(raw["required"])
    schema["properties"] = {
        field: _field(name, field, value) for field, value in sorted(raw["properties"].items())
    }
    if name in _ATOMIC_MAPS:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _field(owner: str, field: str, raw: Object) -> Object:
    # An ephemeral container has the same list types as a container.
    at = ("Container" if owner == "EphemeralContainer" else owner, field)
    schema = _type(at, raw)
    if schema.get("type") == "array":
        if at in _KEYS:
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": _KEYS[at]}
        else:
            schema["x-kubernetes-list-type"] = "set" if at in _SETS else "atomic"
    if at in _ATOMIC_FIELDS:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _type(at: tuple[str, str], raw: Object) -> Object:
    if "$ref" in raw:
        return {"$ref": _name(raw["$ref"].rpartition("/")[2])}
    if "anyOf" in raw:
        options = [option for option in raw["anyOf"] if option.get("type") != "null"]
        if len(options) == 1:
            return _type(at, options[0])
        return {"x-kubernetes-int-or-string": True}
    match raw["type"]:
        case "array":
            return {"type": "array", "items": _type(at, raw["items"])}
        case "object" if "additionalProperties" in raw:
            return {
                "type": "object",
                "additionalProperties": _type(at, raw["additionalProperties"]),
            }
        case "integer":
            wide = at[1] in _INT64 or at in _INT64_OF
            return {"type": "integer", "format": "int64" if wide else "int32"}
        case "string" if at in _QUANTITIES:
            return dict(_QUANTITY)
        case kind:
            return {"type": kind}


def _references(schema: Object) -> list[str]:
    names = [schema["$ref"]] if "$ref" in schema else []
    for value in schema.values():
        if isinstance(value, dict):
            names.extend(_references(value))
    return names


def render() -> str:
    """Return the text of the file."""
    return json.dumps(definitions(), indent=1) + "\n"


def main() -> None:
    """Write the file."""
    Path(str(DATA)).write_text(render())


if __name__ == "__main__":
    main()
