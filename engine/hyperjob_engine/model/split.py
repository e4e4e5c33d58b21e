"""The sizes of a split: how many accelerators each sub-job gets, and which task scales for that.

The sum of the sizes is exactly the requested number; else SplitError says what to change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, mapping, objects
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import SplitPolicy
from hyperjob_engine.resources import Resources, devices_of, pod_request, whole

_MOST_PARTS: Final = 128
_REQUESTS: Final[Memo[Object, Resources]] = Memo()
_SCALES: Final[Memo[Object, "Scale"]] = Memo()


class SplitError(ValueError):
    """The template cannot have the requested accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How a template scales: `fixed` accelerators, plus `per_pod` for each pod of one task."""

    task: int
    pods: int
    per_pod: int
    fixed: int

    @property
    def accelerators(self) -> int:
        """Return the accelerators of the template as it is."""
        return self.fixed + self.pods * self.per_pod

    def divides(self, accelerators: int) -> bool:
        """Return whether sub-jobs of whole pods can have so many accelerators together."""
        most = min(accelerators // (self.fixed + self.per_pod), self.per_pod)
        numbers = range(1, 1 + min(most, _MOST_PARTS))
        return any((accelerators - each * self.fixed) % self.per_pod == 0 for each in numbers)


def request_of(task: Object) -> Resources:
    """Return the request of one pod of a task, in nano-units; callers must not change it.

    It is computed once for each pod template in the informer caches, which share equal parts of
    objects and replace objects without changing them.
    """
    template = mapping(task.get("template"))
    return _REQUESTS.of(id(template), template, _request)


def _request(template: Object) -> Resources:
    return {**pod_request(mapping(template.get("spec"))), **devices_of(template.get("metadata"))}


def scale_of(template: Object, accelerator: str) -> Scale:
    """Return the scale of a template; the largest task that requests the accelerator scales.

    Raises SplitError if no task requests the accelerator, or one requests a fraction of it.
    """
    return _SCALES.of((id(template), accelerator), template, partial(_scale, accelerator))


def _scale(accelerator: str, template: Object) -> Scale:
    best: Scale | None = None
    total = 0
    for index, task in enumerate(objects(template.get("tasks"))):
        request = request_of(task)
        per_pod, rest = divmod(request.get(accelerator, 0), whole(1))
        if rest:
            raise SplitError(f"task {task.get('name')!r} requests a fraction of {accelerator}")
        if not per_pod:
            continue
        pods = count(task.get("replicas"))
        total += pods * per_pod
        if best is None or pods > best.pods:
            best = Scale(task=index, pods=pods, per_pod=per_pod, fixed=0)
    if best is None:
        raise SplitError(f"no task requests {accelerator}")
    return Scale(
        task=best.task,
        pods=best.pods,
        per_pod=best.per_pod,
        fixed=total - best.pods * best.per_pod,
    )


def static_sizes(split: SplitPolicy, template: Object, replicas: int) -> Sequence[int]:
    """Return the pods of the scaled task for each sub-job of a static split; raises SplitError.

    Several replicas share the accelerators as equally as whole pods allow. With one replica each
    sub-job has the size of the template, and the last one the rest of the total.
    """
    scale, wanted = split_scale(split, template), split.accelerators or 0
    if replicas > 1:
        return _share(wanted, scale, replicas)
    full, rest = divmod(wanted, _size_of(scale))
    sizes = [scale.pods] * full
    return [*sizes, *_share(rest, scale, 1)] if rest else sizes


def static_number(split: SplitPolicy, template: Object, replicas: int) -> int:
    """Return the number of sub-jobs of a static split, without a list; raises SplitError."""
    if replicas > 1:
        return replicas
    size = _size_of(split_scale(split, template))
    return -(-(split.accelerators or 0) // size)


def _size_of(scale: Scale) -> int:
    """Return the accelerators of a template; raises SplitError if there are none to divide by."""
    if scale.accelerators <= 0:
        raise SplitError("the template requests no accelerators, and gives the sub-jobs no size")
    return scale.accelerators


def split_scale(split: SplitPolicy, template: Object) -> Scale:
    """Return how the sub-jobs of a split scale; raises SplitError."""
    if not split.accelerators or split.accelerator_type is None:
        raise SplitError("splitPolicy needs accelerators and acceleratorType")
    return scale_of(template, split.accelerator_type)


def _share(wanted: int, scale: Scale, parts: int) -> list[int]:
    """Return the scaled pods of each of `parts` sub-jobs, the larger ones first; raises SplitError.

    Each sub-job has the `fixed` accelerators of the template beside them.
    """
    pods, rest = divmod(wanted - parts * scale.fixed, scale.per_pod)
    if rest or pods < parts:
        raise SplitError(
            f"{wanted} accelerators cannot be shared by {parts} sub-jobs with {scale.fixed} fixed"
            f" and {scale.per_pod} per pod: each needs a whole number of pods, at least one"
        )
    share, extra = divmod(pods, parts)
    return [share + 1 if part < extra else share for part in range(parts)]


def resized(template: Object, *, task: int, pods: int) -> Object:
    """Return the template with another number of pods in one task, and a scaled minAvailable.

    A minAvailable equal to all pods stays so; any other keeps its proportion, rounded up.
    """
    tasks = objects(template.get("tasks"))
    before = count(tasks[task].get("replicas"))
    if pods == before:
        return template
    changed = dict(tasks[task], replicas=pods)
    least = integer(changed.get("minAvailable"))
    if least is not None:
        changed["minAvailable"] = _follow(least, before, pods)
    result = dict(template, tasks=[*tasks[:task], changed, *tasks[task + 1 :]])
    least = integer(template.get("minAvailable"))
    if least is not None:
        all_before = sum(count(item.get("replicas")) for item in tasks)
        result["minAvailable"] = _follow(least, all_before, all_before - before + pods)
    return result


def _follow(least: int, before: int, after: int) -> int:
    if least == before or before <= 0:
        return after
    return min(after, -(-least * after // before))
