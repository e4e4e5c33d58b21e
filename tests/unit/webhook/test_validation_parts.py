"""The small parts that validation is made of."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api import formats
from hyperjob_core.api.field import ROOT
from hyperjob_core.hints import (
    MAX_COMPARED,
    MAX_HINTS,
    Hints,
    _apart,
    _edits,
    did_you_mean,
    is_typo,
)
from hyperjob_rules.resourcenames import is_native, is_unqualified, may_be_overcommitted
from hyperjob_rules.validation.bounds import _add_requests
from hyperjob_rules.validation.changes import changes
from hyperjob_rules.validation.create import Repair
from hyperjob_rules.validation.forms import MAX_ANNOTATIONS, check, validate_annotations
from hyperjob_rules.validation.names import MISSING, _validate_distinct
from hyperjob_rules.validation.rules import MAX_REFUSALS, EnoughError, Report

STEPS = st.lists(
    st.tuples(st.sampled_from(["child", "index", "key"]), st.integers(0, 99)), max_size=6
)
TEXTS = st.text(st.sampled_from("aZ09-_./ \né="), max_size=70) | st.from_regex(
    r"[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?", fullmatch=True
)


def test_no_error_is_looked_for_beyond_the_last_that_is_kept() -> None:
    report = Report()
    for _ in range(MAX_REFUSALS - 1):
        report.add(MISSING, ROOT)
    assert not report.is_full
    with pytest.raises(EnoughError):
        report.add(MISSING, ROOT)
    assert report.is_full
    assert len(report.refusals) == MAX_REFUSALS


@given(STEPS)
def test_a_path_is_printed_step_by_step(steps: list[tuple[str, int]]):
    path: Any = ROOT
    text = ""
    for kind, number in steps:
        path = getattr(path, kind)(number if kind == "index" else f"f{number}")
        text += {"index": f"[{number}]", "key": f"[f{number}]", "child": f".f{number}"}[kind]
    assert str(path) == (text.removeprefix(".") or "<nil>")


def test_a_path_can_be_made_in_one_go():
    assert str(ROOT.child("a", "b").below(["c", 1, "d"])) == "a.b.c[1].d"
    assert str(ROOT) == "<nil>"


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


@pytest.mark.parametrize(
    ("value", "known", "hint"),
    [
        ("pytroch", ["pytorch", "mpi"], '; did you mean "pytorch"?'),
        ("SVC", ["svc", "ssh"], '; did you mean "svc"?'),
        ("horovod", ["pytorch", "mpi"], ""),
        ("svc", ["svc"], ""),
        ("", ["a"], ""),
        ("x" * 1000, ["x" * 999], ""),
        ("gpu-esat", ["gpu-west", "gpu-east"], '; did you mean "gpu-east"?'),
        ("gpu-esat", ["gpu-east", "gpu-west"], '; did you mean "gpu-east"?'),
        ("us-gpu-2", ["us-gpu-1", "us-gpu-02", "eu-gpu-2"], '; did you mean "us-gpu-02"?'),
        ("mastr", ["mpimaster", "worker"], '; did you mean "mpimaster"?'),
        ("gpu", ["cpu", "memory"], ""),
    ],
)
def test_a_guess_is_made_only_where_something_is_near(value: str, known: list[str], hint: str):
    assert did_you_mean(value, known) == hint


@pytest.mark.parametrize(
    ("value", "typo"),
    [
        ("HyperJob", True),
        ("hyperjobs", True),
        ("HyprJob", True),
        ("HyperJbo", True),
        ("HyperNode", False),
        ("Job", False),
        ("", False),
        ("HyperJob" * 100_000, False),
    ],
)
def test_a_typo_has_few_wrong_letters(value: str, typo: bool):
    assert is_typo(value, "HyperJob") is typo


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_edits_are_counted_as_by_hand(one: str, other: str):
    @cache
    def by_hand(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        ways = [by_hand(i - 1, j) + 1, by_hand(i, j - 1) + 1]
        if one[i - 1] == other[j - 1]:
            ways.append(by_hand(i - 1, j - 1))
        if i > 1 and j > 1 and one[i - 2 : i] == other[j - 1] + other[j - 2]:
            ways.append(by_hand(i - 2, j - 2) + 1)
        return min(ways)

    assert _edits(*_apart(one, other), 100) == by_hand(len(one), len(other))


_WORDS = st.lists(st.sampled_from("a01"), min_size=1, max_size=4).map("-".join)
_GROUPS = st.lists(
    st.tuples(_WORDS, st.integers(1, 3), st.lists(_WORDS, min_size=1, max_size=3, unique=True)),
    min_size=2,
    max_size=4,
    unique_by=lambda group: group[0],
)


@settings(max_examples=500)
@given(_GROUPS)
def test_pods_of_one_name_are_found_as_by_writing_all_names_down(
    groups: list[tuple[str, int, list[str]]],
):
    jobs = [
        {"name": name, "replicas": count, "templateSpec": {"tasks": [{"name": t} for t in tasks]}}
        for name, count, tasks in groups
    ]
    report = Report()
    _validate_distinct(jobs, [count - 1 for _, count, _ in groups], ROOT, report)
    pods = [f"{name}-{i}-{t}" for name, count, tasks in groups for i in range(count) for t in tasks]
    assert bool(report.refusals) == (len(set(pods)) < len(pods))


def test_hints_of_one_review_cost_no_more_however_many_names_are_wrong():
    hints = Hints()
    known = [f"{'ab' * 30}{number:03}" for number in range(1000)]
    for _ in range(1000):
        hints.did_you_mean("ba" * 32, known)
    assert hints.made <= MAX_HINTS
    assert hints.compared <= MAX_COMPARED + 64 * 64


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


@pytest.mark.parametrize(
    ("name", "native", "unqualified", "overcommit"),
    [
        ("cpu", True, False, True),
        ("memory", True, False, True),
        ("ephemeral-storage", True, False, True),
        ("hugepages-2Mi", True, False, False),
        ("nvidia.com/gpu", False, False, False),
        ("ascend910c", True, True, False),
        ("pods", True, False, True),
        ("kubernetes.io/x", True, False, True),
    ],
)
def test_a_name_says_whose_a_resource_is(
    name: str, native: bool, unqualified: bool, overcommit: bool
):
    assert is_native(name) is native
    assert is_unqualified(name) is unqualified
    assert may_be_overcommitted(name) is overcommit


@pytest.mark.parametrize("text", ["a", "\u00e9", "\u4e2d"])
def test_annotations_are_as_large_as_their_bytes(text: str) -> None:
    room = MAX_ANNOTATIONS - len("note")
    for more, expected in ((0, 0), (1, 1)):
        report = Report()
        value = text * (room // len(text.encode())) + "x" * (room % len(text.encode()) + more)
        validate_annotations({"note": value}, ROOT, report)
        assert len(report.decision().errors) == expected


def resources(**fields: Any) -> dict[str, Any]:
    return {"resources": fields}


@pytest.mark.parametrize(
    ("pod", "counted"),
    [
        ({"containers": [resources(requests={"a": 1})]}, {("a", 1): 3}),
        ({"containers": [resources(limits={"a": 1})]}, {("a", 1): 3}),
        (
            {"containers": [resources(requests={"a": 1}, limits={"a": 2, "b": 3})]},
            {("a", 1): 3, ("b", 3): 3},
        ),
        ({"containers": [resources(), {}]}, {}),
        ({"initContainers": [resources(requests={"a": 1})]}, {("a", 1): 3}),
        ({"containers": [resources(requests={"a": 1})] * 2}, {("a", 1): 6}),
        ({"overhead": {"a": 4}}, {("a", 4): 3}),
        ({}, {}),
    ],
)
def test_a_pod_counts_with_its_requests_else_with_its_limits(
    pod: dict[str, Any], counted: dict[tuple[str, int], int]
) -> None:
    found: dict[tuple[str, str | int], int] = {}
    _add_requests(found, pod, pods=3)
    assert found == counted
