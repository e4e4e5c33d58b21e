"""Validation of an update of a HyperJob: it refuses a change that existing sub-jobs cannot follow.

An error that the stored HyperJob has, too, does not count: a stricter release blocks no user. The
finalizers of a HyperJob that is being deleted can always be removed.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from hyperjob_core.api.choices import DeadlineMode, OnNoProgress, SuccessOperator
from hyperjob_core.api.defaults import completed
from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob_core.api.plugins import knowing_world
from hyperjob_core.api.quantity import Quantity
from hyperjob_core.api.stops import DEFAULT_GRACE_SECONDS, DEFAULT_PATH
from hyperjob_core.api.wire import at
from hyperjob_rules.validation.bounds import validate_size
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.create import TypedObject, check_structure, inspect, inspect_checked
from hyperjob_rules.validation.forms import written
from hyperjob_rules.validation.hyperjob import validate_requests
from hyperjob_rules.validation.rules import Decision, Report
from hyperjob_rules.validation.split import is_elastic

Steps = tuple[str | int, ...]

_WRITTEN_DEPTH: Final = 5
"""The depth of a task of a replicatedJob; below it the encoding costs more than it saves."""
_AMOUNTS: Final = frozenset({"limits", "requests", "overhead"})


def changes(old: object, new: object, at: Steps = ()) -> Iterator[Steps]:
    """Yield the paths of the fields that differ, each as deep as possible."""
    if old is new or (is_empty(old) and is_empty(new)):
        return
    if len(at) < _WRITTEN_DEPTH and _is_written_alike(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from changes(old.get(key), new.get(key), (*at, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changes(before, after, (*at, index))
    elif not _same(old, new, at):
        yield at


def _is_written_alike(old: object, new: object) -> bool:
    """Return whether two documents have the same JSON encoding, unlike 1, 1.0 and true.

    Most parts of a changed object are equal, and a comparison value by value takes longer.
    """
    text = written(old)
    return bool(text) and text == written(new)


def is_empty(value: object) -> bool:
    """Return whether a value is null or empty."""
    return value is None or value == {} or value == [] or value == ""


def _same(old: object, new: object, at: Steps) -> bool:
    """Return whether two values are equal; below limits, requests and overhead, as quantities."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new:
        return True
    if len(at) < 2 or at[-2] not in _AMOUNTS:
        return False
    try:
        return Quantity.parse(str(old)) == Quantity.parse(str(new))
    except ValueError:
        return False


MAX_TOLD: Final = 20


UNPLACED: Final = frozenset({"", "Pending", "Queued", "Suspended"})
AFTER_END: Final = frozenset({"suspend", "ttlSecondsAfterFinished"})
FREE: Final = AFTER_END | {
    *("minAvailable", "failurePolicy", "onNoProgress", "successPolicy"),
    *("activeDeadlineSeconds", "activeDeadlineMode"),
}
_COUNTS_AS: Final[tuple[tuple[str, Object], ...]] = (
    ("checkpoint", {"path": DEFAULT_PATH, "gracePeriodSeconds": DEFAULT_GRACE_SECONDS}),
    ("successPolicy", {"operator": SuccessOperator.ALL}),
)
_ALWAYS_COUNTS_AS: Final[Object] = {
    "suspend": False,
    "onNoProgress": OnNoProgress.NOTIFY,
    "activeDeadlineMode": DeadlineMode.RUN_TIME,
    "successPolicy": {},
}
"""What a field counts as that a spec leaves out; templates are completed before."""


def validate_update(
    new: Object,
    old: Object,
    *,
    context: Context = NOTHING_KNOWN,
    at_most: int | None = None,
) -> Decision:
    """Validate a change of a HyperJob; `at_most` is an upper bound of its size in bytes, if known.

    The result for any JSON objects is a decision, without exceptions and without I/O.
    """
    return inspect_update(new, old, context=context, at_most=at_most).decision()


