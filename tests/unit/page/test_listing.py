"""A listing that follows changes shows what a listing made anew would show."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.phases import Phase
from hyperjob_page.listing import SORTS, Listing, Query, parse
from hyperjob_page.rows import QueueLines, Row, order_of, row_of
from hyperjob_page.visitor import EVERYTHING, Scope


def hyperjob(
    name: str, *, phase: str = "Running", queue: str = "default", namespace: str = "ml", **more: Any
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": more.get("created", "2026-01-01T00:00:00Z"),
            "labels": more.get("labels", {}),
        },
        "spec": {
            "replicatedJobs": [{"name": "w", "replicas": 1, "templateSpec": {"queue": queue}}]
        },
        "status": {"state": {"phase": phase, "reason": more.get("reason", "")}},
    }


rows = st.builds(
    hyperjob,
    st.sampled_from(["a", "b", "c", "d", "e", "f"]),
    phase=st.sampled_from([str(each) for each in Phase]),
    queue=st.sampled_from(["default", "research"]),
    namespace=st.sampled_from(["ml", "vision"]),
    created=st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
).map(row_of)
queries = st.builds(
    Query,
    search=st.sampled_from(["", "a", "ml/", "zz"]),
    queue=st.sampled_from(["", "research"]),
    phases=st.sampled_from([(), ("Running",), ("Queued", "Pending")]),
    sort=st.sampled_from(SORTS),
)
scopes = st.sampled_from([EVERYTHING, Scope(frozenset({"ml"})), Scope(frozenset())])


def keys(listing: Listing, *, descending: bool = False) -> list[str]:
    return list(listing.page(1, 999, descending=descending))


def order(row: Row) -> tuple[int, str, str]:
    return order_of(row, {})


@given(queries, scopes, st.lists(st.tuples(rows, st.booleans()), max_size=20))
def test_following_changes_comes_to_the_same_as_listing_anew(
    query: Query, scope: Scope, changes: list[tuple[Row, bool]]
) -> None:
    known: dict[str, Row] = {}
    listing = Listing(query, scope, [], order)
    for row, gone in changes:
        before = known.pop(row.key, None)
        if not gone:
            known[row.key] = row
        listing.change(before, None if gone else row)
    anew = Listing(query, scope, known.values(), order)
    assert keys(listing) == keys(anew)
    assert +listing.phases == +anew.phases
    assert all(scope.includes(key.partition("/")[0]) for key in keys(listing))


@given(queries, st.lists(rows, max_size=12), st.integers(1, 5), st.booleans())
def test_pages_together_are_the_whole_list(
    query: Query, found: list[Row], size: int, descending: bool
) -> None:
    listing = Listing(query, EVERYTHING, {row.key: row for row in found}.values(), order)
    pages = [
        listing.page(number, size, descending=descending)
        for number in range(1, listing.pages(size) + 1)
    ]
    whole = [key for page in pages for key in page]
    assert whole == keys(listing, descending=descending)
    assert list(listing.page(99, size, descending=descending)) == list(pages[-1])


@given(st.lists(st.tuples(rows, st.booleans()), max_size=20))
def test_lines_follow_changes(changes: list[tuple[Row, bool]]) -> None:
    lines = QueueLines()
    known: dict[str, Row] = {}
    for row, gone in changes:
        known.pop(row.key, None)
        if not gone:
            known[row.key] = row
        lines.change(row.key, None if gone else row)
    waiting = [row for row in known.values() if row.waits_in]
    for queue in ("default", "research"):
        line = sorted(order(row) for row in waiting if row.waits_in == queue)
        assert list(lines.line(queue)) == line
        for place, each in enumerate(line, start=1):
            assert lines.place(each.key) == place


@given(
    st.builds(
        Query,
        search=st.text(max_size=20).map(lambda text: " ".join(text.split())),
        label=st.sampled_from(["", "a=b", "a"]),
        phases=st.sampled_from([(), ("Queued", "Failed")]),
        sort=st.sampled_from(SORTS),
        descending=st.booleans(),
        page=st.integers(1, 50),
        size=st.sampled_from([25, 50, 200]),
    )
)
def test_the_address_of_a_table_gives_the_same_table_back(query: Query) -> None:
    assert parse(query.parameters) == query


def test_a_label_filter_takes_a_name_or_a_name_and_a_value() -> None:
    row = row_of(hyperjob("a", labels={"team": "vision"}))
    assert Query(label="team").but_phase(row)
    assert Query(label="team=vision").but_phase(row)
    assert not Query(label="team=speech").but_phase(row)
    assert not Query(label="owner").but_phase(row)
