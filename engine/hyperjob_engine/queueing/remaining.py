"""The running time that is left of a HyperJob with its alternatives."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import blake2s
from itertools import product
from typing import TypeAlias

from hyperjob_core.api.wire import count, mapping
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.subjobs import (
    Choice,
    choice_of,
    choice_text,
    choosing,
    option_of,
    queue_of,
    speeds_of,
)
from hyperjob_engine.queueing.queues import estimate

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

    Room alone decides about a size. Sub-jobs with different alternatives that did not run together
    go on as long as with the slowest of these for all.
    """
    if not choice_of(hyperjob) or hyperjob.elastic is not None:
        return None
    found = _known(hyperjob, took)
    if found is not None:
        return found
    alone = [_known(choosing(hyperjob, each), took) for each in _each_alone(choice_of(hyperjob))]
    known = [each for each in alone if each is not None]
    return max(known) if len(known) == len(alone) else None


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
    """Return the running time that is left by what is known of the present alternatives.

    The speed that the program had with them counts, else the estimate of their running time, else
    what earlier runs of the same template with them `took`.
    """
    training = mapping(hyperjob.status.get("training"))
    step, steps = count(training.get("step")), count(training.get("steps"))
    left = max(0, steps - step)
    speed = speeds_of(hyperjob.status).get(choice_text(choice_of(hyperjob)), 0.0)
    if steps and speed:
        return timedelta(seconds=left / speed)
    whole = estimated(hyperjob)
    if whole is None and took is not None:
        whole = took(template_of(hyperjob))
    return whole if whole is None or not steps else whole * (left / steps)
