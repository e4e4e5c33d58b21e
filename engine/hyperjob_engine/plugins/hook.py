"""The plugins' step of a plan: new vcjobs get the plugins' changes, outdated ones are recreated.

Volcano refuses later changes of a vcjob's variables. Each vcjob has a mark with the digest of the
plugins' changes. A vcjob that no member has received is recreated if the plugins would now write
other changes; a vcjob in a member stays as it is. A HyperJob without plugins has no such step.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import WORLD
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.plugins import NAME_PATTERN, OFF, PLUGINS, have_hosts, values_of
from hyperjob_core.api.wire import natural
from hyperjob_core.kube.resources import SERVICE_EXPORTS
from hyperjob_engine.expansion.objects import labels_of, owner_reference
from hyperjob_engine.lifecycle.records import next_attempt
from hyperjob_engine.model.observed import HyperJob, Job, Observed, Ownership
from hyperjob_engine.model.planned import Action, CreateChild, DeleteChild, DeletionCause, Repin
from hyperjob_engine.model.subjobs import Child, SubJob
from hyperjob_engine.plugins.frameworks import ACTING
from hyperjob_engine.plugins.world import (
    PluginContext,
    TaskPods,
    UnknownHostError,
    World,
    WorldSubJob,
    svc_arguments,
    with_service,
    with_variables,
    world_of,
)
from hyperjob_engine.reasons.reason import Blocked, Reason

LONGEST_VALUE: Final = 128 * 1024 - 256
"""Bytes of a variable's value: Linux starts no process with a variable of 128 KiB in total."""


class TooLongError(ValueError):
    """The value of a plugin's variable would be longer than LONGEST_VALUE."""


def equip(template: Object, name: str, world: World) -> tuple[Object, str]:
    """Return a sub-job's template with the changes of its plugins, and its mark with their digest.

    Raises UnknownHostError if a pod that a variable must name has no cluster yet, and TooLongError.
    """
    sub_job = world.by_name[name]
    if have_hosts(world.hyperjob.plugins):
        template = with_service(template)
    written: list[Object] = []
    tasks = {task_pods.task: task_pods for task_pods in sub_job.tasks}

    def variables(task: str, container: Object) -> Sequence[Object]:
        found = list(_variables(world, sub_job, tasks[task], container))
        written.extend(found)
        return found

    changed = with_variables(template, variables)
    digest = sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()
    return changed, f"{world.generation}.{digest[:16]}"


def export_of(hyperjob: HyperJob, name: str) -> Object | None:
    """Return the ServiceExport of a sub-job, without labels; None if no plugin exports Services."""
    if not have_hosts(hyperjob.plugins) or svc_arguments(hyperjob.plugins).get("export") in OFF:
        return None
    return {
        **SERVICE_EXPORTS.head,
        "metadata": {
            "name": name,
            "namespace": hyperjob.namespace,
            "ownerReferences": [owner_reference(hyperjob)],
        },
    }


def _variables(
    world: World, sub_job: WorldSubJob, task_pods: TaskPods, container: Object
) -> Iterator[Object]:
    """Yield the variables that the plugins set in one container, each name once."""
    given = world.hyperjob.plugins
    pattern = svc_arguments(given).get("name-pattern") or NAME_PATTERN
    seen: set[str] = set()
    for name, plugin in ACTING.items():
        if name not in given:
            continue
        arguments = values_of(given[name], PLUGINS[name].flags)
        place = PluginContext(world=world, sub_job=sub_job, pattern=pattern, arguments=arguments)
        for variable in plugin(place, task_pods, container):
            if len(variable.get("value", "")) > LONGEST_VALUE:
                raise TooLongError(
                    f"plugin {name}: {variable['name']} would be longer than {LONGEST_VALUE} bytes;"
                    " make fewer pods, or a shorter --name-pattern of plugin svc"
                )
            if variable["name"] not in seen:
                seen.add(variable["name"])
                yield variable


