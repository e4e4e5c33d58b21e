"""The dependencies distributor: what the pods of a vcjob name follows it into its clusters.

It acts on bindings with `propagateDeps`, and only where a customization defines the hook
`dependencyInterpretation`: Karmada has none of its own for a vcjob. It must never delete an
attached binding: that goes with the object that it carries.
"""

from typing import Final
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube, PatchType
from hyperjob.kube.errors import AlreadyExists, NotFound
from hyperjob.kube.informer import Handler
from hyperjob.kube.resources import RESOURCE_BINDINGS, VCJOBS, Resource, key_of
from hyperjob_sandbox.controller import Controller, RetryError, changed_besides_status
from hyperjob_sandbox.karmada import dependencies, names
from hyperjob_sandbox.karmada.bindings import new_binding
from hyperjob_sandbox.karmada.caches import (
    BY_DEPENDENCY,
    BY_NEEDED,
    DEPENDENCIES,
    Caches,
    reference_key,
    template_resource,
)

_SETTLE_SECONDS: Final = 0.01


class DependenciesDistributor:
    """One controller over the bindings of vcjobs."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches
        self.controller = Controller("dependencies-distributor", self._sync, workers=4)
        caches.bindings.add_handler(self._on_binding)
        caches.interpreters.add_handler(self._on_interpreter)
        for resource in DEPENDENCIES:
            caches[resource].add_handler(self._on_dependency(resource))

    def _on_binding(self, event: EventType, old: Object | None, new: Object | None) -> None:
        seen = new or old
        assert seen is not None
        if _is_of_job(seen) and changed_besides_status(event, old, new):
            self.controller.add(key_of(seen), after=_SETTLE_SECONDS)

    def _on_interpreter(self, event: EventType, old: Object | None, new: Object | None) -> None:
        for binding in self._caches.bindings.items():
            if _is_of_job(binding):
                self.controller.add(key_of(binding))

    def _on_dependency(self, resource: Resource) -> Handler:
        def handle(event: EventType, old: Object | None, new: Object | None) -> None:
            if new is not None and changed_besides_status(event, old, new):
                where = f"{resource.kind}|{key_of(new)}"
                for binding in self._caches.bindings.by_index(BY_DEPENDENCY, where):
                    self.controller.add(key_of(binding))

        return handle

    async def _sync(self, key: str) -> None:
        binding = self._caches.bindings.get(key)
        wanted: list[Object] = []
        if binding is not None and not binding["metadata"].get("deletionTimestamp"):
            wanted = self._wanted(binding)
            await self._record(binding, wanted)
        await self._detach(key, {dependencies.reference_id(each) for each in wanted})
        for reference in wanted:
            assert binding is not None
            await self._attach(binding, reference)

    def _wanted(self, binding: Object) -> list[Object]:
        if not binding["spec"].get("propagateDeps"):
            return []
        job = self._caches[VCJOBS].get(reference_key(binding["spec"]["resource"]))
        if job is None or "dependencyInterpretation" not in self._caches.hooks():
            return []
        return dependencies.dependencies_of(job)

    async def _record(self, binding: Object, references: list[Object]) -> None:
        """Keep them in the binding: a dependency that appears later finds it by them."""
        if references == dependencies.recorded(binding):
            return
        meta: Object = binding["metadata"]
        await self._kube.patch(
            RESOURCE_BINDINGS,
            meta["name"],
            {"metadata": {"annotations": {names.DEPENDENCIES: dependencies.record(references)}}},
            kind=PatchType.MERGE,
            namespace=meta["namespace"],
        )

    async def _detach(self, key: str, wanted: set[str]) -> None:
        namespace, _, name = key.partition("/")
        for each in self._caches.bindings.by_index(BY_NEEDED, key):
            if dependencies.reference_id(each["spec"]["resource"]) not in wanted:
                await self._replace(dependencies.detach(each, namespace=namespace, name=name))

    async def _attach(self, binding: Object, reference: Object) -> None:
        resource = template_resource(reference)
        assert resource is not None
        found = self._caches[resource].get(reference_key(reference))
        if found is None:
            return  # the annotation brings us back when it exists
        wanted = dependencies.attached(found, binding)
        live = self._caches.bindings.get(key_of(wanted))
        if live is None:
            try:
                await self._kube.create(
                    RESOURCE_BINDINGS, new_binding(wanted, permanent_id=str(uuid4()))
                )
            except AlreadyExists as error:
                raise RetryError("the cache does not hold the new binding yet") from error
            return
        if live["metadata"].get("deletionTimestamp"):
            raise RetryError(f"binding {key_of(live)} is being deleted")
        synced = dependencies.attach(live, wanted)
        if synced != live:
            await self._replace(synced)

    async def _replace(self, binding: Object) -> None:
        try:
            await self._kube.replace(RESOURCE_BINDINGS, binding)
        except NotFound:
            return


def _is_of_job(binding: Object) -> bool:
    reference = binding["spec"]["resource"]
    return (reference["apiVersion"], reference["kind"]) == (VCJOBS.api_version, VCJOBS.kind)
