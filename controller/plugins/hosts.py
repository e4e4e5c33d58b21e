"""Host names of pods, as a pod of the same sub-job and as one in another cluster looks them up."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.plugins.world import TaskPods, World, WorldMember
from hyperjob.api.arguments import OFF, values_of
from hyperjob.api.plugins import NAME_PATTERN, PLUGINS, fill, placeholders_of


class UnknownHostError(ValueError):
    """A host cannot be named yet: its sub-job has no cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """How pods are named, and whether Services are exported."""

    pattern: str
    export: bool

    def name(
        self,
        world: World,
        seen_from: WorldMember,
        member: WorldMember,
        task_pods: TaskPods,
        index: int,
    ) -> str:
        """Return the name of a pod; raises UnknownHostError.

        Within a sub-job Volcano's own headless Service answers, without the way through the
        clusters' common DNS.
        """
        pod = f"{member.name}-{task_pods.task}-{index}"
        if member.name == seen_from.name:
            return f"{pod}.{member.name}"
        if not member.cluster and self.names_clusters:
            raise UnknownHostError(
                f"waits for the cluster of {member.name}, whose pods it looks up"
            )
        return fill(
            self.pattern,
            {
                "pod": pod,
                "service": member.name,
                "namespace": world.namespace,
                "cluster": member.cluster,
            },
        )

    def service(
        self, world: World, seen_from: WorldMember, member: WorldMember, task_pods: TaskPods
    ) -> str:
        """Return the name of the only pod of a sub-job, the same wherever that pod runs.

        The name of its Service without those of pod and cluster; that of the pod where the pattern
        has no such name.
        """
        if member.name == seen_from.name or len(member.tasks) > 1 or task_pods.pods > 1:
            return self.name(world, seen_from, member, task_pods, 0)
        labels = self.pattern.split(".")
        rest = [label for label in labels if label not in ("{pod}", "{cluster}")]
        glued = any("{pod}" in label or "{cluster}" in label for label in rest)
        if glued or "{service}" not in rest:
            return self.name(world, seen_from, member, task_pods, 0)
        return fill(".".join(rest), {"service": member.name, "namespace": world.namespace})

    @property
    def names_clusters(self) -> bool:
        """Return whether a name changes with the cluster that a pod runs in."""
        return "cluster" in placeholders_of(self.pattern)


def hosts_of(plugins: Mapping[str, tuple[str, ...]]) -> Hosts:
    """Read how pods are named from the arguments of the plugin svc."""
    given = values_of(plugins.get("svc", ()), PLUGINS["svc"].flags)
    return Hosts(
        pattern=given.get("name-pattern") or NAME_PATTERN,
        export=given.get("export", "true") not in OFF,
    )
