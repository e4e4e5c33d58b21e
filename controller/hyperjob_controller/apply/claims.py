"""The writes that keep the copies of a PersistentVolumeClaim in the clusters that have used it.

Karmada keeps a copy in the clusters of the claim's policy. Without a user's policy that is a
PropagationPolicy of the controller, which the claim owns: Karmada and its garbage collector delete
the copies and the policy with the claim. The policy of a user stays as it is: the ResourceBinding
of the claim then names the clusters, as it names those of dependent workloads.
"""

from hyperjob_controller.caches import Caches
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER, KEEPS_CLAIM, LABEL_KEEPS_CLAIM
from hyperjob_core.api.wire import at, mapping, objects, string, string_map
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, Invalid, NotFound
from hyperjob_core.kube.resources import (
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    SERVICE_EXPORTS,
    Resource,
)
from hyperjob_engine.model.claimcopies import claim_policy, claim_policy_name, parse_claim
from hyperjob_engine.model.parse import controller_of, pinned_clusters
from hyperjob_engine.model.planned import KeepClaim


class Claims:
    """Adds clusters to the policy or to the ResourceBinding of a claim, and removes none."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches

    async def keep(self, namespace: str, action: KeepClaim) -> None:
        """Have Karmada keep the copies in the clusters of the action.

        Raises Conflict if another writer was faster, and Invalid if the policy is a user's.
        """
        name = claim_policy_name(action.name)  # the ResourceBinding has the same name
        if action.by_user:
            await self._require(namespace, name, action)
            return
        found = await _find(self._kube, PROPAGATION_POLICIES, namespace, name)
        wanted = claim_policy(
            namespace, action.name, uid=action.uid, clusters=list(action.clusters)
        )
        if found is None:
            await self._kube.create(PROPAGATION_POLICIES, wanted)
            return
        metadata = found["metadata"]
        if LABEL_KEEPS_CLAIM not in string_map(metadata.get("labels")):
            raise Invalid(
                {
                    "reason": "Invalid",
                    "message": f"PropagationPolicy {name!r} exists and has no label"
                    f" {LABEL_KEEPS_CLAIM}: rename it, or let it propagate the claim to"
                    f" {', '.join(action.clusters)}",
                }
            )
        owners = [string(each.get("uid")) for each in objects(metadata.get("ownerReferences"))]
        before = pinned_clusters(at(found, "spec", "placement"))
        if owners != [action.uid]:
            before = ()  # the policy of a deleted claim of this name: its copies are gone
        if owners == [action.uid] and set(action.clusters) <= set(before):
            return  # Karmada's scheduler follows
        clusters = list(dict.fromkeys((*before, *action.clusters)))
        wanted = claim_policy(namespace, action.name, uid=action.uid, clusters=clusters)
        body: Object = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "ownerReferences": wanted["metadata"]["ownerReferences"],
            },
            "spec": {"placement": wanted["spec"]["placement"]},
        }
        await self._merge(PROPAGATION_POLICIES, namespace, name, body)

    async def _require(self, namespace: str, name: str, action: KeepClaim) -> None:
        """Name the clusters in the ResourceBinding of a claim that a user's policy propagates."""
        found = await _find(self._kube, RESOURCE_BINDINGS, namespace, name)
        if found is None:
            return  # Karmada has not created it again yet: the next pass sees it
        required = objects(at(found, "spec", "requiredBy"))
        others = [each for each in required if each.get("name") != KEEPS_CLAIM]
        own = [each for each in required if each.get("name") == KEEPS_CLAIM]
        before = [
            string(each.get("name")) for part in own for each in objects(part.get("clusters"))
        ]
        if set(action.clusters) <= {*before, *parse_claim(found).kept}:
            return
        clusters = [{"name": each} for each in dict.fromkeys((*before, *action.clusters))]
        keeper = {"namespace": namespace, "name": KEEPS_CLAIM, "clusters": clusters}
        body: Object = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "spec": {"requiredBy": [*others, keeper]},
        }
        await self._merge(RESOURCE_BINDINGS, namespace, name, body)

    async def _merge(self, resource: Resource, namespace: str, name: str, body: Object) -> None:
        answer = await self._kube.patch(
            resource,
            name,
            body,
            kind=PatchType.MERGE,
            namespace=namespace,
            field_manager=FIELD_MANAGER,
        )
        self._caches.note(resource, answer)


class Exports:
    """Writes ServiceExports."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def create(self, export: Object) -> None:
        """Create a ServiceExport if none of its name exists.

        Raises AlreadyExists while the ServiceExport of a deleted HyperJob of this name exists.
        """
        try:
            await self._kube.create(SERVICE_EXPORTS, export)
        except AlreadyExists:
            found = await self._find(export)
            if found is None or _passes(found, export):
                raise
        except NotFound as error:
            text = (
                f"{error.message} (is the kind {SERVICE_EXPORTS.kind} of {SERVICE_EXPORTS.group}"
                " installed? plugin svc with --export=false does without)"
            )
            raise NotFound({**error.status, "message": text}, error.request) from error

    async def delete(self, export: Object) -> None:
        """Delete the ServiceExport of a deleted sub-job, unless another client created it."""
        found = await self._find(export)
        if found is None or _controller(found) != _controller(export):
            return
        metadata = found["metadata"]
        try:
            await self._kube.delete(
                SERVICE_EXPORTS,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                propagation="Background",
            )
        except NotFound:
            return

    async def _find(self, export: Object) -> Object | None:
        metadata = export["metadata"]
        return await _find(self._kube, SERVICE_EXPORTS, metadata["namespace"], metadata["name"])


async def _find(kube: Kube, resource: Resource, namespace: str, name: str) -> Object | None:
    try:
        return await kube.get(resource, name, namespace=namespace)
    except NotFound:
        return None


def _passes(found: Object, export: Object) -> bool:
    """Return whether an existing ServiceExport is being deleted, or has a deleted owner."""
    if mapping(found.get("metadata")).get("deletionTimestamp") is not None:
        return True
    holder = _controller(found)
    return bool(holder) and holder != _controller(export)


def _controller(export: Object) -> str:
    return string(controller_of(mapping(export.get("metadata"))).get("uid"))
