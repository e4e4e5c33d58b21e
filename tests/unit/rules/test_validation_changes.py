"""What counts as a change of a HyperJob, and how many errors and bytes there may be."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import formats
from hyperjob_core.api.field import ROOT
from hyperjob_rules.validation.create import Repair
from hyperjob_rules.validation.forms import MAX_ANNOTATIONS, check, validate_annotations
from hyperjob_rules.validation.rules import MAX_REFUSALS, EnoughError, Report
from hyperjob_rules.validation.update import changes

TEXTS = st.text(st.sampled_from("aZ09-_./ \né="), max_size=70) | st.from_regex(
    r"[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?", fullmatch=True
)


def test_no_error_is_looked_for_beyond_the_last_that_is_kept() -> None:
    report = Report()
    for _ in range(MAX_REFUSALS - 1):
        report.add("X3.missing", ROOT)
    assert not report.is_full
    with pytest.raises(EnoughError):
        report.add("X3.missing", ROOT)
    assert report.is_full
    assert len(report.refusals) == MAX_REFUSALS


@given(
    TEXTS,
    st.sampled_from(
        [
            formats.dns1123_label,
            formats.dns1123_subdomain,
            formats.label_value,
            formats.qualified_name,
            formats.relaxed_env_var_name,
            formats.port_name,
            formats.config_map_key,
        ]
    ),
)
def test_the_short_way_to_judge_a_form_judges_as_the_long_one(
    text: str, form: Callable[[str], list[str]]
):
    report = Report()
    assert check(form, text, ROOT, report, "a", 0) is (form(text) == [])
    messages = list(dict.fromkeys(form(text)))
    assert [found.error.detail for found in report.refusals] == messages
    assert {found.error.field for found in report.refusals} <= {"a[0]"}


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), (2**70, 2**70 + 1)])
def test_a_subtree_is_passed_over_only_where_its_json_is_the_same(old: object, new: object) -> None:
    """Python takes 1, 1.0 and true for equal, and orjson writes no number of more than 64 bits."""
    same = {"other": [{"deep": old}]}
    assert list(changes({"a": same, "b": old}, {"a": same, "b": new})) == (
        [] if old == new and not isinstance(new, bool) else [("b",)]
    )
    assert list(changes({"a": same}, {"a": {"other": [{"deep": old}]}})) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": True}, {"a": 1}, [("a",)]),
        ({"a": None}, {}, []),
        ({"a": {}}, {"a": []}, []),
        ({"a": ""}, {}, []),
        ({"a": 0}, {}, [("a",)]),
        ({"a": False}, {}, [("a",)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a", "c")]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("a", 1)]),
        ({"a": [1, 2]}, {"a": [1]}, [("a",)]),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": 1}}, []),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}}, []),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1001m"}}, [("limits", "cpu")]),
        ({"limits": {"cpu": "x"}}, {"limits": {"cpu": "y"}}, [("limits", "cpu")]),
        ({"env": {"cpu": "1"}}, {"env": {"cpu": "1000m"}}, [("env", "cpu")]),
    ],
)
def test_changes_are_what_kubernetes_takes_for_changes(old: Any, new: Any, found: list[Any]):
    assert list(changes(old, new)) == found


def test_a_repair_leaves_the_object_as_it_was():
    raw = {"a": [{"b": 1, "c": 2}, {"b": 3}], "d": {"e": 4}}
    repair = Repair(raw)
    repair.drop(("a", 0, "b"), None)
    repair.drop(("a", 1), {})
    repair.put(("d", "e"), 5)
    repair.drop(("gone", "x"), None)
    repair.drop(("d", "e", "deeper"), None)
    assert repair.root == {"a": [{"c": 2}, {}], "d": {"e": 5}}
    assert raw == {"a": [{"b": 1, "c": 2}, {"b": 3}], "d": {"e": 4}}


@pytest.mark.parametrize("text", ["a", "\u00e9", "\u4e2d"])
def test_annotations_are_as_large_as_their_bytes(text: str) -> None:
    room = MAX_ANNOTATIONS - len("note")
    for more, expected in ((0, 0), (1, 1)):
        report = Report()
        value = text * (room // len(text.encode())) + "x" * (room % len(text.encode()) + more)
        validate_annotations({"note": value}, ROOT, report)
        assert len(report.decision().errors) == expected
