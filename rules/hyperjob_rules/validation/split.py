"""Validation of split policies: whether whole pods can have the requested accelerators.

A split scales one task of a sub-job, the task with the most pods that request the accelerator. All
other tasks keep their number of pods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final, NamedTuple

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import BOUNDS, SPLIT_BOUNDS
from hyperjob_core.api.quantity import NANO
from hyperjob_rules.validation.forms import check, pod_spec_of, tasks_of, try_parse_amount
from hyperjob_rules.validation.rules import Report

_OPEN: Final = frozenset({*BOUNDS, "splitPolicy", "alternatives"})

MANY_CLUSTERS: Final = 100
"""The sub-jobs that an automatic split without maxDomains counts as: one for each cluster."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The pods of one task, and the accelerators of each pod."""

    pods: int
    each: int

    @property
    def total(self) -> int:
        """Accelerators of all pods."""
        return self.pods * self.each


@dataclass(frozen=True, slots=True)
class Sizes:
    """The accelerators of a template: `total`, of which a split keeps `fixed`.

    The other accelerators are those of the scaled task: its index, and `step` for each of its pods.
    """

    total: int
    fixed: int
    task: int
    step: int


class JobSize(NamedTuple):
    """The most sub-jobs and pods that a replicatedJob can have."""

    sub_jobs: int | None
    """None for an automatic split, which has no fixed number."""
    pods: int
    """The pods of all sub-jobs together, with and without the split."""
    pods_of_tasks: Sequence[int]
    """The pods of each task in all sub-jobs together, after a split."""


