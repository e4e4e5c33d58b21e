"""What each small decision says of sub-jobs in any state, where a pass would stop at the first."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hyperjob_core.text import shortened
from hyperjob_engine.expansion.adopt import adoptions
from hyperjob_engine.gang.gate import (
    is_cleared,
    is_held,
    is_released,
    is_through,
    is_undispatched,
    openings,
)
from hyperjob_engine.gang.giveback import backs_off
from hyperjob_engine.gang.places import pinned_place_of
from hyperjob_engine.gang.rejections import check_rejection
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.lifecycle.dispatcher import forgotten, releases
from hyperjob_engine.lifecycle.ending import ending
from hyperjob_engine.lifecycle.failures import judge
from hyperjob_engine.lifecycle.loss import losses_of, next_loss
from hyperjob_engine.lifecycle.reclaimed import giving_back
from hyperjob_engine.lifecycle.silence import check_silence, count_silent
from hyperjob_engine.lifecycle.stops import going_on, is_over, suspending
from hyperjob_engine.lifecycle.unstarted import next_due, not_started
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import GangRecord
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.recording import Case, line
from tests.unit.recorded.snapshots import observed_of, wanted_of

SHOWN: Final = 260


def judgement_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"judgement {seed}")
        raw = hyperjob_of(rng, most=2)
        if some(rng, 0.4):
            raw["spec"]["checkpoint"] = {"directory": "/d"}
        seen = observed_of(rng, raw)
        if seen is not None:
            rows = [f"{what} {line(value)}" for what, value in _judged(seen)]
            yield f"judgement {seed}", [shortened(each, SHOWN) for each in rows]


def _judged(seen: Any) -> Iterator[tuple[str, Any]]:
    members = [(each, child_of(seen, each.name)) for each in wanted_of(seen.hyperjob)]
    children = [child for _, child in members]
    losses = losses_of(seen, members)
    yield "policy", [seen.hyperjob.failure_policy, seen.hyperjob.quorum]
    yield "phases", {child.name: [child.phase, child.exists, child.cluster] for child in children}
    yield "losses", [losses, next_loss(seen, losses)]
    yield "judged", judge(seen, members, losses)
    found = waiting(seen, members)
    yield "waits", [found.for_what, found.hopeless]
    yield "suspending", suspending(seen, members)
    yield "stops", [going_on(seen, members), is_over(seen, members), backs_off(seen)]
    late = not_started(
        seen, members, minimum=len(members), next_try=lambda times, _: GangRecord(attempts=times)
    )
    yield "starts", [next_due(seen, members), late, giving_back(seen, members)]
    yield "ends", ending(seen, members, found, losses)
    counts = count_silent(seen, members)
    yield "silent", counts
    yield "quota", [*releases(seen, children), *forgotten(seen, children)]
    names = [child.name for child in children]
    for ready in (names, names[:1]):
        opened = openings(children, minimum=1, admission=seen.admission, ready=ready)
        yield (
            "opens",
            [(each.name, each.policy_uid is not None, each.release_scheduling) for each in opened],
        )
    for sub_job, child in members:
        gate = (is_held, is_through, is_released, is_undispatched)
        yield (
            child.name,
            [
                [each.__name__ for each in gate if each(child)],
                is_cleared(child, seen.admission),
                [each.kind for each in adoptions(seen.hyperjob, sub_job, child)],
                child.running_pods,
            ],
        )
        yield "  silence", check_silence(seen, child, counts=counts)
        yield "  rejections", check_rejection(child, now=seen.now)
        place = pinned_place_of(seen, sub_job, child, frozenset({"c"}))
        yield "  place", place and [place.pin, place.held, place.released, place.fresh]
