"""The interface of a plugin, and the context in which the controller calls it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import number_of
from hyperjob_engine.plugins.hosts import Hosts
from hyperjob_engine.plugins.world import TaskPods, World, WorldMember


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """The sub-job for which a plugin is called, its world and the plugin's arguments."""

    world: World
    member: WorldMember
    hosts: Hosts
    arguments: Mapping[str, str]

    def host(self, member: WorldMember, task_pods: TaskPods, index: int = 0) -> str:
        """Return the name by which this sub-job's pods look up a pod; raises UnknownHostError."""
        return self.hosts.name(self.world, self.member, member, task_pods, index)

    def number(self, name: str, default: int) -> int:
        """Return the number of an argument `--name=number`, else the default."""
        number = number_of(self.arguments.get(name, ""))
        return default if number is None else number


class Plugin(Protocol):
    """A plugin: it returns the variables of a framework for each container of a sub-job."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return the variables of one container; raises UnknownHostError."""
        ...
