"""The world of a plan: clusters with their free resources, queues, and existing HyperJobs.

The module parses objects with the controller's own functions and makes no request.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from hyperjob.client.plan.needs import together, written
from hyperjob_controller.caches.informers import hyperjob_keys, job_key_of_binding
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.existing import Names
from hyperjob_core.kube.resources import key_of
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.parse import parse_binding, parse_hyperjob, parse_job, parse_policy
from hyperjob_engine.placement.capacity import Candidacy, candidates, holding, summarise
from hyperjob_engine.queueing.priority import priority_of
from hyperjob_engine.queueing.quota import Charge, charge_of
from hyperjob_engine.reasons.hindrance import ClusterTrouble, Trouble
from hyperjob_engine.resources import Resources, subtract

# Name, cluster, demand and pods of a sub-job that would be made.
Taken: TypeAlias = tuple[str, str, Resources, tuple[PodGroup, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All objects by `namespace/name`; sub-jobs by the key of their HyperJob.

    `queues` are the states of Queues by name, None if unreadable. `there` are the existing objects
    that pods need. `shown` is the free capacity by the clusters' status alone. `earlier` are
    HyperJobs planned before, and `taken` the keys of their sub-jobs. `drained` clusters run no
    sub-jobs.
    """

    now: datetime
    clusters: tuple[Cluster, ...]
    queues: Mapping[str, str] | None
    admission: QueueAdmission
    namespace: str = "default"
    hyperjobs: Mapping[str, Object] = field(default_factory=dict)
    jobs: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    policies: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    bindings: Mapping[str, Object] = field(default_factory=dict)
    queue_objects: Sequence[Object] = ()
    priority_classes: Mapping[str, Object] = field(default_factory=dict)
    shown: Mapping[str, Resources] = field(default_factory=dict)
    earlier: Mapping[str, Object] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    there: Names = field(default_factory=dict)
    drained: frozenset[str] = frozenset()

    def charges(self) -> Iterator[tuple[str, Charge]]:
        """Yield each sub-job's key, and the quota that Volcano Global charges for its binding."""
        for item in (each for owned in self.jobs.values() for each in owned):
            key = key_of(item)
            namespace, _, name = key.partition("/")
            binding = self.bindings.get(f"{namespace}/{binding_name(name)}")
            if binding is not None:
                queue = string(at(item, "spec", "queue")) or "default"
                yield key, charge_of(binding, queue=queue, sub_job=key)

    def observe(self, raw: Object) -> Observed:
        """Return the controller's observation of a HyperJob."""
        hyperjob = parse_hyperjob(raw)
        key = f"{hyperjob.namespace}/{hyperjob.name}"
        jobs = [parse_job(item, owner=hyperjob) for item in self.jobs.get(key, ())]
        policies = [parse_policy(item, owner=hyperjob) for item in self.policies.get(key, ())]
        found = (
            self.bindings.get(f"{hyperjob.namespace}/{binding_name(job.name)}") for job in jobs
        )
        bindings = [parse_binding(item) for item in found if item is not None]
        return Observed(
            hyperjob=hyperjob,
            jobs={job.name: job for job in jobs},
            policies={policy.name: policy for policy in policies},
            bindings={binding.name: binding for binding in bindings},
            clusters=self.clusters,
            refusals={},
            admission=self.admission,
            now=self.now,
            queues=self.queues,
            priority=priority_of(hyperjob, self.priority_classes),
        )

    def with_queues(self, specs: Iterable[Object]) -> "Snapshot":
        """Return the world with these Queues; existing Queues keep their state, others are Open.

        The world stays unchanged where the Queues of the control plane cannot be read.
        """
        written = {string(at(item, "metadata", "name")): item for item in specs}
        if self.queues is None or not written:
            return self
        states = {name: self.queues.get(name, "Open") for name in written}
        others = [
            item
            for item in self.queue_objects
            if string(at(item, "metadata", "name")) not in written
        ]
        mine = [item | {"status": {"state": states[name]}} for name, item in written.items()]
        return replace(self, queues={**self.queues, **states}, queue_objects=[*others, *mine])

    def with_clusters(self, objects: Iterable[Object], candidacy: Candidacy) -> "Snapshot":
        """Return the world with these idle clusters, which replace clusters of the same name.

        Sub-jobs that run on a replaced cluster continue to run there.
        """
        known = {cluster.name: cluster for cluster in self.clusters}
        shown = dict(self.shown)
        for made in candidates((summarise(item, candidacy) for item in objects), {}):
            old = known.get(made.name)
            taken = subtract(old.allocatable, old.free) if old is not None else {}
            known[made.name] = holding(made, taken, ())
            shown[made.name] = known[made.name].free
        return replace(self, clusters=tuple(known.values()), shown=shown)

    def without(self, drained: Collection[str]) -> "Snapshot":
        """Return the world in which the drained clusters run no sub-jobs."""
        gone = Trouble(ClusterTrouble.TAINTED, "drained")
        clusters = tuple(
            replace(each, usable=False, trouble=gone) if each.name in drained else each
            for each in self.clusters
        )
        return replace(self, clusters=clusters, drained=self.drained.union(drained))

    def with_objects(self, objects: Iterable[Object]) -> "Snapshot":
        """Return the world with the objects of the files that pods may need."""
        more = written(objects, namespace=self.namespace)
        return replace(self, there=together(self.there, more))

    def after(self, raw: Object, taken: Sequence[Taken]) -> "Snapshot":
        """Return the world after a planned HyperJob with its placed sub-jobs."""
        clusters = {cluster.name: cluster for cluster in self.clusters}
        key = key_of(raw)
        for _, name, demand, pods in taken:
            clusters[name] = holding(clusters[name], demand, pods)
        namespace = key.partition("/")[0]
        return replace(
            self,
            clusters=tuple(clusters.values()),
            earlier={**self.earlier, key: raw},
            taken=self.taken | {f"{namespace}/{child}" for child, _, _, _ in taken},
        )


