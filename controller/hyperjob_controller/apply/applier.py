"""The API requests of a plan's actions, in the plan's order and in parallel across sub-jobs.

The applier takes no decision. If an object already exists, or no longer exists, it updates the
caches, and the next plan decides. An error of one sub-job does not affect the others.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from hyperjob_controller.apply.claims import Claims, Exports
from hyperjob_controller.apply.slots import FairSlots
from hyperjob_controller.caches import Caches
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    ASKED_AGAIN,
    CLAIMED_NAME,
    CLAIMED_NAMESPACE,
    FIELD_MANAGER,
    GATE,
    GATE_OPEN,
    LABEL_CLAIMED,
    LABEL_HYPERJOB,
    binding_name,
    bound_to,
    work_name,
    works_namespace,
)
from hyperjob_core.api.wire import at, objects, string_map
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
    Resource,
)
from hyperjob_engine.model.planned import (
    Action,
    Adopt,
    AskAgain,
    CreateChild,
    DeleteChild,
    DeleteHyperJob,
    DeleteWork,
    KeepClaim,
    Look,
    OpenGate,
    ReleaseQuota,
    ReleaseScheduling,
    Repin,
    Resize,
)

_DELETIONS: Final = (DeleteChild, DeleteHyperJob)
REFUSALS: Final = (Invalid, Forbidden, BadRequest, NotFound)
_TERMINATING: Final = "NamespaceTerminating"
"""The cause in the details of a refusal in a namespace that is being deleted."""
_QUOTA: Final = ("exceeded quota:", "status unknown for quota:")
"""The words of a ResourceQuota whose answer is about other objects, as of Kubernetes 1.36."""


@dataclass(frozen=True, slots=True)
class FailedAction:
    """An action that did not succeed."""

    name: str
    error: KubeError

    @property
    def is_refusal(self) -> bool:
        """Return whether the API server refused the object, and did not fail or ask to wait."""
        return isinstance(self.error, REFUSALS) and not self.is_of_quota

    @property
    def is_of_quota(self) -> bool:
        """Return whether a ResourceQuota of the namespace is full: other objects have used it."""
        message = self.error.message
        return isinstance(self.error, Forbidden) and any(each in message for each in _QUOTA)

    @property
    def is_of_deleted_namespace(self) -> bool:
        """Return whether the namespace is being deleted, or is gone: its HyperJobs end with it."""
        error = self.error
        if isinstance(error, NotFound):
            details = error.status.get("details") or {}
            return details.get("kind") == NAMESPACES.plural
        return any(each.get("reason") == _TERMINATING for each in error.causes)

    @property
    def is_outage(self) -> bool:
        """Return whether an API server that answers has not judged the object itself.

        A webhook may be out of reach (500), the API server has too many requests (429, 503), or a
        ResourceQuota is full (403).
        """
        if self.is_of_quota:
            return True
        if isinstance(self.error, Unavailable):
            return self.error.answered and self.error.http_code == Unavailable.code
        return isinstance(self.error, InternalError | TooManyRequests)

    @property
    def is_reported(self) -> bool:
        """Return whether the next plan reports the failure and waits; others are tried again."""
        return self.is_refusal or self.is_outage


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a plan's actions; `stale`: a cache was behind, and a pass is due at once."""

    done: Sequence[Action]
    failures: Sequence[FailedAction]
    stale: bool


def claimed(job: Object, policy: Object) -> Object:
    """Return a vcjob with the claim of its policy, as Karmada's detector would write it.

    The detector then makes the ResourceBinding at once, without an update of the vcjob before it.
    If it does not know the policy yet, it removes the claim and looks for the policy itself.
    """
    metadata = policy["metadata"]
    given = string_map(metadata.get("labels")).get(LABEL_CLAIMED)
    if not given:
        return job  # Karmada's webhook, which gives a policy this label, was not called
    own = job["metadata"]
    labels = own.get("labels", {}) | {LABEL_CLAIMED: given}
    annotations = own.get("annotations", {}) | {
        CLAIMED_NAMESPACE: metadata["namespace"],
        CLAIMED_NAME: metadata["name"],
    }
    return job | {"metadata": own | {"labels": labels, "annotations": annotations}}


