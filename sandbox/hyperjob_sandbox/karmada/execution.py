"""The execution controller: puts the manifest of a Work into a member, and reports its status."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import works_namespace
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.errors import AlreadyExists, Conflict, KubeError
from hyperjob_core.kube.resources import NAMESPACES, key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import (
    Controller,
    Informers,
    RetryError,
    changed_besides_status,
    generation_changed,
)
from hyperjob_sandbox.karmada import names, works
from hyperjob_sandbox.karmada.caches import TEMPLATES, Caches
from hyperjob_sandbox.objects import (
    State,
    annotations_of,
    is_going,
    is_ready,
    labels_of,
    merge_marks,
    with_conditions,
)

_GATHER_SECONDS: Final = 0.2
"""Status changes of a member object that come this close together become one write."""


class ExecutionController:
    """The Works of one cluster: applying them, and reflecting the status of what they made."""

    def __init__(self, cluster: str, *, caches: Caches, member: Informers) -> None:
        self._cluster = cluster
        self._space = works_namespace(cluster)
        self._caches = caches
        self._member = member
        self.apply = Controller(f"execution-controller/{cluster}", self._sync, workers=4)
        self.status = Controller(f"work-status-controller/{cluster}", self._reflect, workers=4)
        self.apply.watch(caches.works, when=generation_changed, keys=self._own)
        for controller in (self.apply, self.status):
            controller.watch(caches.clusters, when=_comes_back, keys=self._all_of)
        for resource in (*TEMPLATES, NAMESPACES):
            member[resource].add_handler(self._on_object)

    def _own(self, work: Object) -> list[str]:
        return [key_of(work)] if work["metadata"]["namespace"] == self._space else []

    def _all_of(self, cluster: Object) -> list[str]:
        if key_of(cluster) != self._cluster:
            return []
        return [key for work in self._caches.works.items() for key in self._own(work)]

    def _on_object(self, event: EventType, old: Object | None, new: Object | None) -> None:
        key = _work_key(new or old or {})
        if key is None or not key.startswith(f"{self._space}/"):
            return
        self.status.add(key, after=_GATHER_SECONDS)
        if event is not EventType.ADDED and changed_besides_status(old, new):
            self.apply.add(key)

    async def _sync(self, key: str) -> None:
        work = self._caches.works.get(key)
        if work is None:
            return
        if is_going(work):
            await self._end(work)
            return
        if work["spec"].get("suspendDispatching"):
            await self._set_conditions(work, Dispatching=works.SUSPENDED)
            return
        if not self._ready():
            await self._set_conditions(work, Dispatching=works.DISPATCHING)
            raise RetryError(f"cluster({self._cluster}) not ready")
        failure: str = ""
        try:
            await self._member.ensure(_manifest(work), self._overwrite, even_going=True)
        except Conflict:
            raise  # the cache lags behind a change in the member
        except KubeError as error:
            failure = error.message
        applied = works.apply_failed(failure) if failure else works.APPLIED
        await self._set_conditions(work, Dispatching=works.DISPATCHING, Applied=applied)
        if failure:
            raise RetryError(failure)

    def _overwrite(self, observed: Object, manifest: Object) -> Object:
        """Return what becomes of a member's object; the one observed where nothing has to."""
        overwrites = annotations_of(manifest).get(names.CONFLICT_RESOLUTION) == "overwrite"
        if not _is_managed(observed) and not overwrites:
            meta: Object = manifest["metadata"]
            message = (
                f"resource(kind={manifest['kind']}, {meta.get('namespace', '')}/{meta['name']}) "
                f"already exists in the cluster {self._cluster} and the "
                f"{names.CONFLICT_RESOLUTION} strategy value is empty, "
                "Karmada will not manage this resource"
            )
            raise AlreadyExists({"message": message})
        desired = retain(manifest, observed)
        return observed if works.prune(desired) == works.prune(observed) else desired

    async def _end(self, work: Object) -> None:
        """Delete what a deleted Work made, then let go of the Work."""
        if not self._ready():
            raise RetryError(f"cluster({self._cluster}) not ready")
        observed = self._member.live(_manifest(work))
        if observed is not None and _is_managed(observed):
            await self._member.delete(observed)
        await self._caches.let_go(work, names.WORK_FINALIZER)

    async def _reflect(self, key: str) -> None:
        work = self._caches.works.get(key)
        if work is None or is_going(work) or not self._ready():
            return  # a cluster that comes back puts every Work here again
        obj = self._member.live(_manifest(work))
        if obj is None and not work["spec"].get("suspendDispatching"):
            self.apply.add(key)  # it was deleted in the member: make it again
        if obj is not None and _work_key(obj) == key:
            told = {"manifestStatuses": [works.manifest_status(obj, ordinal=0)]}
            await self._caches.set_status(work, {**(work.get("status") or {}), **told})

    async def _set_conditions(self, work: Object, **states: State) -> None:
        status = with_conditions(work.get("status"), now=wire_now(), **states)
        await self._caches.set_status(work, status)

    def _ready(self) -> bool:
        return is_ready(self._caches.clusters.get(self._cluster))


def retain(desired: Object, observed: Object) -> Object:
    """Return the desired object with what the member owns of the observed one.

    Labels and annotations that were propagated once and are wanted no more go.
    """
    meta, seen = dict(desired["metadata"]), observed["metadata"]
    kept: Object = {}
    records = {"labels": names.MANAGED_LABELS, "annotations": names.MANAGED_ANNOTATIONS}
    for field, record in records.items():
        gone = annotations_of(observed).get(record, "").split(",")
        present: Object = seen.get(field) or {}
        kept[field] = {key: value for key, value in present.items() if key not in gone}
    merge_marks(kept, meta)
    for field in ("resourceVersion", "finalizers", "ownerReferences"):
        if seen.get(field):
            kept[field] = seen[field]
    return {**desired, "metadata": {**meta, **kept}}


def _manifest(work: Object) -> Object:
    return dict(work["spec"]["workload"]["manifests"][0])


def _comes_back(old: Object | None, new: Object | None) -> bool:
    return is_ready(new) and not is_ready(old)


def _is_managed(obj: Object) -> bool:
    return labels_of(obj).get(names.MANAGED) == "true"


def _work_key(obj: Object) -> str | None:
    marks = annotations_of(obj)
    namespace, name = marks.get(names.WORK_NAMESPACE), marks.get(names.WORK_NAME)
    return f"{namespace}/{name}" if _is_managed(obj) and namespace and name else None
