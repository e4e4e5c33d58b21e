"""The world of a plan: the objects of a control plane as they were read, and changes of them.

The module makes no request and takes no decision.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hyperjob_controller.caches.informers import workload_of_binding
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.existing import KINDS, Names
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.parse import pinned_clusters

_DRAINED = {"key": "drained", "effect": "NoExecute"}
_NO_SHARE = {"admitted": False, "cluster": ""}
_USED = ("allocated", "allocating")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects of a control plane, and the options of its controller.

    `unreadable` are resources that the user may not list. `there` are the names of the objects that
    pods may need; a missing key means unknown. `views` are the members whose nodes are known.
    """

    now: datetime
    objects: Mapping[Resource, Sequence[Object]]
    options: Options = field(default_factory=Options)
    namespace: str = "default"
    unreadable: frozenset[Resource] = frozenset()
    there: Names = field(default_factory=dict)
    views: Mapping[str, MemberView] = field(default_factory=dict)

    def of(self, resource: Resource) -> Sequence[Object]:
        """Return the objects of a resource."""
        return self.objects.get(resource, ())

    def with_queues(self, specs: Iterable[Object]) -> "World":
        """Return the world with these Queues; existing Queues keep their state, others are Open.

        The world stays unchanged where the Queues of the control plane cannot be read.
        """
        if QUEUES in self.unreadable:
            return self
        states = {key_of(item): at(item, "status", "state") for item in self.of(QUEUES)}
        made = [
            {**item, "status": {"state": states.get(key_of(item), "Open")}}
            for item in specs
            if string(at(item, "metadata", "name"))
        ]
        return self._with(QUEUES, made)

    def with_clusters(
        self, idle: Sequence[Object], views: Mapping[str, MemberView] | None = None
    ) -> "World":
        """Return the world with these idle Clusters, which replace Clusters of the same name.

        Sub-jobs that run on a replaced Cluster continue to run there, on nodes that are unknown.
        `views` are the nodes of the idle Clusters.
        """
        known = {key_of(item): item for item in self.of(CLUSTERS)}
        made = {key_of(item): _as_used(item, known.get(key_of(item))) for item in idle}
        kept = {name: view for name, view in self.views.items() if name not in made}
        new = {name: view for name, view in (views or {}).items() if name not in known}
        return replace(self._with(CLUSTERS, list(made.values())), views=kept | new)

    def without(self, drained: Collection[str]) -> "World":
        """Return the world in which the drained clusters run no sub-jobs.

        The sub-jobs that run there are gone, and their HyperJobs have no share for them. The
        drained Clusters stay, with a taint NoExecute that messages name, and with their views;
        sub-jobs that have ended stay too. The vcjobs' own policies and ResourceBindings are
        dropped, and none of another kind with the same name.
        """
        if not drained:
            return self
        gone = set(self._on(drained))
        found = {
            resource: [item for item in self.of(resource) if key_of(item) not in gone]
            for resource in (VCJOBS, PROPAGATION_POLICIES)
        }
        found[RESOURCE_BINDINGS] = [
            item for item in self.of(RESOURCE_BINDINGS) if _job_of_binding(item) not in gone
        ]
        found[HYPERJOBS] = [_without_share(item, gone) for item in self.of(HYPERJOBS)]
        found[CLUSTERS] = [
            _tainted(item) if key_of(item) in drained else item for item in self.of(CLUSTERS)
        ]
        return replace(self, objects={**self.objects, **found})

    def with_needed(self, found: Iterable[Object]) -> "World":
        """Return the world with objects that pods may need, for the kinds that are known."""
        more: dict[tuple[str, str], dict[str, str]] = {}
        for obj in found:
            kind, name = string(obj.get("kind")), string(at(obj, "metadata", "name"))
            if kind in KINDS:
                home = string(at(obj, "metadata", "namespace")) or self.namespace
                volume = string(at(obj, "spec", "volumeName"))
                more.setdefault((home, kind), {})[name] = volume
            elif kind == PRIORITY_CLASSES.kind:
                more.setdefault(("", kind), {})[name] = ""
        there = {key: {**names, **more.get(key, {})} for key, names in self.there.items()}
        return replace(self, there=there)

    def _with(self, resource: Resource, made: Sequence[Object]) -> "World":
        names = {key_of(item) for item in made}
        kept = [item for item in self.of(resource) if key_of(item) not in names]
        return replace(self, objects={**self.objects, resource: [*kept, *made]})

    def _on(self, clusters: Collection[str]) -> Iterator[str]:
        """Yield the keys of the sub-jobs on clusters that have not ended."""
        bindings = {_job_of_binding(item): item for item in self.of(RESOURCE_BINDINGS)}
        policies = {key_of(item): item for item in self.of(PROPAGATION_POLICIES)}
        for job in self.of(VCJOBS):
            key = key_of(job)
            phase = JobPhase(string(at(job, "status", "state", "phase")))
            if LABEL_HYPERJOB not in mapping(at(job, "metadata", "labels")) or phase.is_terminal:
                continue
            bound = objects(at(bindings.get(key), "spec", "clusters"))
            names = [string(each.get("name")) for each in bound]
            names = names or list(pinned_clusters(at(policies.get(key), "spec", "placement")))
            if len(names) == 1 and names[0] in clusters:
                yield key


def _job_of_binding(obj: Object) -> str:
    """Return the key of the vcjob of a ResourceBinding; empty for another kind of object."""
    kind, key = workload_of_binding(obj)
    return key if kind == VCJOBS.kind else ""


def _tainted(cluster: Object) -> Object:
    spec = mapping(cluster.get("spec"))
    return {**cluster, "spec": {**spec, "taints": [*objects(spec.get("taints")), _DRAINED]}}


def _without_share(hyperjob: Object, gone: Collection[str]) -> Object:
    """Return a HyperJob whose status records no share for sub-jobs that are gone."""
    namespace = hyperjob["metadata"].get("namespace")
    kept = [
        {**item, **(_NO_SHARE if f"{namespace}/{item['name']}" in gone else {})}
        for item in objects(at(hyperjob, "status", "jobs"))
    ]
    if not kept:
        return hyperjob
    return {**hyperjob, "status": {**hyperjob["status"], "jobs": kept}}


def _as_used(cluster: Object, old: Object | None) -> Object:
    """Return an idle Cluster with the resources in use of the Cluster that it replaces."""
    used = mapping(at(old, "status", "resourceSummary"))
    summary = {**mapping(at(cluster, "status", "resourceSummary"))}
    summary |= {name: used[name] for name in _USED if name in used}
    return {**cluster, "status": {**cluster["status"], "resourceSummary": summary}}
