"""The dependencies distributor: what the pods of a vcjob name follows it into its clusters.

It acts on bindings with `propagateDeps`, and only where a customization defines the hook
`dependencyInterpretation`: Karmada has none of its own for a vcjob. It must never delete an
attached binding: that goes with the object that it carries.
"""

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.client import PatchType
from hyperjob.kube.resources import RESOURCE_BINDINGS, VCJOBS, key_of
from hyperjob_sandbox.controller import Controller, changed_besides_status
from hyperjob_sandbox.karmada import dependencies, names
from hyperjob_sandbox.karmada.bindings import new_binding
from hyperjob_sandbox.karmada.caches import BY_DEPENDENCY, BY_NEEDED, DEPENDENCIES, Caches
from hyperjob_sandbox.objects import is_going

_SETTLE_SECONDS: Final = 0.01


class DependenciesDistributor:
    """One controller over the bindings of vcjobs."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("dependencies-distributor", self._sync, workers=4)
        self.controller.watch(
            caches.bindings[0], when=changed_besides_status, keys=_of_job, after=_SETTLE_SECONDS
        )
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
                await self._caches.replace(dependencies.detach(each, key=key))
        for reference in wanted:
            found = self._caches.template(reference)
            if found is None or binding is None:
                continue  # the annotation brings us back when it exists
            attached = dependencies.attached(found, binding)
            if self._caches.live(attached) is None:
                attached = new_binding(attached, permanent_id=str(uuid4()))
            await self._caches.ensure(attached, dependencies.attach)

    def _wanted(self, binding: Object) -> list[Object]:
        job = self._caches.template(binding["spec"]["resource"])
        if not binding["spec"].get("propagateDeps") or job is None:
            return []
        hooked = "dependencyInterpretation" in self._caches.hooks()
        return dependencies.dependencies_of(job) if hooked else []

    async def _record(self, binding: Object, references: list[Object]) -> None:
        """Keep them in the binding: a dependency that appears later finds it by them."""
        if references == dependencies.recorded(binding):
            return
        meta: Object = binding["metadata"]
        await self._caches.kube.patch(
            RESOURCE_BINDINGS,
            meta["name"],
            {"metadata": {"annotations": {names.DEPENDENCIES: dependencies.record(references)}}},
            kind=PatchType.MERGE,
            namespace=meta["namespace"],
        )


def _of_job(binding: Object) -> Iterable[str]:
    reference = binding["spec"]["resource"]
    if (reference["apiVersion"], reference["kind"]) == (VCJOBS.api_version, VCJOBS.kind):
        yield key_of(binding)
