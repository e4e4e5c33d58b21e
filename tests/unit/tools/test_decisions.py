"""What the comparison of decisions shows, and how its cases keep their values."""

import pytest

from tests.decisions.compare import compared
from tests.decisions.draw import Draw
from tests.decisions.rows import changes

FRUIT = ["apple", "fig", "pear"]


def test_an_option_more_changes_only_the_cases_that_draw_it() -> None:
    for number in range(100):
        draw = Draw(f"case {number}")
        after = draw.pick("fruit", [*FRUIT, "quince"])
        assert after in (draw.pick("fruit", FRUIT), "quince")
        assert draw.pick("other", FRUIT) == Draw(f"case {number}").pick("other", FRUIT)


def test_an_option_that_is_there_twice_is_drawn_twice_as_often() -> None:
    drawn = [
        Draw(f"case {number}").pick("fruit", ["apple", "apple", "fig"]) for number in range(600)
    ]
    assert 350 < drawn.count("apple") < 450


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["b = 3"]),
        ({"a": {"b": 1}}, {"a": {}}, ["a.b is gone"]),
        ({}, {"a": {"b": 1}, "c": "x"}, ["a.b = 1", 'c = "x"']),
        (
            {"jobs": [{"name": "x", "n": 1}, {"name": "y", "n": 1}]},
            {"jobs": [{"name": "x", "n": 1}, {"name": "y", "n": 2}]},
            ["jobs[y].n = 2"],
        ),
        (
            {"jobs": [{"name": "x"}, {"name": "y"}]},
            {"jobs": [{"name": "y"}, {"name": "x"}]},
            ['jobs has the order ["y", "x"]'],
        ),
        ({"jobs": [{"name": "x"}]}, {"jobs": []}, ["jobs[x] is gone", "jobs has the order []"]),
        ({"n": [1, 2]}, {"n": [1]}, ["n = [1]"]),
    ],
)
def test_a_change_is_one_fact_for_each_field(old, new, facts) -> None:
    assert list(changes(old, new)) == facts


def test_the_report_has_the_first_moment_that_differs_and_counts_its_kinds() -> None:
    old = {"days": {
        "same": [(1.0, "Job x", "is created")],
        "other": [(1.0, "Job x", "is created"), (2.0, "HyperJob x", 'status.jobs[x].phase = "A"'),
                  (3.0, "Job x", "is deleted")],
    }}  # fmt: skip
    new = {"days": {
        "same": [(1.0, "Job x", "is created")],
        "other": [(1.0, "Job x", "is created"), (2.0, "HyperJob x", 'status.jobs[x].phase = "B"')],
    }}  # fmt: skip
    same, report = compared(old, new, shown=1)
    text = "\n".join(report)
    assert not same
    assert "2 cases     1 differ" in text
    assert "1  HyperJob status.jobs[].phase" in text
    assert '- 2 s HyperJob x: status.jobs[x].phase = "A"' in text
    assert '+ 2 s HyperJob x: status.jobs[x].phase = "B"' in text
    assert "is deleted" not in text
    assert compared(old, old, shown=1)[0]


def test_the_fields_of_a_new_object_are_left_out() -> None:
    made = [(1.0, "Job x", each) for each in ("is created", 'metadata.name = "x"', "spec.n = 1")]
    _, report = compared({"days": {"a": []}}, {"days": {"a": made}}, shown=1)
    assert [line for line in report if line.startswith("  +")] == ["  + 1 s Job x: is created"]
