"""All generated cases, by section."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.decisions import stories
from tests.decisions.plans import plan_cases
from tests.decisions.reviews import PARTS, binding_cases, envelope_cases, hyperjob_cases
from tests.decisions.rows import Row
from tests.decisions.stage import Story, play, rows_of

Case = tuple[str, list[Row]]

MOST = 2000
"""Rows of a case that are compared: after a first difference all others follow from it."""


def _played(tell: Callable[[int, Any], Story], count: int) -> Callable[[Any], Iterator[Case]]:
    def cases(entry: Any) -> Iterator[Case]:
        for number in range(count):
            story = tell(number, entry.MODES)
            about = f"{story.title}: {story.mode}, members {story.members}"
            yield about, rows_of(play(entry, story))[:MOST]

    return cases


def _reviewed(entry: Any) -> Iterator[Case]:
    for part in range(PARTS):
        yield from hyperjob_cases(entry, part)


SECTIONS: Mapping[str, Callable[[Any], Iterator[Case]]] = {
    "passes": _played(stories.passes, 80),
    "rounds": _played(stories.rounds, 16),
    "contests": _played(stories.contests, 20),
    "days": _played(stories.days, 24),
    "plans": lambda entry: plan_cases(entry, 40),
    "reviews": _reviewed,
    "bindings": lambda entry: binding_cases(entry, 80),
    "envelopes": envelope_cases,
}
