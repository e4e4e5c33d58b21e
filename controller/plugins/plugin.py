"""What a plugin is to the rest of the controller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.plugins.hosts import Hosts
from controller.plugins.world import Crew, Site, World
from hyperjob.api.meta import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The sub-job that a plugin sets up, in its world, with the plugin's arguments."""

    world: World
    site: Site
    hosts: Hosts
    arguments: Mapping[str, str]

    def host(self, site: Site, crew: Crew, index: int = 0) -> str:
        """Return the name by which this sub-job's pods look up a pod; raises UnknownHostError."""
        return self.hosts.name(self.world, self.site, site, crew, index)

    def number(self, name: str, default: int) -> int:
        """Return an argument that is a number."""
        text = self.arguments.get(name, "")
        try:
            return int(text, 0)
        except ValueError:
            return default


class Plugin(Protocol):
    """Gives each container of a sub-job the variables of a framework."""

    def variables(self, place: Place, crew: Crew, container: Object) -> Sequence[Object]:
        """Return the variables of one container; raises UnknownHostError."""
        ...
