"""The dependencies distributor: what the pods of a vcjob name follows it into its clusters.

It acts on bindings with `propagateDeps`, and only where a customization defines the hook
`dependencyInterpretation`: Karmada has none of its own for a vcjob. An attached binding belongs to
a ConfigMap, a Secret, a claim or a ServiceAccount; its `spec.requiredBy` holds the clusters of the
vcjobs that need it. The distributor never touches the clusters that a scheduler chose, and never
deletes an attached binding: it goes with the object that it carries.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Final
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.controller import Controller, changed_besides_status
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import carrier, new_binding, record, recorded
from hyperjob_sandbox.karmada.caches import BY_DEPENDENCY, BY_NEEDED, Caches
from hyperjob_sandbox.karmada.interpreter import is_vcjob
from hyperjob_sandbox.member.caches import DEPENDENCIES
from hyperjob_sandbox.objects import is_going, labels_of, merge_marks

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
    parts = ("initContainers", "containers", "volumes")
    yield from _named([spec.get(part) for part in parts])


def _named(value: object) -> Iterator[tuple[str, str]]:
    """Walk through a part of a pod's spec to every field that names an object."""
    for each in value if isinstance(value, list) else ():
        yield from _named(each)
    for field, part in value.items() if isinstance(value, dict) else ():
        if field in _SOURCES and isinstance(part, dict):
            key, kind = _SOURCES[field]
            if name := part.get(key) or part.get("name"):  # a projected Secret has a name
                yield kind, name
        else:
            yield from _named(part)


def _key(needed_by: Object) -> str:
    return key_of({"metadata": needed_by})


def _label(key: str) -> str:
    return f"{names.DEPENDED_BY}{names.safe_hash(key)}"


class DependenciesDistributor:
    """One controller over the bindings of vcjobs."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("dependencies-distributor", self._sync, workers=4)
        self.controller.watch(caches.bindings[0], when=changed_besides_status, keys=_of_job)
        self.controller.watch(caches.interpreters, keys=self._of_all)
        for resource in DEPENDENCIES:
            self.controller.watch(
                caches[resource], when=changed_besides_status, keys=self._that_name
            )

    def _of_all(self, _: Object) -> Iterable[str]:
        return [key for binding in self._caches.bindings[0].items() for key in _of_job(binding)]

    def _that_name(self, dependency: Object) -> Iterable[str]:
        where = names.item_of({"kind": dependency["kind"], **dependency["metadata"]})
        return map(key_of, self._caches.bindings_by(BY_DEPENDENCY, where))

    async def _sync(self, key: str) -> None:
        binding = self._caches.binding(key)
        wanted: list[Object] = []
        if binding is not None and not is_going(binding):
            wanted = self._wanted(binding)
            await self._record(binding, wanted)
        needed = {names.item_of(each) for each in wanted}
        for each in self._caches.bindings_by(BY_NEEDED, key):
            if names.item_of(each["spec"]["resource"]) not in needed:
                await self._caches.replace(detach(each, key=key))
        for reference in wanted:
            found = self._caches.template(reference)
            if found is None or binding is None:
                continue  # the annotation brings us back when it exists
            carrying = attached(found, binding)
            if self._caches.live(carrying) is None:
                carrying = new_binding(carrying, permanent_id=str(uuid4()))
            await self._caches.ensure(carrying, attach)

    def _wanted(self, binding: Object) -> list[Object]:
        job = self._caches.template(binding["spec"]["resource"])
        if not binding["spec"].get("propagateDeps") or job is None:
            return []
        hooked = "dependencyInterpretation" in self._caches.hooks()
        return dependencies_of(job) if hooked else []

    async def _record(self, binding: Object, references: list[Object]) -> None:
        """Keep them in the binding: a dependency that appears later finds it by them."""
        if references == recorded(binding):
            return
        annotations = {names.DEPENDENCIES: record(references)}
        await self._caches.patch(binding, {"metadata": {"annotations": annotations}})


def _of_job(binding: Object) -> Iterable[str]:
    if is_vcjob(binding["spec"]["resource"]):
        yield key_of(binding)
