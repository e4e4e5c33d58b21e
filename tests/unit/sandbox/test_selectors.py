"""Label and field selectors: what is selected, how they print, and what is refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.selectors import (
    Requirement,
    SelectorError,
    field_value,
    label_selector,
    parse_fields,
    parse_labels,
)

DEMO = {"app": "demo", "tier": "gold", "n": "5"}

SELECTED = {
    "": True,
    "app=demo": True,
    "app==demo": True,
    "app = demo , tier=gold": True,
    "app!=demo": False,
    "other!=demo": True,
    "app in (demo,x)": True,
    "app in (x)": False,
    "app notin (demo)": False,
    "app notin (x)": True,
    "other notin (x)": True,
    "other in (x)": False,
    "tier": True,
    "!tier": False,
    "!other": True,
    "other": False,
    "app in (in,demo)": True,
    "app=,tier": False,
    "app in ()": False,
}


@pytest.mark.parametrize(("text", "selected"), SELECTED.items())
def test_label_selector_selects(text, selected):
    assert parse_labels(text).matches(DEMO) is selected


def test_no_labels_are_no_match():
    assert not parse_labels("app").matches(None)
    assert parse_labels("!app").matches(None)


REFUSED = [
    "a=b=c",
    "a in",
    "a in (b",
    "a in (b=c)",
    "a,",
    ",a",
    "a b",
    "a=(b)",
    "!",
    "a>x",
    "a>5",
    "a=b@c",
]


@pytest.mark.parametrize("text", REFUSED)
def test_label_selector_is_refused(text):
    with pytest.raises(SelectorError):
        parse_labels(text)


def test_a_bad_key_is_named():
    with pytest.raises(SelectorError, match='Invalid value: "a@b": name part must consist of'):
        parse_labels("a@b=c")


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused(text):
    for parse in (parse_labels, parse_fields):
        with contextlib.suppress(SelectorError):
            assert parse(text) == parse(text)


def test_a_selector_object():
    selector = label_selector(
        {
            "matchLabels": {"tier": "gold"},
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["demo"]},
                {"key": "other", "operator": "DoesNotExist"},
                {"key": "n", "operator": "NotIn", "values": ["4"]},
                {"key": "n", "operator": "Exists"},
            ],
        }
    )
    assert selector.matches(DEMO)
    assert not selector.matches({**DEMO, "other": ""})


def test_an_empty_selector_object_selects_everything():
    empty = label_selector({})
    assert empty.matches({})
    assert not empty


def test_an_unknown_operator_is_refused():
    with pytest.raises(SelectorError, match='"Has" is not a valid label selector operator'):
        label_selector({"matchExpressions": [{"key": "a", "operator": "Has"}]})


def test_field_selector_compares_text():
    obj = {"metadata": {"name": "one"}, "spec": {"n": 3, "on": True}}

    def selected(text):
        fields = parse_fields(text)
        return fields.matches(
            {term.key: field_value(obj, term.key) for term in fields.requirements}
        )

    assert selected("metadata.name=one,spec.n!=4,spec.on==true,spec.nope=")
    assert not selected("metadata.name!=one")


@pytest.mark.parametrize("text", ["a", "a=b=c", "a=b\\c", "=b"])
def test_field_selector_is_refused(text):
    with pytest.raises(SelectorError, match="can't understand"):
        parse_fields(text)


def test_field_selector_values_may_be_escaped():
    (term,) = parse_fields("a=b\\,c\\=d\\\\").requirements
    assert term == Requirement("a", "in", ("b,c=d\\",))
