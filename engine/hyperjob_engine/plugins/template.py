"""Changes of a vcjob's template: variables for its containers, plugins of Volcano.

A variable or an argument that the user wrote stays as it is.
"""

from collections.abc import Callable, Sequence

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.plugins import Flags, Kind, values_of
from hyperjob_core.api.wire import mapping, objects, string, strings

_SVC_FLAGS: Flags = {
    "publish-not-ready-addresses": Kind.SWITCH,
    "disable-network-policy": Kind.SWITCH,
    "inject-hosts-env": Kind.SWITCH,
}


def variable(name: str, value: object) -> Object:
    """Return a variable with a fixed value."""
    return {"name": name, "value": str(value)}


def from_field(name: str, path: str) -> Object:
    """Return a variable with the value of a field of the pod (`fieldRef`)."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def with_variables(template: Object, of: Callable[[str, Object], Sequence[Object]]) -> Object:
    """Return the template with variables before the user's in each container.

    `of` returns them for the name of a task and one of its containers. The user's variables can
    refer to them as $(NAME), because they come first.
    """
    tasks = [
        _task(task, task_name(task, index), of)
        for index, task in enumerate(objects(template.get("tasks")))
    ]
    return {**template, "tasks": tasks}


def with_service(template: Object) -> Object:
    """Return the template with Volcano's plugin svc, open to the pods of other sub-jobs.

    By default that plugin creates a NetworkPolicy which admits only pods of the same vcjob, and
    publishes no host name of a pod that is not ready.
    """
    plugins = mapping(template.get("plugins"))
    arguments = strings(plugins.get("svc"))
    given = values_of(arguments, _SVC_FLAGS)
    added = [
        f"--{name}=true"
        for name in ("publish-not-ready-addresses", "disable-network-policy")
        if name not in given
    ]
    return {**template, "plugins": {**plugins, "svc": [*arguments, *added]}}


def _task(task: Object, name: str, of: Callable[[str, Object], Sequence[Object]]) -> Object:
    """Return a task with variables in its init containers and containers."""
    template = mapping(task.get("template"))
    spec = mapping(template.get("spec"))
    changed = {
        field: [_container(container, of(name, container)) for container in objects(spec[field])]
        for field in ("initContainers", "containers")
        if field in spec
    }
    return {**task, "template": {**template, "spec": {**spec, **changed}}}


def _container(container: Object, variables: Sequence[Object]) -> Object:
    """Return a container with variables before its own; a name that the user has set stays."""
    own = objects(container.get("env"))
    taken = {string(each.get("name")) for each in own}
    added = [each for each in variables if each["name"] not in taken]
    return {**container, "env": [*added, *own]} if added else container
