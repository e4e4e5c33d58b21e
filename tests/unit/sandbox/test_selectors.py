"""Label and field selectors: what is selected, how they print, and what is refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.state.selectors import (
    FieldSelector,
    FieldTerm,
    LabelSelector,
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
    "n>4": True,
    "n>5": False,
    "n<6": True,
    "app>4": False,
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


REFUSED = {
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a in": "unable to parse requirement: found '' expected: '('",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in (b=c)": "unable to parse requirement: found '=', expected: ',' or ')'",
    "a,": "found '', expected: identifier after ','",
    ",a": "found ',', expected: !, identifier, or 'end of string'",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a=(b)": "unable to parse requirement: found '(', expected: identifier",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a>x": (
        'unable to parse requirement: values[0]: Invalid value: "x": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_label_selector_is_refused(text, message):
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert str(caught.value) == message


def test_a_bad_key_is_named():
    with pytest.raises(SelectorError) as caught:
        parse_labels("a@b=c")
    assert str(caught.value).startswith(
        'unable to parse requirement: <nil>: Invalid value: "a@b": name part must consist of'
    )


def test_a_bad_value_is_named():
    with pytest.raises(SelectorError) as caught:
        parse_labels("a=b@c")
    assert str(caught.value).startswith(
        'unable to parse requirement: values[0][a]: Invalid value: "b@c": a valid label must be'
    )


keys = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True).filter(
    lambda k: k not in ("in", "notin")
)
values = st.from_regex(r"[a-z0-9]{0,5}", fullmatch=True)
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["=", "==", "!="]), st.tuples(values)),
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["in", "notin"]),
        st.sets(values, min_size=1, max_size=3).map(lambda found: tuple(sorted(found))),
    ),
    st.builds(Requirement, keys, st.sampled_from(["exists", "!"])),
)


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, values, max_size=4))
def test_a_printed_selector_selects_the_same(terms, labels):
    selector = LabelSelector(tuple(sorted(terms, key=lambda term: term.key)))
    again = parse_labels(str(selector))
    assert again == selector
    assert again.matches(labels) == selector.matches(labels)


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
    assert selector is not None
    assert selector.matches(DEMO)
    assert not selector.matches({**DEMO, "other": ""})
    assert str(selector) == "app in (demo),n notin (4),n,!other,tier=gold"


def test_no_selector_object_selects_nothing_and_an_empty_one_everything():
    assert label_selector(None) is None
    empty = label_selector({})
    assert empty is not None
    assert empty.matches({})
    assert not empty


def test_an_unknown_operator_is_refused():
    with pytest.raises(SelectorError, match='"Has" is not a valid label selector operator'):
        label_selector({"matchExpressions": [{"key": "a", "operator": "Has"}]})


def test_field_selector_compares_text():
    obj = {"metadata": {"name": "one"}, "spec": {"n": 3, "on": True}}
    selector = parse_fields("metadata.name=one,spec.n!=4,spec.on==true,spec.nope=")
    assert selector.matches(lambda field: field_value(obj, field))
    assert not parse_fields("metadata.name!=one").matches(lambda field: field_value(obj, field))
    assert selector.exact("metadata.name") == "one"
    assert selector.exact("spec.n") is None


def test_field_selector_names_what_it_does_not_support():
    with pytest.raises(SelectorError, match=r"^field label not supported: spec.size$"):
        parse_fields("spec.size=3").require({"metadata.name"})


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "a": "invalid selector: 'a'; can't understand 'a'",
        "a=b=c": "invalid field selector: unescaped character in value: 61",
        "a=b\\c": "invalid field selector: invalid escape sequence: \\c",
        "a=b\\": "invalid field selector: invalid escape sequence: \\",
    }.items(),
)
def test_field_selector_is_refused(text, message):
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == message


@given(
    st.lists(
        st.builds(FieldTerm, st.just("metadata.name"), st.booleans(), st.text(max_size=6)),
        max_size=3,
    )
)
def test_a_printed_field_selector_says_the_same(terms):
    selector = FieldSelector(tuple(terms))
    assert set(parse_fields(str(selector)).terms) == set(terms)
