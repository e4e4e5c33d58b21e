"""The difference between the decisions of two trees, as text. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.decisions.rows import Row, kind_of

Decided = Mapping[str, Mapping[str, list[Row]]]
"""The rows of each case by section and title."""

MOST = 8
"""Rows that are shown of a case for each tree."""
TELLING = re.compile(
    r"is created|is deleted|refuses|gets |spec\.placement\.cluster|status\.state\.(phase|reason|m)"
    r"|status\.jobs\[.*\]\.(phase|reason|message|cluster) "
)
"""The facts that are shown first."""


def first_difference(old: list[Row], new: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the first moment at which two cases differ: gone ones and new ones."""
    gone, more = Counter(old), Counter(new)
    gone, more = gone - more, more - gone
    moment = min((row[0] for row in (*gone, *more)), default=0.0)
    return (
        _telling([row for row in old if row[0] == moment and row in gone]),
        _telling([row for row in new if row[0] == moment and row in more]),
    )


def _telling(rows: list[Row]) -> list[Row]:
    """Return rows without the fields of an object that is created, the telling ones first."""
    made = {about for _, about, fact in rows if fact == "is created"}
    found = [row for row in rows if row[1] not in made or TELLING.match(row[2])]
    return sorted(found, key=lambda row: TELLING.search(row[2]) is None)


def compared(old: Decided, new: Decided, *, shown: int) -> tuple[bool, Iterator[str]]:
    """Return whether all decisions are equal, and the report with the first cases that are not."""
    differing = {
        (section, title): pair
        for section in new
        for title in {**old.get(section, {}), **new[section]}
        if any(pair := first_difference(old[section].get(title, []), new[section].get(title, [])))
    }
    return not differing, _report(new, differing, shown)


def _report(
    new: Decided, differing: Mapping[tuple[str, str], tuple[list[Row], list[Row]]], shown: int
) -> Iterator[str]:
    for section, cases in new.items():
        count = sum(1 for name, _ in differing if name == section)
        yield f"{section:10} {len(cases):5} cases {count:5} differ"
    kinds = Counter(
        kind
        for gone, more in differing.values()
        for kind in {f"{about.split()[0]} {kind_of(fact)}" for _, about, fact in (*gone, *more)}
    )
    if kinds:
        yield "cases by what differs first:"
    yield from (f"{count:6}  {kind}" for kind, count in kinds.most_common(20))
    for (_, title), (gone, more) in list(differing.items())[:shown]:
        yield f"# {title}"
        for sign, rows in (("-", gone), ("+", more)):
            for moment, about, fact in rows[:MOST]:
                yield f"  {sign} {moment:g} s {about}: {fact}"
            if len(rows) > MOST:
                yield f"  {sign} and {len(rows) - MOST} more"
    if len(differing) > shown:
        yield f"{len(differing) - shown} more cases differ: --show {len(differing)} shows all"
