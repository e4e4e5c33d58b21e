"""The devices of resource claims: the pods of a sub-job name theirs in an annotation.

The ResourceClaimTemplates of a HyperJob are beside it in Karmada, and no reader of a vcjob or of a
pod has them: the annotation DEVICES has what they ask for, by device class. Claims that pods share
(`resourceClaimName`) have devices once for all pods, and are in no annotation.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import DEVICES
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, objects, string
from hyperjob_engine.devices import device_mark
from hyperjob_engine.expansion.templates import with_annotation
from hyperjob_engine.members.deviceclasses import devices_of_template
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import HyperJob, ReplicatedJob

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
