"""PersistentVolumeClaims of sub-jobs, as the ResourceBindings of these claims show them.

Karmada copies a claim to the cluster of a vcjob whose pods name it (`spec.requiredBy`), and deletes
the copy with the last vcjob there that does. To the clusters of a policy (`spec.clusters`) it
copies the claim until the claim itself is deleted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    CLAIM_API_VERSION,
    CLAIM_KIND,
    CLAIMED_NAME,
    CLAIMED_WIDELY_NAME,
    KEEPS_CLAIM,
    LABEL_KEEPS_CLAIM,
    binding_name,
)
from hyperjob_core.api.wire import at, mapping, objects, string, string_map
from hyperjob_core.kube.resources import PERSISTENT_VOLUME_CLAIMS, PROPAGATION_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim in the namespace of a HyperJob.

    `kept` are the clusters whose copy stays without a sub-job, `needed` the clusters in which it is
    used, by the name of the ResourceBinding that needs it. `policy` is the name of the policy that
    propagates the claim; empty: none does.
    """

    name: str
    uid: str
    kept: frozenset[str]
    needed: Mapping[str, frozenset[str]]
    policy: str = ""

    @property
    def is_of_user(self) -> bool:
        """Return whether a policy of a user propagates the claim."""
        return self.policy not in ("", claim_policy_name(self.name))


def is_of_claim(binding: Object) -> bool:
    """Return whether a ResourceBinding is of a PersistentVolumeClaim."""
    resource = at(binding, "spec", "resource")
    return at(resource, "kind") == CLAIM_KIND and at(resource, "apiVersion") == CLAIM_API_VERSION


def users_of(binding: Object) -> Iterator[str]:
    """Yield `namespace/name` of the ResourceBindings that need a claim."""
    for each in objects(at(binding, "spec", "requiredBy")):
        yield f"{string(each.get('namespace'))}/{string(each.get('name'))}"


def parse_claim(binding: Object) -> Claim:
    """Parse the ResourceBinding of a PersistentVolumeClaim."""
    spec, marks = mapping(binding.get("spec")), at(binding, "metadata", "annotations")
    needed = {string(each.get("name")): _clusters(each) for each in objects(spec.get("requiredBy"))}
    annotations = string_map(marks)
    return Claim(
        name=string(at(spec, "resource", "name")),
        uid=string(at(spec, "resource", "uid")),
        kept=_clusters(spec) | needed.pop(KEEPS_CLAIM, frozenset()),
        needed=needed,
        policy=annotations.get(CLAIMED_NAME) or annotations.get(CLAIMED_WIDELY_NAME, ""),
    )


def claim_policy_name(claim: str) -> str:
    """Return the name of the PropagationPolicy that keeps the copies of a claim."""
    return binding_name(claim, kind=CLAIM_KIND)


def claim_policy(namespace: str, claim: str, *, uid: str, clusters: list[str]) -> Object:
    """Return the PropagationPolicy that keeps the copies of a claim in these clusters.

    The claim owns it: they go together. Without the toleration a taint would end the copies.
    """
    reference = {**PERSISTENT_VOLUME_CLAIMS.head, "name": claim}
    return {
        **PROPAGATION_POLICIES.head,
        "metadata": {
            "name": claim_policy_name(claim),
            "namespace": namespace,
            "labels": {LABEL_KEEPS_CLAIM: ""},
            "ownerReferences": [{**reference, "uid": uid}],
        },
        "spec": {
            "resourceSelectors": [{**reference, "namespace": namespace}],
            "conflictResolution": "Abort",
            "placement": {
                "clusterAffinity": {"clusterNames": clusters},
                "clusterTolerations": [{"operator": "Exists"}],
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
        },
    }


def _clusters(part: Object) -> frozenset[str]:
    return frozenset(string(each.get("name")) for each in objects(part.get("clusters")))
