"""The host names of pods, for look-ups from the same sub-job and from other clusters."""

from collections.abc import Mapping
from dataclasses import dataclass

from hyperjob_core.api.plugins import NAME_PATTERN, OFF, PLUGINS, fill, placeholders_of, values_of
from hyperjob_engine.plugins.world import TaskPods, World, WorldMember


class UnknownHostError(ValueError):
    """The host name of a pod is unknown: its sub-job has no cluster yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The naming of pods, and whether Services are exported."""

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

        Within a sub-job it is a name of Volcano's headless Service, which needs no DNS across
        clusters.
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
        """Return a name for the only pod of a sub-job that does not depend on its cluster.

        It is the name of its Service, without pod and cluster; the name of the pod if the pattern
        has no Service.
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
        """Return whether a host name contains the cluster of the pod."""
        return "cluster" in placeholders_of(self.pattern)


def hosts_of(plugins: Mapping[str, tuple[str, ...]]) -> Hosts:
    """Return the naming of pods from the arguments of the plugin svc."""
    given = values_of(plugins.get("svc", ()), PLUGINS["svc"].flags)
    return Hosts(
        pattern=given.get("name-pattern") or NAME_PATTERN,
        export=given.get("export", "true") not in OFF,
    )
