"""Changes of the pods in a vcjob's template: what spec.checkpoint adds, and lists without doubles.

Kubernetes allows an item twice in some lists of a pod, and the schema of a vcjob does not. A
terminationGracePeriodSeconds of the template stays as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.stops import VOLUME_NAME
from hyperjob_core.api.wire import mapping, objects, string, strings
from hyperjob_engine.model.observed import Checkpoint

_Change = Callable[[Sequence[Object]], list[Object]]


def with_pods(template: Object, change: Callable[[str, Object], Object]) -> Object:
    """Return a vcjob's template with `change` of the name of each task and the spec of its pods."""
    tasks = []
    for index, task in enumerate(objects(template.get("tasks"))):
        pod = mapping(task.get("template"))
        spec = change(task_name(task, index), mapping(pod.get("spec")))
        tasks.append({**task, "template": {**pod, "spec": spec}})
    return {**template, "tasks": tasks}


def with_annotation(task: Object, key: str, value: str) -> Object:
    """Return a task whose pods have an annotation."""
    template = mapping(task.get("template"))
    metadata = mapping(template.get("metadata"))
    annotations = {**mapping(metadata.get("annotations")), key: value}
    return {**task, "template": {**template, "metadata": {**metadata, "annotations": annotations}}}


def with_containers(spec: Object, change: Callable[[Object], Object]) -> Object:
    """Return the spec of a pod with `change` of each of its init containers and containers."""
    lists = (field for field in ("initContainers", "containers") if field in spec)
    return {**spec, **{field: [change(each) for each in objects(spec[field])] for field in lists}}


def with_checkpoint(template: Object, checkpoint: Checkpoint | None) -> Object:
    """Return a vcjob's template with the grace period and the claim of spec.checkpoint."""
    if checkpoint is None:
        return template

    def saving(_task: str, spec: Object) -> Object:
        graceful = {"terminationGracePeriodSeconds": checkpoint.grace_seconds, **spec}
        return _mounted(graceful, checkpoint) if checkpoint.claim else graceful

    return with_pods(template, saving)


def _mounted(spec: Object, checkpoint: Checkpoint) -> Object:
    """Return a pod's spec with the claim as a volume, mounted in every container."""
    volume = {
        "name": VOLUME_NAME,
        "persistentVolumeClaim": {"claimName": checkpoint.claim},
    }
    mount = {"name": VOLUME_NAME, "mountPath": checkpoint.directory}
    mounted = with_containers(
        spec, lambda each: {**each, "volumeMounts": [*objects(each.get("volumeMounts")), mount]}
    )
    return {**mounted, "volumes": [*objects(spec.get("volumes")), volume]}


def distinct(template: Object) -> Object:
    """Return a vcjob's template in which each such list has an item once, for the same pods."""
    return with_pods(
        template,
        lambda _task, spec: with_containers(
            _with_lists(spec, _OF_PODS), lambda each: _with_lists(each, _OF_CONTAINERS)
        ),
    )


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
    """Return the change that keeps the first item of each key."""

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
