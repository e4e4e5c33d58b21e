"""What must follow a vcjob into its cluster, and the bindings that carry it there.

Pure: names and bindings in, bindings out. An attached binding belongs to a ConfigMap, a Secret, a
claim or a ServiceAccount; `spec.requiredBy` holds the clusters of the vcjobs that need it. It must
never touch the clusters that a scheduler chose.
"""

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import carrier
from hyperjob_sandbox.objects import annotations_of, labels_of, merge_marks

_SOURCES: Final = {
    # field of a container, a variable or a volume: the field with the name, and the kind
    "configMapRef": ("name", "ConfigMap"),
    "secretRef": ("name", "Secret"),
    "configMapKeyRef": ("name", "ConfigMap"),
    "secretKeyRef": ("name", "Secret"),
    "configMap": ("name", "ConfigMap"),
    "secret": ("secretName", "Secret"),
    "persistentVolumeClaim": ("claimName", "PersistentVolumeClaim"),
}


def dependencies_of(job: Object) -> list[Object]:
    """Return references to what the pods of a vcjob name, each once, in their order."""
    found = [
        reference
        for task in job["spec"].get("tasks") or ()
        for reference in _of_pod((task.get("template") or {}).get("spec") or {})
    ]
    found += [
        ("PersistentVolumeClaim", volume["volumeClaimName"])
        for volume in job["spec"].get("volumes") or ()
        if volume.get("volumeClaimName") and volume.get("volumeClaim") is None
    ]
    namespace = job["metadata"]["namespace"]
    return [
        {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
        for kind, name in dict.fromkeys(found)
    ]


def recorded(binding: Object) -> list[Object]:
    """Return the references that a binding's annotation records; nothing where it is not JSON."""
    text = annotations_of(binding).get(names.DEPENDENCIES)
    try:
        found: list[Object] = json.loads(text) if text else []
    except ValueError:
        return []
    return found


def record(references: Iterable[Object]) -> str:
    """Return the value of that annotation."""
    return json.dumps(list(references), separators=(",", ":"))


def attached(dependency: Object, needed_by: Object) -> Object:
    """Build the binding that carries a dependency to the clusters of the binding that needs it."""
    meta, needed = needed_by["metadata"], needed_by["spec"]
    snapshot: Object = {"namespace": meta["namespace"], "name": meta["name"]}
    if needed.get("clusters"):
        snapshot["clusters"] = deepcopy(needed["clusters"])
    spec: Object = {"requiredBy": [snapshot]}
    if needed.get("conflictResolution"):
        spec["conflictResolution"] = needed["conflictResolution"]
    binding = carrier(dependency, spec=spec)
    binding["metadata"]["labels"] = {
        _label(key_of(needed_by)): labels_of(needed_by)[names.BINDING_ID]
    }
    return binding


def attach(live: Object, wanted: Object) -> Object:
    """Return a live attached binding that carries the wanted one's dependency there as well."""
    found = deepcopy(live)
    merge_marks(found["metadata"], wanted["metadata"])
    spec = found["spec"]
    spec["resource"] = {**spec["resource"], **wanted["spec"]["resource"]}
    needed = {_key(each): each for each in spec.get("requiredBy") or ()}
    needed |= {_key(each): each for each in wanted["spec"]["requiredBy"]}
    spec["requiredBy"] = [needed[key] for key in sorted(needed)]
    return found


def detach(live: Object, *, key: str) -> Object:
    """Return a live attached binding that the binding of this key needs no more."""
    found = deepcopy(live)
    labels_of(found).pop(_label(key), None)
    left = [each for each in found["spec"].pop("requiredBy", None) or () if _key(each) != key]
    if left:
        found["spec"]["requiredBy"] = left
    return found


def _of_pod(spec: Object) -> Iterator[tuple[str, str]]:
    account = spec.get("serviceAccountName")
    if account and account != "default":
        yield "ServiceAccount", account
    for each in spec.get("imagePullSecrets") or ():
        yield "Secret", each["name"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for item in container.get("envFrom") or ():
            yield from _of_source(item)
        for item in container.get("env") or ():
            yield from _of_source(item.get("valueFrom") or {})
    for volume in spec.get("volumes") or ():
        yield from _of_source(volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _of_source(source)


def _of_source(source: Object) -> Iterator[tuple[str, str]]:
    for field, (key, kind) in _SOURCES.items():
        named = source.get(field) or {}
        name = named.get(key) or named.get("name")  # a projected Secret has a name
        if name:
            yield kind, name


def _key(needed_by: Object) -> str:
    return key_of({"metadata": needed_by})


def _label(key: str) -> str:
    return f"{names.DEPENDED_BY}{names.safe_hash(key)}"
