"""The application of all plugins to one vcjob template, and the ServiceExport of a sub-job."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import SERVICE_EXPORT_API_VERSION, SERVICE_EXPORT_KIND
from hyperjob_core.api.plugins import PLUGINS, have_hosts, values_of
from hyperjob_engine.expansion.objects import owner_reference
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.plugins.env import Env
from hyperjob_engine.plugins.hosts import hosts_of
from hyperjob_engine.plugins.jax import Jax
from hyperjob_engine.plugins.mpi import Mpi
from hyperjob_engine.plugins.plugin import Plugin, PluginContext
from hyperjob_engine.plugins.pytorch import PyTorch
from hyperjob_engine.plugins.template import with_service, with_variables
from hyperjob_engine.plugins.torchft import TorchFT
from hyperjob_engine.plugins.world import TaskPods, World, WorldMember

ACTING: Final[Mapping[str, Plugin]] = {
    "env": Env(),
    "jax": Jax(),
    "mpi": Mpi(),
    "pytorch": PyTorch(),
    "torchft": TorchFT(),
}
"""The plugins that set variables; svc changes only host names and Services."""

LONGEST_VALUE: Final = 128 * 1024 - 256
"""Bytes of a variable's value: Linux starts no process with a variable of 128 KiB in total."""


class TooLongError(ValueError):
    """The value of a plugin's variable would be longer than LONGEST_VALUE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipped:
    """A template with the changes of all plugins, and a digest of these changes."""

    template: Object
    digest: str


def equip(hyperjob: HyperJob, template: Object, member: WorldMember, world: World) -> Equipped:
    """Return a vcjob's template with the changes of its plugins.

    Raises UnknownHostError if a pod that a variable must name has no cluster yet, and TooLongError.
    """
    if have_hosts(hyperjob.plugins):
        template = with_service(template)
    written: list[Object] = []
    tasks = {task_pods.task: task_pods for task_pods in member.tasks}

    def variables(task: str, container: Object) -> Sequence[Object]:
        found = list(_variables(hyperjob, world, member, tasks[task], container))
        written.extend(found)
        return found

    changed = with_variables(template, variables)
    digest = sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()
    return Equipped(template=changed, digest=digest[:16])


def export_of(hyperjob: HyperJob, name: str) -> Object | None:
    """Return the ServiceExport of a sub-job, without labels; None if no plugin exports Services."""
    if not have_hosts(hyperjob.plugins) or not hosts_of(hyperjob.plugins).export:
        return None
    return {
        "apiVersion": SERVICE_EXPORT_API_VERSION,
        "kind": SERVICE_EXPORT_KIND,
        "metadata": {
            "name": name,
            "namespace": hyperjob.namespace,
            "ownerReferences": [owner_reference(hyperjob)],
        },
    }


def _variables(
    hyperjob: HyperJob, world: World, member: WorldMember, task_pods: TaskPods, container: Object
) -> Iterator[Object]:
    """Yield the variables that the plugins set in one container, each name once."""
    hosts = hosts_of(hyperjob.plugins)
    seen: set[str] = set()
    for name, plugin in ACTING.items():
        if name not in hyperjob.plugins:
            continue
        arguments = values_of(hyperjob.plugins[name], PLUGINS[name].flags)
        place = PluginContext(world=world, member=member, hosts=hosts, arguments=arguments)
        for variable in plugin.variables(place, task_pods, container):
            if len(variable.get("value", "")) > LONGEST_VALUE:
                raise TooLongError(
                    f"plugin {name}: {variable['name']} would be longer than {LONGEST_VALUE} bytes;"
                    " make fewer pods, or a shorter --name-pattern of plugin svc"
                )
            if variable["name"] not in seen:
                seen.add(variable["name"])
                yield variable
