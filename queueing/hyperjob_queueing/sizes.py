"""The sizes of a HyperJob: the larger ones while it runs, what a change costs, and the time left.

The time that is left with each of its alternatives decides which of them it takes. Without a word
of its author, others of its template or queue that completed say what it takes. The HyperJobs
themselves have these runs: a new leader learns those that are still there.
"""

import json
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import blake2s
from itertools import product
from typing import Final, TypeAlias

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, count, integer, mapping, string
from hyperjob_engine.expansion.auto import part_of, pieces, wish_of
from hyperjob_engine.expansion.expand import expand_group, sub_jobs
from hyperjob_engine.expansion.members import members_of
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import HyperJob, Observed, ReplicatedJob
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import (
    Choice,
    child_of,
    choice_of,
    choice_text,
    choosing,
    closed_queue_of,
    option_of,
    queue_of,
    shapes,
    sizes,
    speeds_of,
)
from hyperjob_engine.status.goodput import LOST
from hyperjob_queueing.queues import estimate
from hyperjob_queueing.workload import Larger, QueuedHyperJob, QueuedSubJob


def is_beyond(hyperjob: HyperJob) -> bool:
    """Return whether a HyperJob is larger than it would like."""
    group = hyperjob.elastic
    return group is not None and group.size > (group.wish or 0)


def with_sizes(unit: QueuedHyperJob, observed: Observed) -> QueuedHyperJob:
    """Return a HyperJob with the steps that are beyond its wish, and with its larger sizes.

    It has no larger sizes before all run. One world needs a checkpoint for them: a saved step, or
    an interval.
    """
    hyperjob, group = observed.hyperjob, observed.hyperjob.elastic
    if group is None:
        return unit
    left = {option.alternative: option.size for option in sizes(group)}
    beyond = [size for size, _ in unit.spare if left[dict(size)[group.name]] >= (group.wish or 0)]
    unit = replace(unit, surplus=len(beyond))
    if sizes(group)[0].size <= group.size or hyperjob.stop is not None:
        return unit
    checkpoint = hyperjob.checkpoint
    saves = checkpoint is not None and (checkpoint.interval_seconds or unit.kept)
    if hyperjob.quorum is None and not saves:
        return unit
    if any(name not in unit.made for name in unit.held) or not _all_run(observed, group):
        return unit
    return replace(
        unit,
        more=_larger(observed, group),
        resized=_resized(hyperjob),
        restart=None if hyperjob.quorum is not None else _restart_time(hyperjob),
    )


def _all_run(observed: Observed, group: ReplicatedJob) -> bool:
    """Return whether all sub-jobs of a replicatedJob run."""
    indices: Iterable[int] = members_of(observed, expand_group(group)).kept
    if group.is_auto:
        part = part_of(observed, group)
        indices = part.decided if part.wish is None else ()
    names = [child_name(observed.hyperjob.name, group.name, index) for index in indices]
    children = (child_of(observed, name) for name in names)
    return bool(names) and all(c.exists and c.phase is JobPhase.RUNNING for c in children)


