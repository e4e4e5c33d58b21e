"""The running time that is left of a HyperJob with its alternatives."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import blake2s
from itertools import product
from typing import TypeAlias

from hyperjob_core.api.wire import count, mapping
from hyperjob_engine.model.observed import HyperJob, ReplicatedJob
from hyperjob_engine.model.subjobs import (
    Choice,
    choice_of,
    choice_text,
    choosing,
    option_of,
    queue_of,
    shapes,
    sizes,
    speeds_of,
)
from hyperjob_queueing.queues import estimate

Took: TypeAlias = Callable[[str], timedelta | None]
"""What earlier runs of a template took; None: there is none."""


def template_of(hyperjob: HyperJob) -> str:
    """Return a hash of namespace, templates and present alternatives: the same for similar runs."""
    parts = [
        (each.replicas, each.split, queue_of(each.template), each.template.get("tasks"))
        for each in hyperjob.replicated_jobs
    ]
    text = json.dumps(
        (hyperjob.namespace, parts, choice_text(choice_of(hyperjob))), sort_keys=True, default=str
    )
    return blake2s(text.encode(), digest_size=8).hexdigest()


def estimated(hyperjob: HyperJob) -> timedelta | None:
    """Return the longest running time that templates estimate; None if one has no estimate."""
    found = [
        estimate(option_of(group, index).template.get("runningEstimate"))
        for group in hyperjob.replicated_jobs
        for index in group.own or (0,)
    ]
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def remaining(hyperjob: HyperJob, took: Took | None = None) -> timedelta | None:
    """Return the running time that is left with the present alternatives; None if it is not known.

    Room alone decides about sizes of one alternative, and of sub-jobs with alternatives of their
    own. Sub-jobs with different ones that did not run together go on as long as with the slowest of
    these for all.
    """
    elastic = hyperjob.elastic
    if not choice_of(hyperjob):
        return None
    if elastic is not None:
        only = elastic.own is not None or len(shapes(elastic)) == 1
        return None if only else _of_size(hyperjob, elastic, took)
    found = _known(hyperjob, took)
    if found is not None:
        return found
    alone = [_known(choosing(hyperjob, each), took) for each in _each_alone(choice_of(hyperjob))]
    known = [each for each in alone if each is not None]
    return max(known) if len(known) == len(alone) else None


def _of_size(hyperjob: HyperJob, group: ReplicatedJob, took: Took | None) -> timedelta | None:
    """Return the time that is left with a size: in proportion to the nearest known one."""
    near = sorted(sizes(group), key=lambda each: abs(each.size - group.size))
    wished = sorted(near, key=lambda each: each.size != each.wish)[:1]
    for some, how in ((near, _measured), (wished, _learnt)):
        for each in some:
            found = how(choosing(hyperjob, ((group.name, each.alternative),)), took)
            if found is not None:
                return found * (each.size / group.size)
    return None


def _each_alone(choice: Choice) -> Iterator[Choice]:
    """Yield choices in which all sub-jobs of a replicatedJob have one of its alternatives."""
    groups = [key.partition("/")[0] for key, _ in choice]
    of_groups: dict[str, set[str]] = {group: set() for group in groups}
    for group, (_, name) in zip(groups, choice, strict=True):
        of_groups[group].add(name)
    for each in product(*map(sorted, of_groups.values())):
        names = dict(zip(of_groups, each, strict=True))
        yield tuple((key, names[group]) for group, (key, _) in zip(groups, choice, strict=True))


def _known(hyperjob: HyperJob, took: Took | None) -> timedelta | None:
    """Return the running time that is left by what is known of the present alternatives."""
    found = _measured(hyperjob, took)
    return _learnt(hyperjob, took) if found is None else found


def _measured(hyperjob: HyperJob, took: Took | None) -> timedelta | None:
    """Return the running time that is left by the speed that the program had."""
    del took
    speed = speeds_of(hyperjob.status).get(choice_text(choice_of(hyperjob)), 0.0)
    left, steps = _left(hyperjob)
    return timedelta(seconds=left / speed) if steps and speed else None


def _learnt(hyperjob: HyperJob, took: Took | None) -> timedelta | None:
    """Return what is left of the estimate, else of what earlier runs of the same template took."""
    whole = estimated(hyperjob)
    if whole is None and took is not None:
        whole = took(template_of(hyperjob))
    left, steps = _left(hyperjob)
    return whole if whole is None or not steps else whole * (left / steps)


def _left(hyperjob: HyperJob) -> tuple[int, int]:
    """Return the steps that are left, and all steps; 0 if they are not known."""
    training = mapping(hyperjob.status.get("training"))
    steps = count(training.get("steps"))
    return max(0, steps - count(training.get("step"))), steps
