"""Rules of Roles: what they allow, and what they cover of other rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.rbac.rules import Rule, describe, not_covered
from hyperjob_sandbox.apiserver.transport.authorization import Action

PODS = Rule(verbs=("get", "list"), groups=("",), resources=("pods",))
LOGS = Rule(verbs=("get",), groups=("",), resources=("pods/log",))
NAMED = Rule(verbs=("get", "update"), groups=("",), resources=("secrets",), names=("a", "b"))
HEALTH = Rule(verbs=("get",), urls=("/healthz", "/apis/*"))
EVERYTHING = Rule(verbs=("*",), groups=("*",), resources=("*",))
STATUS = Rule(verbs=("patch",), groups=("apps",), resources=("*/status",))


@pytest.mark.parametrize(
    ("rule", "action", "allowed"),
    [
        (PODS, Action("get", "", "pods"), True),
        (PODS, Action("delete", "", "pods"), False),
        (PODS, Action("get", "apps", "pods"), False),
        (PODS, Action("get", "", "pods", "log"), False),
        (LOGS, Action("get", "", "pods", "log"), True),
        (LOGS, Action("get", "", "pods"), False),
        (NAMED, Action("get", "", "secrets", name="a"), True),
        (NAMED, Action("get", "", "secrets", name="c"), False),
        (NAMED, Action("list", "", "secrets"), False),
        (HEALTH, Action("get", path="/healthz"), True),
        (HEALTH, Action("get", path="/apis/apps/v1"), True),
        (HEALTH, Action("get", path="/metrics"), False),
        (HEALTH, Action("get", "", "pods"), False),
        (EVERYTHING, Action("delete", "x", "ys", "z", "ns", "n"), True),
        (EVERYTHING, Action("get", path="/healthz"), False),
        (STATUS, Action("patch", "apps", "deployments", "status"), True),
        (STATUS, Action("patch", "apps", "deployments"), False),
    ],
)
def test_a_rule_allows_what_it_names(rule: Rule, action: Action, allowed: bool) -> None:
    assert rule.allows(action) is allowed


WORDS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=2).map(tuple)
RESOURCES = st.lists(st.sampled_from(["x", "x/s", "*/s", "*"]), min_size=1, max_size=2).map(tuple)
NAMES = st.lists(st.sampled_from(["n", "m"]), max_size=2).map(tuple)
RULES = st.builds(Rule, verbs=WORDS, groups=WORDS, resources=RESOURCES, names=NAMES)
ACTIONS = st.builds(
    Action,
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    st.sampled_from("xy"),
    st.sampled_from(["", "s"]),
    name=st.sampled_from(["", "n", "m"]),
)


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=3), ACTIONS)
def test_who_holds_all_that_a_rule_gives_can_do_all_that_it_allows(
    wanted: list[Rule], owned: list[Rule], action: Action
) -> None:
    if not not_covered(wanted, owned) and any(rule.allows(action) for rule in wanted):
        assert any(rule.allows(action) for rule in owned)


@given(st.lists(RULES, max_size=3))
def test_everybody_may_hand_on_what_he_has(rules: list[Rule]) -> None:
    assert not_covered(rules, rules) == []


def test_what_is_missing_is_printed_by_resource() -> None:
    wanted = Rule(verbs=("get", "list", "delete"), groups=("", "apps"), resources=("pods",))
    assert describe(not_covered([wanted, HEALTH], [PODS])) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list" "delete"]}',
        '{NonResourceURLs:["/apis/*"], Verbs:["get"]}',
        '{NonResourceURLs:["/healthz"], Verbs:["get"]}',
    ]
