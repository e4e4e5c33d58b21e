"""The sub-jobs of a spec: their names, templates, sizes and placement wishes.

They depend on the spec alone, not on existing objects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hyperjob_core.api.limits import MAX_PODS, MAX_SUB_JOBS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import count, integer, mapping, objects
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import HyperJob, ReplicatedJob, SplitPolicy
from hyperjob_engine.model.request import (
    Items,
    Kind,
    in_one_bundle,
    in_partitions,
    kind_of,
    precedence,
    tier_of,
)
from hyperjob_engine.model.split import (
    Scale,
    SplitError,
    request_of,
    resized,
    split_scale,
    static_number,
    static_sizes,
)
from hyperjob_engine.model.subjobs import Group, Size, SubJob, option_of
from hyperjob_engine.model.wants import wants_of
from hyperjob_engine.resources import PODS, Resources, accelerator_of, is_part, scale, total, whole

_SIZES: Final[Memo[Object, Size]] = Memo()


class SpecError(ValueError):
    """The spec is invalid, for the reason in the text; the webhook normally refuses it before."""


def expand(
    hyperjob: HyperJob, shares: Mapping[str, Sequence[int]] | None = None
) -> tuple[Group, ...]:
    """Return all groups with their sizes; raises SpecError.

    `shares` are the pods of the scaled task of each sub-job of an automatic split, by
    replicatedJob; without them one sub-job represents the whole split.
    """
    if not hyperjob.replicated_jobs:
        raise SpecError("spec.replicatedJobs is empty")
    check_size(hyperjob)
    shares = shares or {}
    return tuple(expand_group(group, shares.get(group.name)) for group in hyperjob.replicated_jobs)


def check_size(hyperjob: HyperJob) -> None:
    """Raise SpecError for a HyperJob with more sub-jobs or pods than the limits allow.

    The check allocates no sub-job. The webhook refuses such a HyperJob; a HyperJob that was stored
    without the webhook must not use up the controller's memory.
    """
    jobs = pods = 0
    for group in hyperjob.replicated_jobs:
        number = sub_job_count(group)
        jobs += number
        pods += _pod_count(group, number)
    if jobs > MAX_SUB_JOBS:
        raise SpecError(f"it has {jobs} sub-jobs, and may have at most {MAX_SUB_JOBS}")
    if pods > MAX_PODS:
        raise SpecError(f"it has {pods} pods, and may have at most {MAX_PODS}")


def sub_job_count(group: ReplicatedJob) -> int:
    """Return the number of sub-jobs of a replicatedJob by its spec; 1 for an automatic split.

    Raises SpecError.
    """
    if group.split is None:
        return group.replicas
    if group.split.mode == "auto":
        return 1
    try:
        return static_number(group.split, group.template, group.replicas)
    except SplitError as error:
        raise _split_error(group, error) from error


def _pod_count(group: ReplicatedJob, number: int) -> int:
    """Return the number of pods of a replicatedJob's sub-jobs."""
    template = sum(count(task.get("replicas")) for task in objects(group.template.get("tasks")))
    if group.split is None:
        return number * template
    split, scale = scale_of_group(group)
    scaled = max(0, (split.accelerators or 0) - number * scale.fixed) // scale.per_pod
    return number * (template - scale.pods) + scaled


def scale_of_group(group: ReplicatedJob) -> tuple[SplitPolicy, Scale]:
    """Return the split of a replicatedJob, and how its sub-jobs scale; raises SpecError."""
    if group.split is None:
        raise SpecError(f"replicatedJob {group.name!r}: it has no splitPolicy")
    try:
        return group.split, split_scale(group.split, group.template)
    except SplitError as error:
        raise _split_error(group, error) from error


def _split_error(group: ReplicatedJob, error: SplitError) -> SpecError:
    return SpecError(f"replicatedJob {group.name!r}: {error}")


def expand_group(group: ReplicatedJob, shares: Sequence[int] | None = None) -> Group:
    """Return one group with its sizes; raises SpecError."""
    return Group(replicated_job=group, sizes=_sizes(group, shares))


def sub_jobs(
    hyperjob: HyperJob, groups: Sequence[Group], indices: Mapping[str, Sequence[int]]
) -> Iterator[SubJob]:
    """Yield the sub-jobs of every group, named by the indices in use, in the order of the spec."""
    for group in groups:
        name = group.replicated_job.name
        for position, index in enumerate(indices[name]):
            own, size, alternative = group.replicated_job, group.sizes[position], ""
            if own.own is not None:
                own = option_of(own, index)
                size, alternative = _size(own.template, None), own.shape
            yield SubJob(
                name=child_name(hyperjob.name, name, index),
                group=own,
                index=index,
                size=size,
                alternative=alternative,
            )


def demand_of(template: Object, *, existing: int = 0) -> dict[str, int]:
    """Return the sum of the requests of a vcjob's pods, `pods` among the resources.

    They are the pods without which Volcano starts none, or as many as exist, if these are more.
    """
    return total(
        scale(_with_pod(task), number)
        for task, number in zip(
            objects(template.get("tasks")), fewest_of(template, existing), strict=True
        )
    )


def demand_of_all(template: Object) -> dict[str, int]:
    """Return the sum of the requests of all pods of a vcjob, `pods` among the resources."""
    tasks = objects(template.get("tasks"))
    return total(scale(_with_pod(task), count(task.get("replicas"))) for task in tasks)


