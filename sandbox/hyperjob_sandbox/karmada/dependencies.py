"""The dependencies distributor: what the pods of a vcjob name follows it into its clusters.

It acts on bindings with `propagateDeps`, and only where a customization defines the hook
`dependencyInterpretation`: Karmada has none of its own for a vcjob.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from uuid import uuid4

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name, safe_hash
from hyperjob_core.kube.resources import VCJOBS, key_of
from hyperjob_sandbox.controller import Controller, changed_besides_status
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import carrier, new_binding
from hyperjob_sandbox.karmada.caches import BY_DEPENDENCY, Caches, dependency_items
from hyperjob_sandbox.karmada.interpreter import is_vcjob
from hyperjob_sandbox.member.caches import DEPENDENCIES
from hyperjob_sandbox.objects import is_going, labels_of


def attached(dependency: Object, needed_by: Sequence[Object]) -> Object:
    """Build the binding that carries a dependency to the clusters of the bindings that need it."""
    spec: Object = {}
    labels: dict[str, str] = {}
    for binding in sorted(needed_by, key=key_of):
        kept = {field: binding["metadata"][field] for field in ("namespace", "name")}
        if clusters := binding["spec"].get("clusters"):
            kept["clusters"] = deepcopy(clusters)
        spec.setdefault("requiredBy", []).append(kept)
        if resolution := binding["spec"].get("conflictResolution"):
            spec["conflictResolution"] = resolution
        label = names.DEPENDED_BY + safe_hash(key_of(binding))
        labels[label] = labels_of(binding)[names.BINDING_ID]
    carrying = carrier(dependency, spec=spec)
    carrying["metadata"]["labels"] = labels
    return carrying


def sync_attached(live: Object, desired: Object) -> Object:
    """Return a live attached binding that is needed by those that the desired one names.

    Karmada takes out of `requiredBy` only what it has marked with a label: another client's entry
    stays.
    """
    found = deepcopy(live)
    kept = {key: each for key, each in labels_of(live).items() if names.DEPENDED_BY not in key}
    found["metadata"]["labels"] = kept | desired["metadata"]["labels"]
    found["spec"]["resource"] |= desired["spec"]["resource"]
    others = [
        each
        for each in found["spec"].pop("requiredBy", ())
        if names.DEPENDED_BY + safe_hash(f"{each['namespace']}/{each['name']}")
        not in labels_of(live)
    ]
    if needed := [*others, *desired["spec"].get("requiredBy", ())]:
        found["spec"]["requiredBy"] = needed
    return found


class DependenciesDistributor:
    """One controller over what vcjobs name, by `KIND|key`."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("dependencies-distributor", self._sync, workers=4)
        self.controller.watch(caches[VCJOBS], when=changed_besides_status, keys=dependency_items)
        self.controller.watch(
            caches.bindings[0], when=changed_besides_status, keys=self._of_binding
        )
        self.controller.watch(caches.interpreters, keys=self._of_all)
        for resource in DEPENDENCIES:
            self.controller.watch(
                caches[resource],
                when=changed_besides_status,
                keys=lambda each: (names.item_of(each),),
            )

    def _of_binding(self, binding: Object) -> Iterable[str]:
        reference: Object = binding["spec"]["resource"]
        job = self._caches.template(reference) if is_vcjob(reference) else None
        return () if job is None else dependency_items(job)

    def _of_all(self, _: Object) -> Iterable[str]:
        return [item for job in self._caches[VCJOBS].items() for item in dependency_items(job)]

    async def _sync(self, item: str) -> None:
        dependency = self._caches.template_of(item)
        if dependency is None or is_going(dependency):
            return
        needed_by = self._needed_by(item)
        carrying = attached(dependency, needed_by)
        if self._caches.live(carrying) is not None:
            await self._caches.ensure(carrying, sync_attached)
        elif needed_by:
            await self._caches.create(new_binding(carrying, permanent_id=str(uuid4())))

    def _needed_by(self, item: str) -> list[Object]:
        if "dependencyInterpretation" not in self._caches.hooks():
            return []
        jobs = [each["metadata"] for each in self._caches[VCJOBS].by_index(BY_DEPENDENCY, item)]
        found = [
            self._caches.binding(f"{meta['namespace']}/{binding_name(meta['name'])}")
            for meta in jobs
        ]
        return [
            each
            for each in found
            if each and each["spec"].get("propagateDeps") and not is_going(each)
        ]
