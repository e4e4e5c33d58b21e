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
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import API_VERSION

_IN_VOLUMES: Final = (
    ("configMap", "name", "ConfigMap"),
    ("secret", "secretName", "Secret"),
    ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
)


def dependencies_of(job: Object) -> list[Object]:
    """Return references to what the pods of a vcjob name, each once, in their order."""
    namespace = job["metadata"]["namespace"]
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
    return [
        {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
        for kind, name in dict.fromkeys(found)
    ]


def recorded(binding: Object) -> list[Object]:
    """Return the references that a binding's annotation records; nothing where it is not JSON."""
    text = (binding["metadata"].get("annotations") or {}).get(names.DEPENDENCIES)
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
    meta: Object = dependency["metadata"]
    reference = {field: dependency[field] for field in ("apiVersion", "kind")} | {
        field: meta[field] for field in ("name", "namespace", "resourceVersion", "uid")
    }
    spec: Object = {"resource": reference, "requiredBy": [_snapshot(needed_by)]}
    if needed_by["spec"].get("conflictResolution"):
        spec["conflictResolution"] = needed_by["spec"]["conflictResolution"]
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceBinding",
        "metadata": {
            "name": names.binding_name(dependency["kind"], meta["name"]),
            "namespace": meta["namespace"],
            "labels": {_label(needed_by): needed_by["metadata"]["labels"][names.BINDING_ID]},
            "finalizers": [names.BINDING_FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": dependency["apiVersion"],
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": dependency["kind"],
                    "name": meta["name"],
                    "uid": meta["uid"],
                }
            ],
        },
        "spec": spec,
    }


def attach(live: Object, wanted: Object) -> Object:
    """Return a live attached binding that carries the wanted one's dependency there as well."""
    found = deepcopy(live)
    found["metadata"]["labels"] = {**(found["metadata"].get("labels") or {})} | wanted["metadata"][
        "labels"
    ]
    spec = found["spec"]
    spec["resource"] = {**spec["resource"], **wanted["spec"]["resource"]}
    (mine,) = wanted["spec"]["requiredBy"]
    others = [each for each in spec.get("requiredBy") or () if not _same(each, mine)]
    spec["requiredBy"] = sorted([*others, mine], key=lambda each: (each["namespace"], each["name"]))
    return found


def detach(live: Object, *, namespace: str, name: str) -> Object:
    """Return a live attached binding that the binding of this name needs no more."""
    found = deepcopy(live)
    mine = {"namespace": namespace, "name": name}
    (found["metadata"].get("labels") or {}).pop(_label_of(namespace, name), None)
    left = [each for each in found["spec"].get("requiredBy") or () if not _same(each, mine)]
    if left:
        found["spec"]["requiredBy"] = left
    else:
        found["spec"].pop("requiredBy", None)
    return found


def reference_id(reference: Object) -> str:
    """Return `KIND|namespace/name` of a reference."""
    return f"{reference['kind']}|{reference['namespace']}/{reference['name']}"


def _of_pod(spec: Object) -> Iterator[tuple[str, str]]:
    account = spec.get("serviceAccountName")
    if account and account != "default":
        yield "ServiceAccount", account
    for each in spec.get("imagePullSecrets") or ():
        yield "Secret", each["name"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume)


def _of_container(container: Object) -> Iterator[tuple[str, str]]:
    for item in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if item.get(field):
                yield kind, item[field]["name"]
    for item in container.get("env") or ():
        source = item.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if source.get(field):
                yield kind, source[field]["name"]


def _of_volume(volume: Object) -> Iterator[tuple[str, str]]:
    for field, key, kind in _IN_VOLUMES:
        if volume.get(field) and volume[field].get(key):
            yield kind, volume[field][key]
    for source in (volume.get("projected") or {}).get("sources") or ():
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            if source.get(field):
                yield kind, source[field]["name"]


def _snapshot(binding: Object) -> Object:
    found: Object = {field: binding["metadata"][field] for field in ("namespace", "name")}
    if binding["spec"].get("clusters"):
        found["clusters"] = deepcopy(binding["spec"]["clusters"])
    return found


def _same(one: Object, other: Object) -> bool:
    return (one["namespace"], one["name"]) == (other["namespace"], other["name"])


def _label(binding: Object) -> str:
    return _label_of(binding["metadata"]["namespace"], binding["metadata"]["name"])


def _label_of(namespace: str, name: str) -> str:
    return f"{names.DEPENDED_BY}{names.safe_hash(f'{namespace}/{name}')}"