Children = Sequence[tuple[SubJob, Child]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugged:
    """The changed actions, the sub-jobs that must wait, and the sub-jobs to recreate."""

    actions: list[Action]
    blocked: Mapping[str, Blocked]
    outdated: frozenset[str]


def set_up(
    observed: Observed,
    children: Children,
    actions: Sequence[Action],
    *,
    assigned: Mapping[str, str],
    minimum: int,
) -> Plugged:
    """Apply the plugins to the planned actions; `children` are in the order of the spec."""
    hyperjob = observed.hyperjob
    if not hyperjob.plugins:
        return Plugged(actions=list(actions), blocked={}, outdated=frozenset())
    moved = {action.name: action.cluster for action in actions if isinstance(action, Repin)}
    world = world_of(
        hyperjob,
        [sub_job for sub_job, _ in children],
        attempts={child.name: next_attempt(child) for _, child in children},
        clusters={
            child.name: assigned.get(child.name) or moved.get(child.name) or _pin(child)
            for _, child in children
        },
        generation=_generation(children),
        minimum=minimum,
    )
    wanted = {sub_job.name: sub_job for sub_job, _ in children}
    blocked: dict[str, Blocked] = {}
    planned: list[Action] = []
    for action in actions:
        if isinstance(action, CreateChild):
            try:
                planned.append(_equipped(wanted[action.name], action, world))
            except UnknownHostError as error:
                blocked[action.name] = Blocked(Reason.WAITING_FOR_HOST, str(error))
            except TooLongError as error:
                blocked[action.name] = Blocked(Reason.INVALID_SPEC, str(error))
        else:
            planned.append(action)
    leaving = {action.name for action in planned if isinstance(action, DeleteChild)}
    # Without their policies: the new vcjobs go to the same clusters.
    again = {
        child.name: DeleteChild(
            name=child.name, job_uid=job.uid, policy_uid=None, why=DeletionCause.OTHER_CLUSTERS
        )
        for sub_job, child in children
        if child.name not in leaving
        and (job := child.job) is not None
        and _is_outdated(sub_job, child, job, world)
    }
    return Plugged(actions=[*planned, *again.values()], blocked=blocked, outdated=frozenset(again))


def withdrawing(hyperjob: HyperJob, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return the actions, where the deletion of a whole sub-job deletes its ServiceExport too."""
    if not hyperjob.plugins:
        return tuple(actions)
    return tuple(
        replace(action, export=export_of(hyperjob, action.name))
        if isinstance(action, DeleteChild) and action.policy_uid
        else action
        for action in actions
    )


def generation_of(mark: str) -> int | None:
    """Return the generation of the world in a vcjob's mark; None for any other text."""
    number, dot, _ = mark.partition(".")
    return natural(number) if dot else None


def _generation(children: Children) -> int:
    """Return the generation of the present world, or of a new one.

    A new world starts if no vcjob of a present attempt exists, as after a restart of all sub-jobs.
    Its generation is new because the highest attempt has grown.
    """
    standing = (
        generation_of(child.job.world)
        for _, child in children
        if child.exists and child.job is not None
    )
    found = [generation for generation in standing if generation is not None]
    return max(found) if found else max((child.attempt for _, child in children), default=0)


def _pin(child: Child) -> str:
    """Return the cluster of a sub-job by its policy, which Karmada follows a moment later."""
    if child.policy is not None and len(child.policy.clusters) == 1:
        return child.policy.clusters[0]
    return child.cluster


def _equipped(sub_job: SubJob, action: CreateChild, world: World) -> CreateChild:
    """Return the creation of a sub-job with the plugins' changes and its mark.

    The ServiceExport, if there is one, is in the policy too: Karmada takes it to the same cluster.
    Raises UnknownHostError and TooLongError.
    """
    job, policy, hyperjob = action.job, action.policy, world.hyperjob
    export = export_of(hyperjob, action.name)
    if job is not None:
        spec, mark = equip(job["spec"], action.name, world)
        metadata: Object = job["metadata"]
        marks = {**(metadata.get("annotations") or {}), WORLD: mark}
        job = {**job, "metadata": {**metadata, "annotations": marks}, "spec": spec}
    if export is not None and policy is not None:
        selector = {
            "apiVersion": export["apiVersion"],
            "kind": export["kind"],
            "namespace": hyperjob.namespace,
            "name": action.name,
        }
        selectors = [*policy["spec"]["resourceSelectors"], selector]
        policy = {**policy, "spec": {**policy["spec"], "resourceSelectors": selectors}}
    if export is not None:
        labels = labels_of(hyperjob, sub_job.group.name, sub_job.index)
        export = {**export, "metadata": {**export["metadata"], "labels": labels}}
    return replace(action, job=job, policy=policy, export=export)


def _is_outdated(sub_job: SubJob, child: Child, job: Job, world: World) -> bool:
    """Return whether a vcjob that no cluster has received has variables of an earlier world."""
    if not child.exists or job.ownership is not Ownership.OURS:
        return False
    if generation_of(job.world) is None or child.phase is not JobPhase.UNKNOWN:
        return False
    if child.binding is not None and child.binding.applied:
        return False
    try:
        _, mark = equip(sub_job.size.template, child.name, world)
    except (UnknownHostError, TooLongError):
        return False  # a new vcjob would have the same unknown host
    return job.world != mark
