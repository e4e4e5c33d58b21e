"""Changes of the pods in a vcjob's template: checkpoint, devices, order, and lists without doubles.

Kubernetes allows an item twice in some lists of a pod, and the schema of a vcjob does not. A
terminationGracePeriodSeconds of the template stays as it is.

The ResourceClaimTemplates of a HyperJob are beside it in Karmada, and no reader of a vcjob or of a
pod has them: the annotation DEVICES has what they ask for, by device class. Claims that pods share
(`resourceClaimName`) have devices once for all pods, and are in no annotation.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import DEVICES, TASK_PRIORITY, task_name
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.stops import VOLUME_NAME
from hyperjob_core.api.wire import at, mapping, objects, string, strings
from hyperjob_engine.expansion.expand import turns_of
from hyperjob_engine.members.deviceclasses import devices_of_template
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import Checkpoint, HyperJob, ReplicatedJob
from hyperjob_engine.resources import device_mark

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


_NAMES: Final[Memo[Object, Collection[str]]] = Memo()
_MARKED: Final[Memo[Object, Object]] = Memo()


def claim_templates_of(template: Object) -> Collection[str]:
    """Return the names of the ResourceClaimTemplates in a vcjob template."""
    return _NAMES.of(id(template), template, _names)


def _names(template: Object) -> Collection[str]:
    return {name for task in objects(template.get("tasks")) for name in _named(task)}


def _named(task: Object) -> list[str]:
    claims = objects(at(task, "template", "spec", "resourceClaims"))
    return [name for each in claims if (name := string(each.get("resourceClaimTemplateName")))]


def with_devices(hyperjob: HyperJob, look_up: Callable[[str], Object | None]) -> HyperJob:
    """Return a HyperJob whose pods name the devices of their claims.

    `look_up` returns a ResourceClaimTemplate by namespace/name; a missing template has no devices.
    """
    if not any(claim_templates_of(each.template) for each in hyperjob.replicated_jobs):
        return hyperjob
    mark = partial(_marked, namespace=hyperjob.namespace, look_up=look_up)
    marked = (
        replace(mark(each), options=tuple(map(mark, each.options)))
        for each in hyperjob.replicated_jobs
    )
    return replace(hyperjob, replicated_jobs=tuple(marked))


def _marked(
    group: ReplicatedJob, *, namespace: str, look_up: Callable[[str], Object | None]
) -> ReplicatedJob:
    marks = []
    for task in objects(group.template.get("tasks")):
        found: Counter[str] = Counter()
        for name in _named(task):
            found.update(devices_of_template(look_up(f"{namespace}/{name}") or {}))
        marks.append(device_mark({name: amount // NANO for name, amount in found.items()}))
    if not any(marks):
        return group
    make = partial(_with_marks, marks)
    template = _MARKED.of((id(group.template), *marks), group.template, make)
    return replace(group, template=template)


def _with_marks(marks: list[str], template: Object) -> Object:
    tasks = [
        with_annotation(task, DEVICES, mark) if mark else task
        for task, mark in zip(objects(template.get("tasks")), marks, strict=True)
    ]
    return {**template, "tasks": tasks}


def in_order(template: Object) -> Object:
    """Return a vcjob's template whose pods Volcano takes in the order that placement counts with.

    Without priorities it takes the first pod of each task, then the second ones: a small pod may
    get the node that a large one needs. Templates with priorities of their own stay as they are.
    """
    tasks, turns = objects(template.get("tasks")), turns_of(template)
    ranks = sorted(set(turns), reverse=True)
    if len(ranks) < 2 or any(map(_has_priority, tasks)):
        return template
    pairs = zip(tasks, turns, strict=True)
    ordered = [
        with_annotation(task, TASK_PRIORITY, str(1 + ranks.index(turn))) for task, turn in pairs
    ]
    return {**template, "tasks": ordered}


def _has_priority(task: Object) -> bool:
    template = task.get("template")
    given = at(template, "spec", "priorityClassName")
    return bool(given) or TASK_PRIORITY in mapping(at(template, "metadata", "annotations"))
