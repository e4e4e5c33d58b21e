"""The execution controller: puts the manifests of Works into a member, and reports what is there.

One for each cluster. It must never touch an object of the member that Karmada does not manage,
unless the Work says to overwrite it.
"""

from copy import deepcopy

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import Conflict, KubeError, NotFound
from hyperjob.kube.events import EventRecorder
from hyperjob.kube.resources import (
    NAMESPACES,
    WORKS,
    Resource,
    key_of,
)
from hyperjob_sandbox.controller import (
    Controller,
    Informers,
    RetryError,
    changed_besides_status,
    generation_changed,
    wire_now,
)
from hyperjob_sandbox.karmada import names, works
from hyperjob_sandbox.karmada.caches import TEMPLATES, Caches

_DISPATCHED = (*TEMPLATES, NAMESPACES)
_GATHER_SECONDS = 0.2
"""Status changes of a member object that come this close together become one write."""


class ExecutionController:
    """The Works of one cluster: applying them, and reflecting the status of what they made."""

    def __init__(
        self,
        cluster: str,
        *,
        kube: Kube,
        caches: Caches,
        member: Informers,
        recorder: EventRecorder,
    ) -> None:
        self._cluster = cluster
        self._space = names.execution_space(cluster)
        self._kube = kube
        self._caches = caches
        self._member = member
        self._recorder = recorder
        self.apply = Controller(f"execution-controller/{cluster}", self._sync, workers=4)
        self.status = Controller(f"work-status-controller/{cluster}", self._reflect, workers=4)
        caches.works.add_handler(self._on_work)
        caches.clusters.add_handler(self._on_cluster)
        for resource in _DISPATCHED:
            member[resource].add_handler(self._on_object)

    def _on_work(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if (
            new is not None
            and new["metadata"]["namespace"] == self._space
            and generation_changed(event, old, new)
        ):
            self.apply.add(key_of(new))

    def _on_cluster(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is None or new["metadata"]["name"] != self._cluster:
            return
        if _is_ready(new) and not _is_ready(old):
            for work in self._caches.works.items():
                if work["metadata"]["namespace"] == self._space:
                    self.apply.add(key_of(work))
                    self.status.add(key_of(work))

    def _on_object(self, event: EventType, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        key = _work_key(obj)
        if key is None or not key.startswith(f"{self._space}/"):
            return
        self.status.add(key, after=_GATHER_SECONDS)
        if event is not EventType.ADDED and changed_besides_status(event, old, new):
            self.apply.add(key)

    async def _sync(self, key: str) -> None:
        work = self._caches.works.get(key)
        if work is None:
            return
        if work["metadata"].get("deletionTimestamp"):
            await self._end(work)
            return
        if work["spec"].get("suspendDispatching"):
            await self._set_conditions(work, ("Dispatching", works.SUSPENDED))
            return
        if not self._ready():
            await self._set_conditions(work, ("Dispatching", works.DISPATCHING))
            raise RetryError(f"cluster({self._cluster}) not ready")
        manifests: list[Object] = work["spec"]["workload"]["manifests"]
        errors: list[str] = []
        failure: KubeError | None = None
        for manifest in manifests:
            try:
                await self._put(manifest)
            except KubeError as error:
                failure = error
                errors.append(error.message)
            except _ForeignObjectError as error:
                errors.append(str(error))
        if not errors:
            await self._set_conditions(
                work, ("Dispatching", works.DISPATCHING), ("Applied", works.APPLIED)
            )
            return
        if isinstance(failure, Conflict):
            raise failure  # the cache lags behind a change in the member
        state = works.apply_failed(
            errors, succeeded=len(manifests) - len(errors), total=len(manifests)
        )
        await self._set_conditions(work, ("Dispatching", works.DISPATCHING), ("Applied", state))
        note = f"Failed to sync work({key}) to cluster({self._cluster}), err: {errors[0]}"
        self._recorder.event(work, "Warning", "SyncFailed", "Sync", note)
        raise RetryError(errors[0])

    async def _put(self, manifest: Object) -> None:
        resource = _resource_of(manifest)
        observed = self._member[resource].get(key_of(manifest))
        if observed is None:
            await self._member.kube.create(resource, manifest)
            return
        if not _is_managed(observed) and not _may_overwrite(manifest):
            meta: Object = manifest["metadata"]
            where = f"{meta.get('namespace', '')}/{meta['name']}"
            raise _ForeignObjectError(
                f"resource(kind={manifest['kind']}, {where}) already exists in the cluster "
                f"{self._cluster} and the {names.CONFLICT_RESOLUTION} strategy value is empty, "
                "Karmada will not manage this resource"
            )
        desired = retain(manifest, observed)
        if works.prune(desired) != works.prune(observed):
            await self._member.kube.replace(resource, desired)

    async def _end(self, work: Object) -> None:
        """Delete what a deleted Work made, then let go of the Work."""
        if names.WORK_FINALIZER not in (work["metadata"].get("finalizers") or ()):
            return
        if not work["spec"].get("preserveResourcesOnDeletion"):
            if not self._ready():
                raise RetryError(f"cluster({self._cluster}) not ready")
            for manifest in work["spec"]["workload"]["manifests"]:
                await self._remove(manifest)
        ended = deepcopy(work)
        ended["metadata"]["finalizers"].remove(names.WORK_FINALIZER)
        try:
            await self._kube.replace(WORKS, ended)
        except NotFound:
            return

    async def _remove(self, manifest: Object) -> None:
        resource = _resource_of(manifest)
        observed = self._member[resource].get(key_of(manifest))
        if observed is None or not _is_managed(observed):
            return
        meta: Object = observed["metadata"]
        try:
            await self._member.kube.delete(
                resource,
                meta["name"],
                namespace=meta.get("namespace"),
                propagation="Background",
            )
        except NotFound:
            return

    async def _reflect(self, key: str) -> None:
        work = self._caches.works.get(key)
        if work is None or work["metadata"].get("deletionTimestamp"):
            return
        if not self._ready():
            return  # coming back puts every Work here again
        entries: list[Object] = []
        for ordinal, manifest in enumerate(work["spec"]["workload"]["manifests"]):
            obj = self._member[_resource_of(manifest)].get(key_of(manifest))
            if obj is None and not work["spec"].get("suspendDispatching"):
                self.apply.add(key)  # it was deleted in the member: make it again
            if obj is not None and _work_key(obj) == key:
                entries.append(works.manifest_status(obj, ordinal=ordinal))
        status: Object = work.get("status") or {}
        if entries and entries != (status.get("manifestStatuses") or []):
            updated = {**work, "status": {**status, "manifestStatuses": entries}}
            await self._kube.replace(WORKS, updated, subresource="status")

    async def _set_conditions(
        self, work: Object, *states: tuple[str, tuple[str, str, str]]
    ) -> None:
        status: Object = work.get("status") or {}
        old: list[Object] = status.get("conditions") or []
        conditions = old
        for kind, state in states:
            conditions = works.set_condition(conditions, kind, state, now=wire_now())
        if conditions == old:
            return
        updated = {**work, "status": {**status, "conditions": conditions}}
        await self._kube.replace(WORKS, updated, subresource="status")

    def _ready(self) -> bool:
        return _is_ready(self._caches.clusters.get(self._cluster))


class _ForeignObjectError(Exception):
    """The member has an object of this name that Karmada does not manage."""


def retain(desired: Object, observed: Object) -> Object:
    """Return the desired object with what the member owns of the observed one.

    Labels and annotations that were propagated once and are wanted no more go.
    """
    result = deepcopy(desired)
    meta, seen = result["metadata"], observed["metadata"]
    meta["resourceVersion"] = seen["resourceVersion"]
    for field in ("finalizers", "ownerReferences"):
        if seen.get(field):
            meta[field] = seen[field]
    propagated = seen.get("annotations") or {}
    for field, record in (
        ("labels", names.MANAGED_LABELS),
        ("annotations", names.MANAGED_ANNOTATIONS),
    ):
        gone = set((propagated.get(record) or "").split(","))
        kept = {key: value for key, value in (seen.get(field) or {}).items() if key not in gone}
        merged = {**kept, **(meta.get(field) or {})}
        if merged:
            meta[field] = merged
    return result


def _resource_of(manifest: Object) -> Resource:
    for resource in _DISPATCHED:
        if (resource.api_version, resource.kind) == (manifest["apiVersion"], manifest["kind"]):
            return resource
    raise RetryError(f"no member resource for kind {manifest['kind']}")


def _is_managed(obj: Object) -> bool:
    return (obj["metadata"].get("labels") or {}).get(names.MANAGED) == "true"


def _may_overwrite(manifest: Object) -> bool:
    annotations = manifest["metadata"].get("annotations") or {}
    return bool(annotations.get(names.CONFLICT_RESOLUTION) == "overwrite")


def _work_key(obj: Object) -> str | None:
    if not _is_managed(obj):
        return None
    annotations = obj["metadata"].get("annotations") or {}
    namespace, name = annotations.get(names.WORK_NAMESPACE), annotations.get(names.WORK_NAME)
    return f"{namespace}/{name}" if namespace and name else None


def _is_ready(cluster: Object | None) -> bool:
    ready = works.find_condition(cluster, "Ready") if cluster is not None else None
    return ready is not None and ready["status"] == "True"