def world_of(
    *,
    clusters: Iterable[Object],
    queues: Iterable[Object] | None,
    now: datetime,
    admission: QueueAdmission,
    lag: timedelta,
    candidacy: Candidacy,
    namespace: str = "default",
    hyperjobs: Iterable[Object] = (),
    jobs: Iterable[Object] = (),
    policies: Iterable[Object] = (),
    bindings: Iterable[Object] = (),
    priority_classes: Iterable[Object] = (),
    there: Names | None = None,
) -> Snapshot:
    """Return the world of these objects.

    The free capacity excludes placed sub-jobs that a Cluster's status does not include yet.
    """
    hyperjobs_by, jobs_by, policies_by = _by_key(hyperjobs), _by_key(jobs), _by_key(policies)
    bindings_by_job = {job_key_of_binding(item): item for item in bindings}
    reservations = Reservations(
        hyperjob=hyperjobs_by.get,
        job=jobs_by.get,
        policy=policies_by.get,
        binding=bindings_by_job.get,
        lag=lag,
    )
    for key in jobs_by:
        reservations.update(key, now=now)
    summaries = [summarise(item, candidacy) for item in clusters]
    queues = None if queues is None else list(queues)
    states = (
        None
        if queues is None
        else {
            string(at(item, "metadata", "name")): string(at(item, "status", "state"))
            for item in queues
        }
    )
    found = candidates(
        summaries,
        reservations.reserved(now=now),
        reservations.settling(now=now),
        reservations.pods(now=now),
    )
    return Snapshot(
        now=now,
        clusters=found,
        queues=states,
        admission=admission,
        namespace=namespace,
        hyperjobs=hyperjobs_by,
        jobs=_by_hyperjob(jobs_by.values()),
        policies=_by_hyperjob(policies_by.values()),
        bindings=_by_key(item for key, item in bindings_by_job.items() if key is not None),
        queue_objects=queues or (),
        priority_classes={string(at(item, "metadata", "name")): item for item in priority_classes},
        shown={item.name: item.free for item in summaries},
        there=there or {},
    )


def _by_key(items: Iterable[Object]) -> dict[str, Object]:
    return {key_of(item): item for item in items}


def _by_hyperjob(items: Iterable[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for item in items:
        for key in hyperjob_keys(item):
            found.setdefault(key, []).append(item)
    return found