def fewest_of(template: Object, existing: int = 0) -> tuple[int, ...]:
    """Return the pods of each task that start together, or `existing` pods, if these are more.

    They are those of Volcano's PodGroup: `minAvailable` of each task, all its pods by default, and
    further pods in the order of the tasks up to `minAvailable` of the vcjob. A vcjob that asks for
    fewer pods than its tasks do starts with any of them.
    """
    tasks = objects(template.get("tasks"))
    most = _all_of(tasks)
    least = [
        number if task.get("partitionPolicy") else min(_least(task, number), number)
        for task, number in zip(tasks, most, strict=True)
    ]
    wanted = max(integer(template.get("minAvailable")) or sum(least), existing)
    if wanted < sum(least):
        return tuple(_filled(least, [0] * len(least), wanted))
    return tuple(_filled(most, least, wanted - sum(least)))


def _least(task: Object, number: int) -> int:
    given = integer(task.get("minAvailable"))
    return number if given is None else max(given, 0)


def _filled(most: Sequence[int], start: Sequence[int], more: int) -> Iterator[int]:
    """Yield the pods of each task: those of `start`, and `more` in order, up to `most` each."""
    for limit, number in zip(most, start, strict=True):
        added = min(limit - number, more)
        more -= added
        yield number + added


def _with_pod(task: Object) -> Resources:
    """Return the request of one pod of a task, `pods` among the resources."""
    asked = {name: amount for name, amount in request_of(task).items() if amount > 0}
    return {**asked, PODS: whole(1)}


def items_of(template: Object, *, all_pods: bool = False) -> Items:
    """Return the pods of a vcjob that start together, or all, with their demands on nodes.

    They are in the order in which they take nodes. Those of a vcjob that wants one HyperNode are
    all: Volcano uses no HyperNode without room for all of them.
    """
    tasks = objects(template.get("tasks"))
    numbers = _all_of(tasks) if all_pods else _placed(template)
    triples = sorted(zip(turns_of(template), numbers, range(len(tasks)), strict=True))
    pods = (each for _, number, i in triples for each in items_of_task(tasks[i], number))
    return in_one_bundle(pods, tier_of(template))


def turns_of(template: Object) -> list[tuple[object, ...]]:
    """Return the sort key of each task of a vcjob: the order in which the tasks take nodes.

    Those of which all pods must start go first, by `precedence`, and those of which none must start
    last. The others are equal: Volcano takes the first pod of each, then the second ones. More pods
    than must start would else take the room of those of another task.
    """
    tasks = objects(template.get("tasks"))
    return [
        (0, *precedence(items_of_task(task, number)[0][0]))
        if 0 < number == count(task.get("replicas"))
        else (1 if number else 2,)
        for task, number in zip(tasks, _placed(template), strict=True)
    ]


def _placed(template: Object) -> tuple[int, ...]:
    """Return the pods of each task that find nodes together, or not at all."""
    if tier_of(template) is None:
        return fewest_of(template)
    return _all_of(objects(template.get("tasks")))


def _all_of(tasks: Iterable[Object]) -> tuple[int, ...]:
    return tuple(count(task.get("replicas")) for task in tasks)


def items_of_task(task: Object, number: int) -> Items:
    """Return pods of a task, with the HyperNodes that its partitions want."""
    return in_partitions(kind_of_task(task), number, task)


def kind_of_task(task: Object) -> Kind:
    """Return the kind of the pods of a task."""
    return kind_of(_with_pod(task), wants_of(mapping(task.get("template"))))


def _sizes(group: ReplicatedJob, shares: Sequence[int] | None) -> Sequence[Size]:
    """Return the size of each sub-job of a replicatedJob, in order; raises SpecError.

    `shares` are those of an automatic split; without them one size represents the whole split.
    """
    if group.split is None:
        return [_size(group.template, None)] * group.replicas
    split, scale = scale_of_group(group)
    try:
        if split.mode != "auto":
            shares = static_sizes(split, group.template, group.replicas)
    except SplitError as error:
        raise _split_error(group, error) from error
    if shares is None:
        return [_whole(group.template, split, scale)]
    by_pods = {
        pods: _size(group.template, split.accelerator_type, (scale.task, pods))
        for pods in set(shares)
    }
    return [by_pods[pods] for pods in shares]


def _whole(template: Object, split: SplitPolicy, scale: Scale) -> Size:
    """Return an undecided automatic split as one sub-job."""
    wanted = split.accelerators or 0
    pods = max(1, -(-(wanted - scale.fixed) // scale.per_pod))
    size = _size(template, split.accelerator_type, (scale.task, pods))
    return replace(size, accelerators=wanted)


def _size(template: Object, accelerator: str | None, scaled: tuple[int, int] | None = None) -> Size:
    """Return the size of a template, where `scaled` gives a task another number of pods.

    It is computed once for each template in the informer caches, as `request_of` explains.
    """

    def size(_template: Object) -> Size:
        if scaled is None:
            return _measured(template, accelerator)
        task, pods = scaled
        return _measured(resized(template, task=task, pods=pods), accelerator)

    return _SIZES.of((id(template), accelerator, scaled), template, size)


def _number(tasks: list[Object], sums: Resources, measure: str, counted: str | None) -> int:
    """Return the accelerators of all pods: a pod with parts of devices alone has one device."""
    if counted is not None or not is_part(measure):
        return sums.get(measure, 0) // NANO
    return sum(count(task.get("replicas")) for task in tasks if _with_pod(task).get(measure))


def _measured(template: Object, accelerator: str | None) -> Size:
    # The accelerators of a split are a whole: each sub-job has its exact share of them.
    items = items_of(template, all_pods=accelerator is not None)
    tasks = objects(template.get("tasks"))
    everything = demand_of_all(template)
    demand = everything if accelerator is not None else demand_of(template)
    measure = accelerator or accelerator_of(everything)
    return Size(
        template=template,
        demand=demand,
        everything=demand if everything == demand else everything,
        accelerators=None if measure is None else _number(tasks, everything, measure, accelerator),
        pods=sum(count(task.get("replicas")) for task in tasks),
        items=items,
    )
