"""The observation and the plan of one HyperJob as a document, with the reasons.

The document has names, clusters and numbers, but no content of a template, which may be
confidential.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import objects, rfc3339
from hyperjob_engine.model.child import Child, child_of
from hyperjob_engine.model.observed import Binding, Cluster, Job, Observed, Policy, QueueVerdict
from hyperjob_engine.model.planned import Action, Plan
from hyperjob_engine.reasons.trouble import trouble_text
from hyperjob_engine.resources import Resources, amount_text, order_of
from hyperjob_engine.status.diff import merge_patch

_HIDDEN: Final = frozenset({"policy", "job", "placement", "patch", "operations", "demand", "pods"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """The state of a HyperJob in the workqueue."""

    failures: int
    due_in: float | None


def explain(
    observed: Observed, decided: Plan, *, queue: QueueState, reserved: Mapping[str, Resources]
) -> Object:
    """Return the observation and the plan of this moment as a JSON object."""
    hyperjob = observed.hyperjob
    names = sorted({*observed.jobs, *observed.policies, *hyperjob.records})
    status = decided.status or {}
    entries = {job.get("name"): job for job in objects(status.get("jobs"))}
    return {
        "hyperjob": {
            "namespace": hyperjob.namespace,
            "name": hyperjob.name,
            "uid": hyperjob.uid,
            "generation": hyperjob.generation,
            "resourceVersion": hyperjob.resource_version,
            "suspend": hyperjob.suspend,
            "minAvailable": hyperjob.min_available,
            "maxDomains": hyperjob.max_domains,
            "state": hyperjob.status.get("state"),
            "gang": hyperjob.status.get("gang"),
        },
        "now": rfc3339(observed.now),
        "queueAdmission": str(observed.admission),
        "queues": observed.queues,
        "verdict": _verdict(observed.verdict),
        "jobs": [_child(child_of(observed, name), entries.get(name, {})) for name in names],
        "clusters": [
            _cluster(cluster, reserved.get(cluster.name, {})) for cluster in observed.clusters
        ],
        "plan": {
            "actions": [_action(action) for action in decided.actions],
            "status": merge_patch(hyperjob.status, decided.status) if decided.status else None,
            "events": [event.note for event in decided.events],
            "waitsForCapacity": decided.waits_for_capacity,
            "lookAgainAfterSeconds": _seconds(decided.requeue_after),
        },
        "refusals": {
            name: {
                "reason": refusal.reason,
                "message": refusal.message,
                "retryAt": rfc3339(refusal.retry_at),
            }
            for name, refusal in observed.refusals.items()
        },
        "capacityChangesInSeconds": _seconds(observed.capacity_changes_in),
        "workQueue": {"failures": queue.failures, "dueInSeconds": queue.due_in},
    }


def _child(child: Child, entry: Object) -> Object:
    return {
        "name": child.name,
        "cluster": child.cluster,
        "phase": str(child.phase),
        "attempt": child.attempt,
        "told": {key: entry.get(key) for key in ("phase", "reason", "message")},
        "job": _job(child.job),
        "policy": _policy(child.policy),
        "binding": _binding(child.binding),
    }


def _job(job: Job | None) -> Object | None:
    if job is None:
        return None
    return {
        "uid": job.uid,
        "ownership": str(job.ownership),
        "owner": job.owner,
        "attempt": job.attempt,
        "queue": job.queue,
        "deleting": job.deleting,
    }


def _policy(policy: Policy | None) -> Object | None:
    if policy is None:
        return None
    return {
        "clusters": list(policy.clusters),
        "ownership": str(policy.ownership),
        "attempt": policy.attempt,
        "suspended": policy.suspended,
        "deleting": policy.deleting,
    }


def _binding(binding: Binding | None) -> Object | None:
    if binding is None:
        return None
    return {
        "name": binding.name,
        "cluster": binding.cluster,
        "gate": binding.gate,
        "schedulingSuspended": binding.scheduling_suspended,
        "dispatchingSuspended": binding.dispatching_suspended,
        "applied": binding.applied,
        "applyError": binding.apply_error,
        "unscheduled": binding.unscheduled_message,
    }


def _cluster(cluster: Cluster, reserved: Resources) -> Object:
    return {
        "name": cluster.name,
        "usable": cluster.usable,
        "reason": trouble_text(cluster.trouble),
        "free": _amounts(cluster.free),
        "allocatable": _amounts(cluster.allocatable),
        "reserved": _amounts(reserved),
        "settling": _amounts(cluster.settling),
        **({} if cluster.view is None else {"nodesAsOf": rfc3339(cluster.view.as_of)}),
    }


def _action(action: Action) -> Object:
    shown: Object = {"action": type(action).__name__}
    for field in fields(action):
        value = getattr(action, field.name)
        if field.name not in _HIDDEN:
            shown[field.name] = value
        elif field.name == "demand":
            shown["demand"] = _amounts(value)
    return shown


def _verdict(verdict: QueueVerdict | None) -> Object | None:
    if verdict is None:
        return None
    return {
        "admitted": sorted(verdict.admitted),
        "reason": verdict.reason,
        "message": verdict.message,
    }


def _amounts(amounts: Resources) -> list[str]:
    names = sorted((name for name in amounts if amounts[name]), key=order_of)
    return [amount_text(name, amounts[name]) for name in names]


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else round(length.total_seconds(), 3)
