"""The manifests of a sub-job: its PropagationPolicy and its vcjob.

The controller creates objects from them and never compares live objects with them: webhooks default
live objects, and Volcano refuses almost every later change.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    AFFINITY_GATED,
    AFFINITY_HELD,
    AFFINITY_UNGATED,
    API_VERSION,
    GATE,
    GATE_HELD,
    KIND,
    LABEL_ATTEMPT,
    LABEL_HYPERJOB,
    LABEL_INDEX,
    LABEL_REPLICATED_JOB,
    UNCOUNTED,
    domain_of,
    may_be_given,
)
from hyperjob_core.api.wire import natural, string_map
from hyperjob_core.kube.resources import PROPAGATION_POLICIES, VCJOBS
from hyperjob_engine.expansion.templates import distinct, in_order, with_checkpoint
from hyperjob_engine.model.observed import HyperJob, QueueAdmission
from hyperjob_engine.model.subjobs import SubJob

_OWN: Final = (LABEL_HYPERJOB, LABEL_REPLICATED_JOB, LABEL_INDEX, LABEL_ATTEMPT)


def owner_reference(hyperjob: HyperJob) -> Object:
    """Return the reference that makes a HyperJob the controller of an object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": hyperjob.name,
        "uid": hyperjob.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels_of(hyperjob: HyperJob, group: str, index: int, *, attempt: int = 0) -> dict[str, str]:
    """Return the labels by which a sub-job's objects are found."""
    labels = {
        LABEL_HYPERJOB: hyperjob.name,
        LABEL_REPLICATED_JOB: group,
        LABEL_INDEX: str(index),
    }
    return labels | ({LABEL_ATTEMPT: str(attempt)} if attempt else {})


def vcjob(
    hyperjob: HyperJob, sub_job: SubJob, *, attempt: int = 0, uncounted: Iterable[str] = ()
) -> Object:
    """Return the vcjob of a sub-job; queues do not count the resources `uncounted`."""
    group = sub_job.group
    metadata = _metadata(hyperjob, sub_job, attempt, labels=group.template_labels)
    annotations = _permitted(group.template_annotations) | metadata.get("annotations", {})
    if left_out := ",".join(uncounted):
        annotations |= {UNCOUNTED: left_out}
    if annotations:
        metadata["annotations"] = annotations
    return {
        **VCJOBS.head,
        "metadata": metadata,
        "spec": with_checkpoint(distinct(in_order(sub_job.size.template)), hyperjob.checkpoint),
    }


def _permitted(given: Mapping[str, str]) -> dict[str, str]:
    """Return labels or annotations without keys that the webhook refuses.

    A HyperJob may have been stored before the rule, or without the webhook.
    """
    return {key: value for key, value in given.items() if may_be_given(key)}


def policy(
    hyperjob: HyperJob,
    sub_job: SubJob,
    cluster: str,
    *,
    admission: QueueAdmission,
    held: bool,
    gated: bool | None = None,
    attempt: int = 0,
) -> Object:
    """Return the PropagationPolicy that pins a sub-job to one cluster.

    `held` suspends dispatching until the gang is complete; `gated`, by default the same, is that of
    its placement. With `preemption: Always` the policy takes the vcjob over from a broader policy
    that claimed it.
    """
    wanted = placement(cluster, admission, gated=held if gated is None else gated)
    found = _policy(_metadata(hyperjob, sub_job, attempt), wanted)
    if held:
        found["spec"]["suspension"] = {"dispatching": True}
        metadata = found["metadata"]
        metadata["annotations"] = metadata.get("annotations", {}) | {GATE: GATE_HELD}
    return found


def taken_over(hyperjob: HyperJob, found: Object, cluster: str) -> tuple[Object, Object]:
    """Return policy and vcjob for a sub-job that a member has and Karmada does not know.

    The vcjob has the spec of the member's vcjob, which Volcano has defaulted and does not let
    Karmada change. It gets no gate, also beside Volcano Global: a held sub-job moves to another
    cluster where its own has no room, and there its own pods take the room. If the HyperJob has
    begun a later attempt, it becomes that: the controller deletes the vcjobs of earlier ones.
    """
    given = found["metadata"]
    kept = {kind: _without_karmadas(given.get(kind)) for kind in ("labels", "annotations")}
    record = hyperjob.records.get(given["name"])
    before = natural(kept["labels"].get(LABEL_ATTEMPT, "")) or 0
    if record is not None and record.attempt > before:
        for marks in kept.values():
            marks[LABEL_ATTEMPT] = str(record.attempt)
    metadata: Object = {
        "name": given["name"],
        "namespace": hyperjob.namespace,
        "labels": kept["labels"],
        "ownerReferences": [owner_reference(hyperjob)],
    }
    own = {key: metadata["labels"][key] for key in _OWN if key in metadata["labels"]}
    wanted = placement(cluster, QueueAdmission.NONE, gated=False)
    policy = _policy(metadata | {"labels": own}, wanted)
    if kept["annotations"]:
        metadata["annotations"] = kept["annotations"]
    job = {**VCJOBS.head, "metadata": metadata}
    return policy, job | {"spec": found["spec"]}


def _without_karmadas(given: object) -> dict[str, str]:
    """Return labels or annotations without those that Karmada gives the objects of members."""
    return {
        key: value for key, value in string_map(given).items() if domain_of(key) != "karmada.io"
    }


def _policy(metadata: Object, wanted: Object) -> Object:
    """Return the PropagationPolicy for the vcjob of the same name."""
    selector = {
        **VCJOBS.head,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
    }
    return {
        **PROPAGATION_POLICIES.head,
        "metadata": metadata,
        "spec": {
            "resourceSelectors": [selector],
            "propagateDeps": True,
            "preemption": "Always",
            "conflictResolution": "Abort",
            "placement": wanted,
        },
    }


def placement(cluster: str, admission: QueueAdmission, *, gated: bool) -> Object:
    """Return the placement with one cluster.

    Karmada copies the name of its clusterAffinity into the ResourceBinding, where HyperJob's
    webhook reads which of scheduling and dispatching to suspend. Beside Volcano Global, which
    suspends and releases every ResourceBinding, each ResourceBinding has a gate.
    """
    affinity = AFFINITY_HELD if gated else AFFINITY_UNGATED
    if admission is QueueAdmission.VOLCANO_GLOBAL:
        affinity = AFFINITY_GATED
    if admission is QueueAdmission.NONE:
        affinity = AFFINITY_UNGATED
    return {
        "clusterAffinities": [{"affinityName": affinity, "clusterNames": [cluster]}],
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }


def _metadata(
    hyperjob: HyperJob,
    sub_job: SubJob,
    attempt: int,
    *,
    labels: Mapping[str, str] | None = None,
) -> Object:
    own = labels_of(hyperjob, sub_job.group.name, sub_job.index, attempt=attempt)
    metadata: Object = {
        "name": sub_job.name,
        "namespace": hyperjob.namespace,
        "labels": _permitted(labels or {}) | own,
        "ownerReferences": [owner_reference(hyperjob)],
    }
    if attempt:
        metadata["annotations"] = {LABEL_ATTEMPT: str(attempt)}
    return metadata