def inspect_update(
    new: Object, old: Object, *, context: Context, at_most: int | None = None
) -> Report:
    """Return the report with the errors of a change and the warnings about it."""
    report = Report()
    if not is_being_deleted(new):
        validate_requests(new, report, before=old)
    if _is_same(new, old):
        return report
    if is_being_deleted(new) or is_being_deleted(old):
        if next(changes(old.get("spec"), new.get("spec")), None) is not None:
            report.add("X15.deleted", SPEC)
        return report
    if not validate_size(new, report, at_most=at_most):
        return report
    if not validate_size(old, Report(), at_most=at_most):
        # A HyperJob that was too large has no sub-jobs, and any change of it is allowed.
        report.take(inspect(new, context=context, strict=False))
        return report
    told_before = Report()
    told_after = Report(told_before.flawless)
    shape_before = check_structure(old, told_before, strict=False)
    shape_after = check_structure(new, told_after, strict=False)
    before, after = shape_before.checked, shape_after.checked
    old_spec, new_spec = before.get("spec") or {}, after.get("spec") or {}
    if not _is_written_alike(_jobs(old_spec), _jobs(new_spec)):
        old_spec, new_spec = _whole(shape_before), _whole(shape_after)
    old_spec = _in_order_of(new_spec, old_spec)
    if next(changes(old_spec, new_spec), None) is None:
        return report
    _validate_changes(new_spec, old_spec, before.get("status") or {}, report)
    refused = tuple(found.error.field for found in report.refusals)
    found = inspect_checked(shape_after, told_after, context=context)
    if not found.refusals and not found.remarks:
        return report
    known = inspect_checked(shape_before, told_before, context=context)
    # If the validation of the new object stopped early, no error counts as an old one.
    errors = set() if found.is_full else {str(each.error) for each in known.refusals}
    texts = {each.text for each in known.remarks}
    report.take(
        found,
        refusal=lambda error: str(error) not in errors and not error.field.startswith(refused),
        remark=lambda text: text not in texts,
    )
    return report


def is_being_deleted(raw: Object) -> bool:
    """Return whether an object waits for its finalizers."""
    return at(raw, "metadata", "deletionTimestamp") is not None


def _is_same(new: Object, old: Object) -> bool:
    """Return whether the encoded specs are equal, a quick check that most updates pass."""
    try:
        return bool(new.get("spec") == old.get("spec"))
    except RecursionError:
        return False


def _jobs(spec: Object) -> list[Object]:
    return spec.get("replicatedJobs") or []


def _names(spec: Object) -> list[str]:
    return [job.get("name") or "" for job in _jobs(spec)]


def _whole(shape: TypedObject) -> Object:
    """Return a spec with all defaults, of pods too: to write one is no change."""
    whole = completed(shape.written) if shape.checked is shape.written else shape.checked
    return whole.get("spec") or {}


def _in_order_of(new: Object, old: Object) -> Object:
    """Return the old spec with its replicatedJobs, a map by name, in the order of the new one."""
    order, names = _names(new), _names(old)
    if order == names or sorted(order) != sorted(names) or len(set(names)) < len(names):
        return old
    by_name = {job.get("name"): job for job in _jobs(old)}
    return {**old, "replicatedJobs": [by_name[name] for name in order]}


def _validate_changes(new: Object, old: Object, status: Object, report: Report) -> None:
    """Report each change that the phase of the HyperJob forbids, the first MAX_TOLD of them.

    A HyperJob that has ended is fixed except for AFTER_END; a suspended one can change anywhere.
    `new` and `old` are specs with defaults, with the replicatedJobs in the same order.
    """
    new, old = _as_it_counts(new), _as_it_counts(old)
    phase, finished = _phase(status), _finished(status)
    if finished:
        for step in islice(_differences(old, new), MAX_TOLD):
            if step[0] not in AFTER_END:
                report.add("X15.finished", _path(step), phase=finished)
        return
    if phase == "Suspended":
        return
    jobs_changed = _names(new) != _names(old)
    if jobs_changed:
        report.add("X15.jobs-changed", SPEC.child("replicatedJobs"))
    worldly = knowing_world(new.get("plugins") or {}, comes_and_goes=bool(new.get("quorum")))
    for step in islice(_differences(old, new), MAX_TOLD):
        if step[0] in FREE:
            continue
        if step[0] != "replicatedJobs":
            _refuse_field(step, phase, report)
        elif worldly and _changes_world(step):
            report.add(
                "X15.world-fixed", _path(step), phase=phase or "Pending", plugins=", ".join(worldly)
            )
        elif not jobs_changed:
            index = int(step[1])
            pair = (_jobs(old)[index], _jobs(new)[index])
            _judge_job(step, pair, phase, report)