def _larger(observed: Observed, group: ReplicatedJob) -> tuple[Larger, ...]:
    """Return the larger sizes, the largest first, with the sub-jobs that each adds.

    An automatic split is in pieces here: it is divided when it starts again. Without
    measured speeds the larger size counts as faster in proportion. With a quorum the sub-jobs that
    it adds have any alternative, in order, all of them the same one.
    """
    speeds = speeds_of(observed.hyperjob.status)
    before, found = speeds.get(choice_text(choice_of(observed.hyperjob))), []
    most = sizes(group)[0]
    known = members_of(observed, expand_group(group)).kept
    fresh = [i for i in members_of(observed, expand_group(most)).kept if i not in known]
    own = [dict.fromkeys(fresh, each) for each in shapes(group)] if group.own is not None else [{}]
    had = group.own
    trials = [replace(most, options=group.options, own=had and {**had, **each}) for each in own]
    parts = [
        _pieces_of(observed, most, group.size) if group.is_auto else _of(observed, each, fresh)
        for each in trials
    ]
    for option, k in product(sizes(group), range(len(own))):
        if option.size <= group.size:
            continue
        number = -(-len(parts[k]) * (option.size - group.size) // (most.size - group.size))
        mix = [(f"{group.name}/{index}", own[k][index]) for index in fresh[:number] if own[k]]
        size = ((group.name, option.alternative), *mix)
        after = speeds.get(choice_text(size))
        pace = after / before if after and before else option.size / group.size
        beyond = option.size > (group.wish or 0)
        found.append(Larger(size, parts[k][:number], pace, beyond=beyond))
    return tuple(found)


def _of(observed: Observed, whole: ReplicatedJob, fresh: Sequence[int]) -> tuple[QueuedSubJob, ...]:
    """Return some sub-jobs of a replicatedJob with its largest size."""
    return tuple(
        QueuedSubJob(
            queue=queue_of(each.size.template),
            request=each.request(closed=closed_queue_of(observed, each.size.template)),
        )
        for each in sub_jobs(observed.hyperjob, [expand_group(whole)], {whole.name: fresh})
    )


def _pieces_of(observed: Observed, most: ReplicatedJob, size: int) -> tuple[QueuedSubJob, ...]:
    """Return the pieces that an automatic split has with its largest size beyond another one."""
    wish, queue = wish_of(observed, most), queue_of(most.template)
    more = replace(
        wish,
        like=replace(wish.like, demand={}, pods=()),
        accelerators=wish.accelerators - size,
        fixed=0,
    )
    found = pieces(observed.hyperjob.name, more, observed.hyperjob.records)
    return tuple(QueuedSubJob(queue=queue, request=each, piece=True) for each in found)


def _resized(hyperjob: HyperJob) -> str:
    """Return when the number of sub-jobs last changed, if a larger one must wait since then.

    With a quorum it waits only after the HyperJob made way for another one.
    """
    known = next(iter(taken(hyperjob.status).values()), None)
    if known is None or (hyperjob.quorum is not None and known.reason != Chosen.SPARED):
        return ""
    return known.last_transition_time


def _restart_time(hyperjob: HyperJob) -> timedelta:
    """Return the mean time that the starts of a HyperJob took so far, restarts among them."""
    spent = mapping(at(hyperjob.status, "goodput", "milliseconds"))
    took = sum(count(spent.get(use)) for use in (TimeUse.STARTING, *LOST))
    starts = 1 + max((each.attempt for each in hyperjob.records.values()), default=0)
    return timedelta(milliseconds=took / starts)


_TASKS: Final[Memo[Object, str]] = Memo()
Took: TypeAlias = Callable[[str], timedelta | None]
"""What earlier runs of a template took; None: there is none."""


def template_of(hyperjob: HyperJob) -> str:
    """Return a hash of namespace, templates and present alternatives: the same for similar runs."""
    parts = [
        (g.replicas, g.split, queue_of(g.template), _TASKS.of(id(g.template), g.template, _tasks))
        for g in hyperjob.replicated_jobs
    ]
    return _hash((hyperjob.namespace, parts, choice_text(choice_of(hyperjob))))


def _tasks(template: Object) -> str:
    return _hash(template.get("tasks"))


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
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
    if not choice_of(hyperjob):
        return None
    elastic = hyperjob.elastic
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


_MOST_KEYS: Final = 4096
_MOST_RUNS: Final = 16
"""The latest runs of a template or queue that count: some 100 bytes each."""


@dataclass(slots=True)
class PastRuns:
    """The latest runs of each template and queue: their end, their HyperJob, and how long they ran.

    The time that a HyperJob lost to stops does not count.
    """

    _runs: dict[str, list[tuple[str, str, timedelta]]] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Return whether there is any run."""
        return bool(self._runs)

    def note(self, raw: Object) -> None:
        """Remember the run of a HyperJob that has completed; the templates that ran last stay."""
        state = mapping(at(raw, "status", "state"))
        took = integer(at(raw, "status", "goodput", "milliseconds", TimeUse.PRODUCTIVE))
        if state.get("phase") != Phase.COMPLETED or not took:
            return
        hyperjob = parse_hyperjob(raw)
        if not hyperjob.replicated_jobs:
            return
        ended = string(state.get("lastTransitionTime"))
        run = (ended, hyperjob.uid, timedelta(milliseconds=took))
        queue = queue_of(hyperjob.replicated_jobs[0].template)
        for key in (template_of(hyperjob), f"queue {queue}"):
            runs = self._runs.pop(key, [])
            if run not in runs:
                insort(runs, run)
            self._runs[key] = runs[-_MOST_RUNS:]
        while len(self._runs) > _MOST_KEYS:
            del self._runs[next(iter(self._runs))]

    def took(self, template: str) -> timedelta | None:
        """Return the median of the runs of a template; None if there is none."""
        longer = self._longer(template, timedelta())
        return longer[len(longer) // 2] if longer else None

    def expect(self, template: str, queue: str, ran: timedelta) -> tuple[timedelta, str] | None:
        """Return the median of the runs that took longer than a HyperJob has run, and which."""
        for key, of in ((template, "template"), (f"queue {queue}", "queue")):
            longer = self._longer(key, ran)
            if longer:
                by = f"{len(longer)} earlier run{'s' * (len(longer) > 1)} of its {of}"
                return longer[len(longer) // 2], by
        return None

    def _longer(self, key: str, ran: timedelta) -> list[timedelta]:
        return sorted(took for *_, took in self._runs.get(key, ()) if took > ran)
