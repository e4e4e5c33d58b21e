"""Simulate Karmada: ResourceBindings, dispatch, status collection, and Clusters.

Each step has a delay. Karmada decides nothing: a binding goes to the cluster that its policy
names, as soon as its suspension ends.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.wire import at, condition, mapping, rfc3339, string
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    key_of,
)
from hyperjob_engine.expansion.expand import items_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.parse import controller_of, pinned_clusters
from hyperjob_engine.model.request import kinds_of
from hyperjob_engine.resources import quantities
from hyperjob_sandbox.simulate.member import Member, Pods

_BIND = 0.5
_DISPATCH = 1.0
_REPORT = 1.0


@dataclass(slots=True)
class _Sent:
    """A vcjob dispatched to a member, and the member's last status of it."""

    uid: str
    cluster: str
    status: Object | None = None


class Karmada:
    """Karmada's controllers for the objects of HyperJobs."""

    def __init__(
        self,
        plane: MemoryServer,
        members: dict[str, Member],
        *,
        now: Callable[[], datetime],
        status_period: float,
        sent: Callable[[str, str, str], None],
        gone: Callable[[str, str], None],
    ) -> None:
        """Call `sent` with key, UID and cluster of a dispatched vcjob, `gone` after its deletion.

        `gone` gets key and cluster, once the vcjob was deleted from the control plane.
        """
        self._plane = plane
        self._members = members
        self._now = now
        self._period = status_period
        self._tell_sent = sent
        self._tell_gone = gone
        self._sent: dict[str, _Sent] = {}
        self._due: set[str] = set()
        self.views: dict[str, MemberView] = {}
        """The nodes of the members, which the controller reads as it does by default."""
        for name in members:
            self._look(name)
        plane.listen(self._changed)

    def where(self, key: str) -> str:
        """Return the cluster of a dispatched vcjob, or an empty text."""
        sent = self._sent.get(key)
        return sent.cluster if sent is not None else ""

    def sent_to(self, cluster: str) -> list[str]:
        """Return the keys of the vcjobs dispatched to a cluster."""
        return [key for key, sent in self._sent.items() if sent.cluster == cluster]

    def report(self, key: str, phase: str, *, pods: int, state: str) -> None:
        """Collect a vcjob's status after a delay; all its pods are in `state`."""
        since = rfc3339(self._now())
        status: Object = {"state": {"phase": phase, "lastTransitionTime": since}}
        if pods:
            status[state] = pods
        sent = self._sent.get(key)
        if sent is not None:
            sent.status = status
            self._later(_REPORT, self._bring, key, sent.uid, status)

    def touch(self, cluster: str) -> None:
        """Show its nodes, and mark a Cluster for the next collection of its status."""
        self._look(cluster)
        if cluster in self._due:
            return
        self._due.add(cluster)
        loop = asyncio.get_running_loop()
        turn = (math.floor(loop.time() / self._period) + 1) * self._period
        loop.call_at(turn, self._collect, cluster)

    def _look(self, cluster: str) -> None:
        """Show the nodes of a member that answers."""
        member = self._members[cluster]
        self.views.pop(cluster, None)
        if not member.down:
            self.views[cluster] = member.view()

    def _later(self, seconds: float, do: Callable[..., None], *arguments: object) -> None:
        asyncio.get_running_loop().call_later(seconds, do, *arguments)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        """Begin Karmada's next step after a change of a vcjob, a policy or a binding."""
        if kind == VCJOBS.kind:
            if old is None and new is not None:
                self._later(_BIND, self._bind, key_of(new), new["metadata"]["uid"])
            elif new is None and old is not None:
                self._forget(key_of(old))
        elif kind == PROPAGATION_POLICIES.kind:
            if old is not None and new is not None and old["spec"] != new["spec"]:
                self._later(_BIND, self._sync, key_of(new))
        elif kind == RESOURCE_BINDINGS.kind and new is not None:
            suspension = mapping(at(new, "spec", "suspension"))
            if not suspension.get("dispatching") and not suspension.get("scheduling"):
                self._later(_DISPATCH, self._dispatch, key_of(new))

    def _forget(self, key: str) -> None:
        """Drop a vcjob after its deletion, also in its member."""
        sent = self._sent.pop(key, None)
        if sent is not None:
            self._tell_gone(key, sent.cluster)

    def _bind(self, key: str, uid: str) -> None:
        """Create the binding of a vcjob that has a policy, unless its UID is another one by now."""
        job, policy = self._plane.get(VCJOBS, key), self._plane.get(PROPAGATION_POLICIES, key)
        if job is None or policy is None or job["metadata"]["uid"] != uid:
            return
        metadata, spec = job["metadata"], policy["spec"]
        reference = {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": metadata["name"],
            "uid": uid,
        }
        wanted: Object = {
            "resource": {**reference, "namespace": metadata["namespace"]},
            "placement": spec["placement"],
            "conflictResolution": "Abort",
            **self._scheduled(spec["placement"]),
        }
        if at(spec, "suspension", "dispatching"):
            wanted["suspension"] = {"dispatching": True}
        binding: Object = {
            **RESOURCE_BINDINGS.head,
            "metadata": {
                "name": binding_name(metadata["name"]),
                "namespace": metadata["namespace"],
                "ownerReferences": [{**reference, "controller": True}],
            },
            "spec": wanted,
            "status": {"conditions": [{"type": "Scheduled", "status": "True"}]},
        }
        self._plane.create(RESOURCE_BINDINGS, binding)

    def _scheduled(self, placement: object) -> Object:
        names = pinned_clusters(placement)
        return {"clusters": [{"name": names[0]}]} if names else {}

    def _sync(self, key: str) -> None:
        """Update the binding of a changed policy."""
        policy = self._plane.get(PROPAGATION_POLICIES, key)
        known = _binding_key(key)
        if policy is None or self._plane.get(RESOURCE_BINDINGS, known) is None:
            return
        placement, suspension = policy["spec"]["placement"], policy["spec"].get("suspension")
        change: Object = {"placement": placement, **self._scheduled(placement)}
        change["suspension"] = {"dispatching": at(suspension, "dispatching")}
        self._plane.change(RESOURCE_BINDINGS, known, {"spec": change})

    def _dispatch(self, known: str) -> None:
        """Send the vcjob of a binding, `known` by its key, to its member, unless it is there."""
        binding = self._plane.get(RESOURCE_BINDINGS, known)
        if binding is None or mapping(at(binding, "spec", "suspension")).get("dispatching"):
            return
        resource = binding["spec"]["resource"]
        key = f"{resource['namespace']}/{resource['name']}"
        clusters = at(binding, "spec", "clusters")
        job = self._plane.get(VCJOBS, key)
        if key in self._sent or not isinstance(clusters, list) or job is None:
            return
        name = string(clusters[0].get("name"))
        member = self._members[name]
        if member.down:  # Karmada retries until the cluster answers
            self._later(self._period, self._dispatch, known)
            return
        uid = job["metadata"]["uid"]
        self._sent[key] = _Sent(uid, name)
        pods = Pods(key, uid, kinds_of(items_of(job["spec"])))
        self.report(key, "Pending", pods=pods.number, state="pending")
        self._tell_sent(key, uid, name)
        member.take(pods)
        self.touch(name)

    def _bring(self, key: str, uid: str, status: Object) -> None:
        """Write a member's status to binding and vcjob, unless there is a later one."""
        sent, job = self._sent.get(key), self._plane.get(VCJOBS, key)
        if sent is None or job is None or sent.uid != uid or job["metadata"]["uid"] != uid:
            return
        if sent.status is not status:  # timers of the same time fire in any order
            return
        if self._members[sent.cluster].down:
            self._later(self._period, self._bring, key, uid, status)
            return
        known = _binding_key(key)
        binding = self._plane.get(RESOURCE_BINDINGS, known)
        if binding is None or controller_of(binding["metadata"]).get("uid") != uid:
            return
        conditions = [
            {"type": "Scheduled", "status": "True"},
            {
                "type": "FullyApplied",
                "status": "True",
                "lastTransitionTime": status["state"]["lastTransitionTime"],
            },
        ]
        item = {"clusterName": sent.cluster, "applied": True, "status": status}
        whole: Object = {"conditions": conditions, "aggregatedStatus": [item]}
        self._plane.change(RESOURCE_BINDINGS, known, {"status": whole}, status=True)
        self._plane.replace(VCJOBS, key, {**job, "status": status})

    def _collect(self, cluster: str) -> None:
        """Write the status of a Cluster; that of a member that is down becomes not Ready."""
        self._due.discard(cluster)
        member = self._members[cluster]
        old = self._plane.get(CLUSTERS, cluster)
        if old is None:
            return
        now = rfc3339(self._now())
        ready = _is_ready(old)
        if member.down:
            if ready:
                gone: Object = {"conditions": _ready_conditions(ready=False, now=now)}
                self._plane.change(CLUSTERS, cluster, {"status": gone}, status=True)
            return
        allocatable, allocated, allocating = member.summary()
        summary = {
            **old["status"]["resourceSummary"],
            "allocatable": quantities(allocatable),
            "allocated": quantities(allocated),
            "allocating": quantities(allocating),
        }
        status: Object = {**old["status"], "resourceSummary": summary}
        if not ready:
            status["conditions"] = _ready_conditions(ready=True, now=now)
        self._plane.replace(CLUSTERS, cluster, {**old, "status": status})


def _is_ready(cluster: Object) -> bool:
    return condition(cluster["status"], "Ready").get("status") == "True"


def _ready_conditions(*, ready: bool, now: str) -> list[Object]:
    return [
        {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "ClusterReady" if ready else "ClusterNotReachable",
            "lastTransitionTime": now,
        }
    ]


def _binding_key(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"{namespace}/{binding_name(name)}"