def _as_it_counts(spec: Object) -> Object:
    """Return a spec with what its absent fields count as: to write that is no change."""
    spec = _ALWAYS_COUNTS_AS | {name: each for name, each in spec.items() if each is not None}
    for name, usual in _COUNTS_AS:
        if name in spec:
            given = {key: each for key, each in spec[name].items() if each is not None}
            spec[name] = usual | given
    return spec


def _differences(old: Object, new: Object) -> Iterator[Steps]:
    """Yield the changes between two specs, without the names of claims that Volcano generates."""
    for step in changes(old, new):
        if step[-1] != "volumeClaimName" or not _is_generated(new, step):
            yield step


def _is_generated(spec: Object, step: Steps) -> bool:
    """Return whether Volcano writes the name of a claim that it makes for a volume at this path."""
    volume: Any = spec
    for part in step[:-1]:
        volume = volume[part]
    return volume.get("volumeClaim") is not None


def _refuse_field(step: Steps, phase: str, report: Report) -> None:
    """Report the change of a field outside replicatedJobs that has consequences for sub-jobs."""
    if step == ("checkpoint", "intervalSeconds"):
        return
    if step[0] != "maxDomains":
        report.add("X15.fixed", _path(step))
    elif phase not in UNPLACED:
        report.warn("X15.placed", _path(step))


def _judge_job(step: Steps, pair: tuple[Object, Object], phase: str, report: Report) -> None:
    """Validate one change inside a replicatedJob; `pair` is the old and the new one."""
    match step[2:]:
        case ("replicas",):
            if _is_sized(pair[1]):
                report.add("X15.split-size", _path(step))
            elif any(map(is_elastic, pair)):
                report.add("X15.fixed", _path(step))
        case ("clusterNames" | "clusterPolicy", *_):
            if phase not in UNPLACED:
                report.warn("X15.placed", _path(step[:3]))
        case ("templateSpec", "priorityClassName" | "minAvailable") | (
            "templateSpec",
            "tasks",
            _,
            "replicas" | "minAvailable",
        ):
            _judge_scale(step, pair, report)
        case ("templateSpec", "tasks"):
            report.add("X15.tasks-changed", _path(step))
        case ("templateSpec", *_):
            report.add("X15.immutable", _path(step))
        case _:
            report.add("X15.fixed", _path(step))


def _changes_world(step: Steps) -> bool:
    """Return whether a change inside a replicatedJob changes the number of pods."""
    match step[2:]:
        case ("replicas",) | ("templateSpec", "tasks", _, "replicas"):
            return True
    return False


def _is_sized(job: Object) -> bool:
    """Return whether a split decides number and size of the sub-jobs."""
    split = job.get("splitPolicy") or {}
    return split.get("mode") == "auto" or bool(split.get("accelerators"))


def _judge_scale(step: Steps, pair: tuple[Object, Object], report: Report) -> None:
    """Validate a change of a field that Volcano lets change in a vcjob."""
    if _is_sized(pair[1]) and step[-1] != "priorityClassName":
        report.add("X15.split-size", _path(step))
    elif step[-1] == "replicas":
        old, new = (job["templateSpec"]["tasks"][int(step[4])] for job in pair)
        gang, replicas = new.get("minAvailable"), new.get("replicas") or 0
        # The warning is only for a minAvailable that was all pods before.
        if gang is not None and gang == old.get("replicas") and gang < replicas:
            report.warn("X15.gang-stays", _path((*step[:-1], "minAvailable")), value=gang)


def _path(step: Steps) -> Path:
    return SPEC.below(step)


def _phase(status: Object) -> str:
    phase = (status.get("state") or {}).get("phase")
    return phase if isinstance(phase, str) else ""


def _finished(status: Object) -> str:
    """Return the phase in which the HyperJob ended; empty if it has not ended."""
    for condition in status.get("conditions") or ():
        kind = condition.get("type")
        if kind in {CONDITION_COMPLETED, CONDITION_FAILED} and condition.get("status") == "True":
            return str(kind)
    phase = _phase(status)
    return phase if phase in {CONDITION_COMPLETED, CONDITION_FAILED} else ""
