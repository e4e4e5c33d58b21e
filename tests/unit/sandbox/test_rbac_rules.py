"""Rules of Roles: what they allow."""

import pytest

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.rbac import allows
from hyperjob_sandbox.apiserver.transport.authorization import Action

PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
LOGS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}
NAMED = {
    "verbs": ["get", "update"],
    "apiGroups": [""],
    "resources": ["secrets"],
    "resourceNames": ["a", "b"],
}
HEALTH = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
STATUS = {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["*/status"]}


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
def test_a_rule_allows_what_it_names(rule: Object, action: Action, allowed: bool) -> None:
    assert allows(rule, action) is allowed
