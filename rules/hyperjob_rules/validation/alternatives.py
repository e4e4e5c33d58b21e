"""Validation of the alternatives of replicatedJobs: each by the rules of the HyperJob that has it.

What such a HyperJob lacks is reported at the alternative. The HyperJob as it is written has no
error: without its alternatives each error would be reported again for each of them. The bounds of
its size, such as minReplicas and maxReplicas, are looked at like alternatives.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

from hyperjob_core.api.defaults import completed, with_names
from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import (
    BOUNDS,
    SPLIT_BOUNDS,
    applied,
    number_of,
    sized,
    sizes_of,
    wanted_of,
)
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_rules.validation.rules import EnoughError, Report, RuleWarning, Violation, bounded
from hyperjob_rules.validation.split import is_elastic

bounded("X22.too-many", most=MAX_COMBINATIONS)
_JOBS: Final = SPEC.child("replicatedJobs")
_JOB: Final = re.compile(r"spec\.replicatedJobs\[\d+\](?=\.)")
_ITEM: Final = re.compile(r"\.(tasks|containers)\[(\d+)\]")

Judge = Callable[[Object, Report], None]


class _Trial(NamedTuple):
    """A replicatedJob with an alternative, or a bound of its size, and where the spec has it."""

    job: Object
    alternative: Object
    path: Path


def validate_sizes(spec: Object, jobs: list[Object], report: Report) -> None:
    """Validate the bounds of the sizes of replicatedJobs against other fields."""
    elastic = [index for index, job in enumerate(jobs) if is_elastic(job)]
    varied = [i for i, job in enumerate(jobs) if _choices(job)]
    for index in elastic:
        job, wanted = jobs[index], wanted_of(jobs[index])
        holder, field, (most, least) = number_of(job)
        if (number := holder.get(least)) is not None and number > wanted:
            report.add("X23.too-few", _place(index, least), number, field=field, count=wanted)
        if (number := holder.get(most)) is not None and number < wanted:
            report.add("X23.too-small", _place(index, most), number, field=field, count=wanted)
        name = next(iter(_bounds(job)), "alternatives")
        others = [f"{_JOBS.index(each)}.alternatives" for each in varied if each != index]
        if job.get("splitPolicy") and name in BOUNDS:
            others.append("splitPolicy")
        if index != elastic[0]:
            others.append(
                str(_place(elastic[0], next(iter(_bounds(jobs[elastic[0]])), "alternatives")))
            )
        if others:
            report.add("X23.one-choice", _place(index, name), other=others[0])
        elif name == "alternatives":
            continue
        elif holder is job and name in SPLIT_BOUNDS:
            report.add("X23.not-auto", _place(index, name))
        elif holder is not job and spec.get("quorum") is not None:
            report.add("X23.with-quorum", _place(index, name))


def _bounds(job: Object) -> list[str]:
    """Return the fields by which a replicatedJob leaves its size open."""
    policy = mapping(job.get("splitPolicy"))
    found = [each for each in reversed(BOUNDS) if job.get(each) is not None]
    return [*found, *(each for each in reversed(SPLIT_BOUNDS) if policy.get(each) is not None)]


def _place(index: int, bound: str) -> Path:
    path = _JOBS.index(index)
    return path.child("splitPolicy", bound) if bound in SPLIT_BOUNDS else path.child(bound)


def validate_alternatives(hyperjob: Object, known: Report, report: Report, judge: Judge) -> None:
    """Validate all alternatives of a HyperJob as its author wrote it, whose shape is valid.

    `judge` reports what a HyperJob without alternatives lacks; `known` has the warnings about this
    one, which has no error.
    """
    spec = mapping(hyperjob.get("spec"))
    jobs = objects(spec.get("replicatedJobs"))
    many = prod(len(each.get("alternatives") or ()) or 1 for each in jobs)
    if many > MAX_COMBINATIONS:
        report.add("X22.too-many", _JOBS, many)
        return
    for index, job in enumerate(jobs):
        seen: set[str] = set()
        if spec.get("quorum") is not None and _choices(job):
            _validate_side_by_side(job, index, report)
        for place, alternative in enumerate(_choices(job)):
            path, name = _path(index, place), string(alternative.get("name"))
            if name and name in seen:
                report.add("X22.name-twice", path.child("name"), name)
            seen.add(name)
            _validate_names(job, alternative, path.child("templateSpec", "tasks"), report)
    trials = [_trials(job, index) for index, job in enumerate(jobs)]
    for place in range(max(map(len, trials))):
        _validate_place(
            hyperjob, jobs, [each[place : place + 1] for each in trials], known, report, judge
        )


def _validate_side_by_side(job: Object, index: int, report: Report) -> None:
    """Refuse other numbers of sub-jobs, where each sub-job has an alternative of its own."""
    if job.get("splitPolicy"):
        report.add("X22.with-quorum", _JOBS.index(index).child("splitPolicy"))
    for place, alternative in enumerate(_choices(job)):
        for name in ("replicas", *BOUNDS, "splitPolicy"):
            if alternative.get(name) is not None:
                report.add("X22.with-quorum", _path(index, place).child(name))


def _validate_place(
    hyperjob: Object,
    jobs: list[Object],
    trials: list[list[_Trial]],
    known: Report,
    report: Report,
    judge: Judge,
) -> None:
    """Validate the HyperJob in which each replicatedJob has its alternative or size, if any.

    One after the other the time would grow with the square of the number of replicatedJobs.
    """
    trial, moves = [], {}
    for index, (job, tried) in enumerate(zip(jobs, trials, strict=True)):
        trial += [one.job for one in tried] or [job]
        for one in tried:
            old = str(_JOBS.index(index))
            moves[old] = _Move(job, one.alternative, old, str(one.path))
    found = Report(report.flawless)
    with suppress(EnoughError):
        spec = {**mapping(hyperjob.get("spec")), "replicatedJobs": trial}
        judge(completed({**hyperjob, "spec": spec}), found)
    first = next(iter(moves.values()))
    for each in found.refusals:
        move = moves.get(_job_of(each.error.field), first)
        report.refuse(each.rule, move.refusal(each).error)
    texts = {each.text for each in known.remarks}
    for remark in found.remarks:
        if remark.text not in texts:
            move = moves.get(_job_of(remark.text), first)
            report.remarks.append(RuleWarning(remark.rule, move.text(remark.text)))


def _choices(job: Object) -> list[Object]:
    return objects(job.get("alternatives"))


def _trials(job: Object, index: int) -> list[_Trial]:
    """Return a replicatedJob with each of its alternatives, and with the bounds of their sizes."""
    if not _choices(job):
        return _of_bounds(job, {}, index, None)
    found = []
    for place, each in enumerate(_choices(job)):
        made, path = applied(job, each), _path(index, place)
        found += [_Trial(made, each, path), *_of_bounds(made, each, index, path)]
    return found


def _of_bounds(job: Object, alternative: Object, index: int, path: Path | None) -> list[_Trial]:
    holder, open_ = number_of(job)[0], _bounds(job) if sizes_of(job) else ()
    return [
        _Trial(sized(job, holder[each]), alternative, path or _place(index, each)) for each in open_
    ]


def _path(index: int, place: int) -> Path:
    return _JOBS.index(index).child("alternatives").index(place)


def _job_of(text: str) -> str:
    """Return the path of the replicatedJob with which a field begins; empty for another field."""
    found = _JOB.match(text)
    return "" if found is None else found[0]


def _validate_names(job: Object, alternative: Object, path: Path, report: Report) -> None:
    """Refuse tasks and containers that the template does not have."""
    tasks = {string(each.get("name")): each for each in _tasks(job)}
    for index, task in enumerate(objects(at(alternative, "templateSpec", "tasks"))):
        name, where = string(task.get("name")), path.index(index)
        if name not in tasks:
            report.missing("X22.task", where.child("name"), name, tasks)
            continue
        known = {string(each.get("name")) for each in _containers(tasks[name])}
        below = where.child("template", "spec", "containers")
        for number, container in enumerate(_containers(task)):
            inner = string(container.get("name"))
            if inner not in known:
                report.missing("X22.container", below.index(number).child("name"), inner, known)


def _tasks(job: Object) -> list[Object]:
    return objects(with_names(mapping(job.get("templateSpec"))).get("tasks"))


def _containers(task: Object) -> list[Object]:
    return objects(at(task, "template", "spec", "containers"))


class _Move:
    """Moves what is found in a HyperJob with an alternative to the alternative's own fields."""

    def __init__(self, job: Object, alternative: Object, old: str, new: str) -> None:
        self._job, self._alternative, self._old, self._new = job, alternative, old, new

    def refusal(self, found: Violation) -> Violation:
        """Return the error at the alternative."""
        error, (path, rest) = found.error, self._path(found.error.field)
        detail = ": ".join(each for each in (rest, error.detail) if each)
        return replace(found, error=replace(error, field=path, detail=detail))

    def text(self, warning: str) -> str:
        """Return the warning at the alternative."""
        field, _, text = warning.partition(": ")
        path, rest = self._path(field)
        return ": ".join(each for each in (path, rest, text) if each)

    def _path(self, field: str) -> tuple[str, str]:
        """Return the field of the alternative, or the alternative and the field elsewhere."""
        below = field.removeprefix(self._old)
        if below == field or not below.startswith(".") or "name" not in self._alternative:
            return self._new, field
        try:
            items = self._items(below)
            return self._new + _ITEM.sub(lambda _: next(items), below), ""
        except (LookupError, ValueError):
            return self._new, field

    def _items(self, below: str) -> Iterator[str]:
        """Yield the steps of tasks and containers, by their places in the alternative."""
        found = []
        have = _tasks(self._job)
        given = objects(at(self._alternative, "templateSpec", "tasks"))
        for kind, number in _ITEM.findall(below):
            item = have[int(number)]
            place = [each.get("name") for each in given].index(item.get("name"))
            found.append(f".{kind}[{place}]")
            have, given = _containers(item), _containers(given[place])
        return iter(found)
