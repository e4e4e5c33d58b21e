"""What a HyperJob would meet: clusters with their free capacity, queues, and what exists already.

Made from plain objects by the controller's own reading of them; asks nobody.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from controller.caches import hyperjob_keys, job_key_of_binding
from controller.ledger import Ledger
from controller.model.nodes import PodGroup
from controller.model.observed import Cluster, Observed, QueueAdmission
from controller.model.parse import parse_binding, parse_hyperjob, parse_job, parse_policy
from controller.model.resources import Resources, subtract
from controller.model.wire import at, string
from controller.placement.capacity import Candidacy, candidates, summarise
from hyperjob.api.meta import Object
from hyperjob.api.names import binding_name
from hyperjob.kube.resources import key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything there is; objects by `namespace/name`, queues' states by name or unknown."""

    now: datetime
    clusters: tuple[Cluster, ...]
    queues: Mapping[str, str] | None
    admission: QueueAdmission
    namespace: str = "default"
    hyperjobs: Mapping[str, Object] = field(default_factory=dict)
    jobs: Mapping[str, Object] = field(default_factory=dict)
    policies: Mapping[str, Object] = field(default_factory=dict)
    bindings: Mapping[str, Object] = field(default_factory=dict)

    def observe(self, raw: Object) -> Observed:
        """Look at one HyperJob as the controller would."""
        hyperjob = parse_hyperjob(raw)
        key = f"{hyperjob.namespace}/{hyperjob.name}"
        jobs = [parse_job(item, owner=hyperjob) for item in _of(self.jobs, key)]
        policies = [parse_policy(item, owner=hyperjob) for item in _of(self.policies, key)]
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
        )

    def taking(self, taken: Sequence[tuple[str, Resources, tuple[PodGroup, ...]]]) -> "World":
        """Return the world after demands, with their pods, were put on clusters."""
        clusters = {cluster.name: cluster for cluster in self.clusters}
        for name, demand, pods in taken:
            before = clusters[name]
            clusters[name] = replace(
                before,
                free=subtract(before.free, demand),
                reserved_pods=(*before.reserved_pods, *pods),
            )
        return replace(self, clusters=tuple(clusters.values()))


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
) -> World:
    """Read objects; what was placed and is not in a cluster's status yet is taken off."""
    jobs_by, policies_by = _by_key(jobs), _by_key(policies)
    bindings_by_job = {job_key_of_binding(item): item for item in bindings}
    ledger = Ledger(
        job=jobs_by.get,
        policy=policies_by.get,
        binding=bindings_by_job.get,
        lag=lag,
        freed=lambda _: None,
    )
    for key in jobs_by:
        ledger.update(key, now=now)
    summaries = [summarise(item, candidacy) for item in clusters]
    states = (
        None
        if queues is None
        else {
            string(at(item, "metadata", "name")): string(at(item, "status", "state"))
            for item in queues
        }
    )
    return World(
        now=now,
        clusters=candidates(summaries, ledger.reserved(now=now)),
        queues=states,
        admission=admission,
        namespace=namespace,
        hyperjobs=_by_key(hyperjobs),
        jobs=jobs_by,
        policies=policies_by,
        bindings=_by_key(item for key, item in bindings_by_job.items() if key is not None),
    )


def _by_key(items: Iterable[Object]) -> dict[str, Object]:
    return {key_of(item): item for item in items}


def _of(items: Mapping[str, Object], key: str) -> list[Object]:
    return [item for item in items.values() if key in hyperjob_keys(item)]
