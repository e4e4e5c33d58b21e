"""Rules of Roles: what they allow."""

import pytest

from hyperjob_sandbox.apiserver.rbac import Rule
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