def _release(action: ReleaseQuota | ReleaseScheduling) -> Object:
    """Return the merge patch of a ResourceBinding that frees quota, or lets Karmada schedule it."""
    spec: Object = {"suspension": {"scheduling": False}}
    if isinstance(action, ReleaseQuota):
        spec = {"replicaRequirements": {"resourceRequest": None}}
    return {"metadata": {"uid": action.binding_uid}, "spec": spec}


class _StaleError(Exception):
    """The object differs from the observed one; the cache now has the newer one."""


class Applier:
    """Sends the API requests, `in_flight` at a time, divided fairly among the namespaces."""

    def __init__(self, kube: Kube, caches: Caches, *, in_flight: int = 50) -> None:
        self._kube = kube
        self._caches = caches
        self._claims = Claims(kube, caches)
        self._exports = Exports(kube)
        self._slots = FairSlots(in_flight)

    async def apply(self, namespace: str, actions: Sequence[Action]) -> Result:
        """Send the requests of the actions: of one sub-job in order, deletions after all others."""
        done: list[Action] = []
        failures: list[FailedAction] = []
        stale: list[str] = []

        async def run(batch: Sequence[Action]) -> None:
            for action in batch:
                try:
                    async with self._slots.of(namespace):
                        has_changed = await self._do(namespace, action)
                    if has_changed:
                        done.append(action)
                except (_StaleError, Conflict):
                    stale.append(action.name)
                    return
                except KubeError as error:
                    failures.append(FailedAction(action.name, error))
                    return

        for chosen in (
            [action for action in actions if not isinstance(action, _DELETIONS)],
            [action for action in actions if isinstance(action, _DELETIONS)],
        ):
            batches: dict[str, list[Action]] = {}
            for action in chosen:
                batches.setdefault(action.name, []).append(action)
            async with asyncio.TaskGroup() as group:
                for batch in batches.values():
                    group.create_task(run(batch))
        order = {id(action): position for position, action in enumerate(actions)}
        done.sort(key=lambda action: order[id(action)])
        failures.sort(key=lambda failure: failure.name)
        return Result(done, failures, bool(stale))

    async def _do(self, namespace: str, action: Action) -> bool:
        """Send the requests of one action, in order; raises _StaleError and KubeError.

        False: there was no Work to delete.
        """
        match action:
            case Look():
                if await self._look(VCJOBS, namespace, action.name):
                    raise _StaleError
            case CreateChild():
                if action.export is not None:
                    await self._exports.create(action.export)
                job = action.job
                if action.policy is not None:
                    # The policy would claim another owner's vcjob of this name.
                    if job is not None and await self._is_taken(namespace, action.name):
                        raise _StaleError
                    policy = await self._create(PROPAGATION_POLICIES, action.policy)
                    job = None if job is None else claimed(job, policy)
                if job is not None:
                    await self._create(VCJOBS, job)
            case Repin():
                body = {"metadata": {"uid": action.uid}, "spec": {"placement": action.placement}}
                await self._merge(PROPAGATION_POLICIES, namespace, action.name, body)
            case Adopt():
                kind = VCJOBS if action.kind == "Job" else PROPAGATION_POLICIES
                await self._merge(kind, namespace, action.name, action.patch)
            case Resize():
                mine = {"op": "add", "path": "/metadata/uid", "value": action.uid}
                operations = [mine, *action.operations]
                await self._patch(VCJOBS, namespace, action.name, operations, PatchType.JSON)
            case KeepClaim():
                await self._claims.keep(namespace, action)
            case AskAgain():
                body = {"metadata": {"uid": action.uid, "annotations": {ASKED_AGAIN: action.mark}}}
                await self._merge(VCJOBS, namespace, action.name, body)
            case DeleteWork():
                places = action.clusters
                return any([await self._forget(namespace, action.name, each) for each in places])
            case OpenGate():
                await self._open(namespace, action)
            case ReleaseQuota() | ReleaseScheduling():
                await self._merge(RESOURCE_BINDINGS, namespace, action.binding, _release(action))
            case DeleteChild():
                await self._delete(VCJOBS, namespace, action.name, action.job_uid)
                if action.export is not None:
                    # Before the policy: without it no later pass would delete the sub-job again.
                    await self._exports.delete(action.export)
                await self._delete(PROPAGATION_POLICIES, namespace, action.name, action.policy_uid)
            case DeleteHyperJob():
                await self._delete(HYPERJOBS, namespace, action.name, action.uid)
            case _:
                assert_never(action)
        return True

    async def _create(self, resource: Resource, obj: Object) -> Object:
        """Create an object; raises _StaleError, with the cache up to date, if its name is taken."""
        try:
            created = await self._kube.create(resource, obj)
        except AlreadyExists as error:
            metadata = obj["metadata"]
            await self._look(resource, metadata["namespace"], metadata["name"])
            raise _StaleError from error
        self._caches.note(resource, created)
        return created

    async def _is_taken(self, namespace: str, name: str) -> bool:
        """Return whether another vcjob has the name; read it only if it may exist."""
        if not self._caches.may_exist(f"{namespace}/{name}"):
            return False
        return await self._look(VCJOBS, namespace, name)

    async def _look(self, resource: Resource, namespace: str, name: str) -> bool:
        """Read an object that the caches do not have; return whether it exists."""
        try:
            found = await self._kube.get(resource, name, namespace=namespace)
        except NotFound:
            return False
        self._caches.note(resource, found)
        return True

    async def _merge(self, resource: Resource, namespace: str, name: str, body: Object) -> None:
        await self._patch(resource, namespace, name, body, PatchType.MERGE)

    async def _patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object | list[Object],
        kind: PatchType,
    ) -> None:
        """Patch an object and note the answer; raises _StaleError if it is gone."""
        try:
            answer = await self._kube.patch(
                resource,
                name,
                body,
                kind=kind,
                namespace=namespace,
                field_manager=FIELD_MANAGER,
            )
        except NotFound as error:
            raise _StaleError from error
        self._caches.note(resource, answer)

    async def _open(self, namespace: str, action: OpenGate) -> None:
        """Lift the policy's suspension first: after the gate is open, a suspension is a user's."""
        lifted: Object = {"dispatching": None}
        released = {**lifted, "scheduling": None} if action.release_scheduling else lifted
        for resource, name, uid, suspension in (
            (PROPAGATION_POLICIES, action.name, action.policy_uid, lifted),
            (RESOURCE_BINDINGS, action.binding, action.binding_uid, released),
        ):
            if uid is not None:
                metadata = {"uid": uid, "annotations": {GATE: GATE_OPEN}}
                body = {"metadata": metadata, "spec": {"suspension": suspension}}
                await self._merge(resource, namespace, name, body)

    async def _forget(self, namespace: str, name: str, cluster: str) -> bool:
        """Delete the Work of a sub-job whose ResourceBinding does not exist; return whether."""
        binding, where = binding_name(name), works_namespace(cluster)
        try:
            work = await self._kube.get(WORKS, work_name(name, namespace), namespace=where)
        except NotFound:
            return False
        metadata = work["metadata"]
        if bound_to(work) != (namespace, binding) or metadata.get("deletionTimestamp"):
            return False
        manifests = objects(at(work, "spec", "workload", "manifests"))
        if not any(at(each, "metadata", "labels", LABEL_HYPERJOB) for each in manifests):
            return False
        if await self._look(RESOURCE_BINDINGS, namespace, binding):
            return False
        await self._kube.delete(WORKS, metadata["name"], namespace=where, uid=metadata["uid"])
        return True

    async def _delete(self, resource: Resource, namespace: str, name: str, uid: str | None) -> None:
        """Delete an object of this UID, nothing without one; note what is left of it."""
        if uid is None:
            return
        try:
            answer = await self._kube.delete(
                resource, name, namespace=namespace, uid=uid, propagation="Background"
            )
        except NotFound:
            answer = {"kind": "Status"}
        if answer.get("kind") == resource.kind:
            self._caches.note(resource, answer)
        else:
            self._caches.note_deleted(resource, f"{namespace}/{name}", uid)
