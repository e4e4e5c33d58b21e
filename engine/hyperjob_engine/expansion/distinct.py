"""Lists of a pod in which Kubernetes allows an item twice, and the schema of a vcjob does not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, objects, string, strings

_Change = Callable[[Sequence[Object]], list[Object]]


def distinct(template: Object) -> Object:
    """Return a vcjob's template in which each such list has an item once, for the same pods."""
    return {**template, "tasks": [_task(task) for task in objects(template.get("tasks"))]}


def _task(task: Object) -> Object:
    template = mapping(task.get("template"))
    spec = _with_lists(mapping(template.get("spec")), _OF_PODS)
    boxes = {
        field: [_with_lists(each, _OF_CONTAINERS) for each in objects(spec[field])]
        for field in ("initContainers", "containers")
        if field in spec
    }
    return {**task, "template": {**template, "spec": {**spec, **boxes}}}


def _with_lists(obj: Object, changes: Mapping[str, _Change]) -> Object:
    found = {field: objects(obj.get(field)) for field in changes}
    return obj | {field: changes[field](given) for field, given in found.items() if len(given) > 1}


def _variables(given: Sequence[Object]) -> list[Object]:
    """Return the last variable of each name, and an earlier one to which a value refers."""
    last = {string(each.get("name")): index for index, each in enumerate(given)}
    return [
        each
        for index, each in enumerate(given)
        if (until := last[name := string(each.get("name"))]) == index
        or any(f"$({name})" in string(later.get("value")) for later in given[index + 1 : until + 1])
    ]


def _first(key: Callable[[Object], object]) -> _Change:
    def change(given: Sequence[Object]) -> list[Object]:
        found: dict[object, Object] = {}
        for each in given:
            found.setdefault(key(each), each)
        return [*found.values()]

    return change


def _aliases(given: Sequence[Object]) -> list[Object]:
    """Return one item for each address, with the host names of all."""
    found: dict[str, Object] = {}
    for each in given:
        alias = found.setdefault(string(each.get("ip")), {**each, "hostnames": []})
        alias["hostnames"] += strings(each.get("hostnames"))
    return [*found.values()]


_OF_PODS: Final[Mapping[str, _Change]] = {
    "imagePullSecrets": _first(lambda secret: secret.get("name")),
    "hostAliases": _aliases,
}
_OF_CONTAINERS: Final[Mapping[str, _Change]] = {
    "env": _variables,
    "ports": _first(lambda port: (port.get("containerPort"), port.get("protocol", "TCP"))),
}