def sub_jobs(job: Object) -> int | None:
    """Return the number of sub-jobs of a replicatedJob; None for an automatic split."""
    replicas = job.get("replicas")
    replicas = 1 if replicas is None else replicas
    policy = job.get("splitPolicy")
    if not policy:
        return max(replicas, 0)
    if policy.get("mode") == "auto":
        return None
    accelerators, kind = policy.get("accelerators"), policy.get("acceleratorType")
    if replicas != 1 or not accelerators or not kind:
        return max(replicas, 0)
    sizes = sizes_of(job, kind)
    return -(-accelerators // sizes.total) if sizes is not None else 1


def is_elastic(job: Object) -> bool:
    """Return whether a replicatedJob leaves its size open."""
    if job.keys().isdisjoint(_OPEN):
        return False
    policy = job.get("splitPolicy") or {}
    given = [*map(job.get, BOUNDS), *map(policy.get, SPLIT_BOUNDS)]
    shapes = job.get("alternatives") or ()
    return any(each is not None for each in given) or any(map(is_elastic, shapes))


def size_of(job: Object) -> JobSize:
    """Return how many sub-jobs and pods a replicatedJob has at most.

    An automatic split may make a sub-job for each pod of the scaled task.
    """
    count = sub_jobs(job)
    each = [max(task.get("replicas") or 0, 0) for task in tasks_of(job)]
    unsplit = [(count or 1) * pods for pods in each]
    policy = job.get("splitPolicy") or {}
    accelerators = policy.get("accelerators")
    sizes = sizes_of(job, policy.get("acceleratorType"))
    if not accelerators or sizes is None:
        return JobSize(count, sum(unsplit), unsplit)
    many = min(accelerators // sizes.step, MANY_CLUSTERS) if count is None else count
    split = [many * pods for pods in each]
    split[sizes.task] = -(-accelerators // sizes.step)
    return JobSize(count, max(sum(unsplit), sum(split)), split)


def largest_task(job: Object) -> tuple[int, int] | None:
    """Return the index of the task that a split makes larger, and its most pods in a sub-job.

    None without such a split: a static one of a single replica only adds sub-jobs.
    """
    policy = job.get("splitPolicy") or {}
    accelerators, is_auto = policy.get("accelerators"), policy.get("mode") == "auto"
    count = 1 if is_auto else job.get("replicas") or 1
    sizes = sizes_of(job, policy.get("acceleratorType"))
    if not accelerators or sizes is None or (count == 1 and not is_auto):
        return None
    pods = (accelerators - count * sizes.fixed) // sizes.step
    return sizes.task, -(-pods // count)


def validate_split(job: Object, path: Path, report: Report, *, max_domains: int | None) -> None:
    """Check the split policy of a replicatedJob against its template."""
    policy, at = job["splitPolicy"], path.child("splitPolicy")
    mode = policy.get("mode") or "static"
    replicas = job.get("replicas")
    if mode == "auto" and replicas not in {None, 1}:
        report.add("X7.auto-replicas", path.child("replicas"))
    accelerators, kind = policy.get("accelerators"), policy.get("acceleratorType") or ""
    if not _validate_complete(mode, accelerators, kind, at, report):
        return
    if not check(formats.qualified_name, kind, at, report, "acceleratorType"):
        return
    sizes = sizes_of(job, kind)
    if sizes is None:
        hint = report.hints.did_you_mean(kind, requested(job))
        report.add("X7.not-requested", at.child("acceleratorType"), kind, hint=hint)
        return
    reason = _misfit(accelerators, mode, replicas or 1, sizes, max_domains)
    if reason:
        report.add("X7.not-whole", at.child("accelerators"), accelerators, reason=reason)


def _validate_complete(
    mode: str, accelerators: int | None, kind: str, path: Path, report: Report
) -> bool:
    """Check that accelerators and acceleratorType are set together; return whether both are."""
    if accelerators is None and not kind:
        if mode == "auto":
            when = "when `mode` is auto"
            report.add("X7.incomplete", path.child("accelerators"), when=when)
            report.add("X7.incomplete", path.child("acceleratorType"), when=when)
        return False
    if accelerators is None:
        report.add(
            "X7.incomplete", path.child("accelerators"), when="together with `acceleratorType`"
        )
    if not kind:
        report.add(
            "X7.incomplete", path.child("acceleratorType"), when="together with `accelerators`"
        )
    return accelerators is not None and bool(kind)


def sizes_of(job: Object, kind: str | None) -> Sizes | None:
    """Return the accelerators of one type in a template; None if its pods request none.

    The scaled task is the first with the most pods that request the accelerator.
    """
    found = list(demands(job, kind)) if kind else []
    asking = [index for index, demand in enumerate(found) if demand.total]
    if not asking:
        return None
    scaled = max(asking, key=lambda index: found[index].pods)
    total = sum(demand.total for demand in found)
    return Sizes(
        total=total, fixed=total - found[scaled].total, task=scaled, step=found[scaled].each
    )


def demands(job: Object, kind: str) -> Iterator[Demand]:
    """Yield the demand of each task of a replicatedJob for one type of accelerator."""
    for task in tasks_of(job):
        spec = pod_spec_of(task)
        running = sum(_limit(container, kind) for container in spec.get("containers") or ())
        before = max((_limit(c, kind) for c in spec.get("initContainers") or ()), default=0)
        yield Demand(pods=max(task.get("replicas") or 0, 0), each=max(running, before))


def requested(job: Object) -> list[str]:
    """Return the names of all resources that the containers of a replicatedJob limit."""
    names: dict[str, None] = {}
    for task in tasks_of(job):
        for container in pod_spec_of(task).get("containers") or ():
            names.update(dict.fromkeys((container.get("resources") or {}).get("limits") or ()))
    return sorted(names)


def _limit(container: Object, kind: str) -> int:
    """Return the accelerators of a container; a fraction is reported elsewhere."""
    resources = container.get("resources") or {}
    value = (resources.get("limits") or {}).get(kind)
    if value is None:
        value = (resources.get("requests") or {}).get(kind)
    if value is None:
        return 0
    return max(try_parse_amount(value).nano // NANO, 0)


def _misfit(
    accelerators: int, mode: str, replicas: int, sizes: Sizes, max_domains: int | None
) -> str:
    """Return why the accelerators cannot be shared out; empty if they can."""
    if mode == "auto":
        most = min(max_domains or accelerators, accelerators // (sizes.fixed + sizes.step))
        fewest = _fewest(accelerators, sizes)
        if fewest is not None and fewest <= most:
            return ""
        near = _near(accelerators, sizes.fixed, sizes.step, 1)
        return f"a sub-job has {_in_words(sizes)}; {near} would fit"
    if replicas == 1:
        # Sub-jobs of the template's size, and a last one with what is left of the total.
        rest = accelerators % sizes.total
        if rest == 0 or (rest > sizes.fixed and (rest - sizes.fixed) % sizes.step == 0):
            return ""
        near = _near(accelerators, accelerators - rest + sizes.fixed, sizes.step, 1)
        full, last = f"{sizes.total}, the last", _in_words(sizes)
        return f"a sub-job of the template has {full} {last}; {near} would fit"
    rest = accelerators - replicas * sizes.fixed
    if rest >= replicas * sizes.step and rest % sizes.step == 0:
        return ""
    near = _near(accelerators, replicas * sizes.fixed, sizes.step, replicas)
    return f"{replicas} sub-jobs have {_in_words(sizes)} each; {near} would fit"


def _near(accelerators: int, fixed: int, step: int, fewest: int) -> str:
    """Return the numbers around a number that are `fixed` and at least `fewest` steps."""
    below = fixed + (accelerators - fixed) // step * step
    least = fixed + fewest * step
    return str(least) if below < least else f"{below} or {below + step}"


def _fewest(accelerators: int, sizes: Sizes) -> int | None:
    """Return the fewest sub-jobs, each with its fixed part, whose rest is whole pods."""
    common = gcd(sizes.fixed, sizes.step)
    if accelerators % common:
        return None
    period = sizes.step // common
    if period == 1:
        return 1
    inverse = pow(sizes.fixed // common, -1, period)
    return accelerators // common * inverse % period or period


def _in_words(sizes: Sizes) -> str:
    more = f"a multiple of {sizes.step}"
    return f"{sizes.fixed} and {more}" if sizes.fixed else more
