"""Which webhooks a request is for: rules, scope, selectors, match conditions."""

import pytest

from hyperjob_sandbox.apiserver.admission.hooks import compile_hooks, exempt
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
)
from hyperjob_sandbox.apiserver.errors import ApiError

GVR = GroupVersionResource("conf.example.dev", "v1", "gadgets")
GVK = GroupVersionKind("conf.example.dev", "v1", "Gadget")
NAMESPACE = {"metadata": {"name": "conf", "labels": {"team": "a"}}}


def hook(*, rule=None, **fields):
    matching = {
        "apiGroups": ["conf.example.dev"],
        "apiVersions": ["v1"],
        "resources": ["gadgets"],
        "operations": ["CREATE"],
        **(rule or {}),
    }
    webhook = {"name": "x", "clientConfig": {"url": "https://x"}, "rules": [matching], **fields}
    (found,) = compile_hooks([{"metadata": {"name": "c"}, "webhooks": [webhook]}])
    return found


def request(**fields):
    obj = {"apiVersion": "conf.example.dev/v1", "metadata": {"name": "g", "labels": {"app": "x"}}}
    given = {
        "operation": "CREATE",
        "gvr": GVR,
        "gvk": GVK,
        "namespace": "conf",
        "name": "g",
        "object": obj,
        "user": {"username": "u", "groups": ["g1", "g2"]},
    }
    return AdmissionRequest(**{**given, **fields})


RULES = {
    "exactly": ({}, True),
    "any group": ({"apiGroups": ["*"]}, True),
    "other group": ({"apiGroups": ["apps", ""]}, False),
    "other version": ({"apiVersions": ["v2"]}, False),
    "any operation": ({"operations": ["*"]}, True),
    "other operation": ({"operations": ["UPDATE"]}, False),
    "any resource": ({"resources": ["*"]}, True),
    "all of everything": ({"resources": ["*/*"]}, True),
    "its subresources": ({"resources": ["gadgets/*"]}, True),
    "another subresource": ({"resources": ["gadgets/status"]}, False),
    "namespaced": ({"scope": "Namespaced"}, True),
    "cluster": ({"scope": "Cluster"}, False),
}


@pytest.mark.parametrize(("rule", "asked"), RULES.values(), ids=RULES)
def test_a_rule_chooses(rule, asked):
    assert hook(rule=rule).matches(request(), NAMESPACE) is asked


SUBRESOURCE_RULES = {
    "gadgets": False,
    "gadgets/status": True,
    "gadgets/*": True,
    "*/status": True,
    "*": False,
    "*/*": True,
    "gadgets/scale": False,
}


@pytest.mark.parametrize(("pattern", "asked"), SUBRESOURCE_RULES.items())
def test_a_rule_chooses_subresources(pattern, asked):
    found = hook(rule={"resources": [pattern]})
    assert found.matches(request(subresource="status"), NAMESPACE) is asked


def test_a_namespace_object_is_cluster_wide():
    namespaces = GroupVersionResource("", "v1", "namespaces")
    rule = {"apiGroups": [""], "resources": ["namespaces"]}
    asked = request(gvr=namespaces, namespace="conf", name="conf", object=NAMESPACE)
    assert hook(rule={**rule, "scope": "Cluster"}).matches(asked, None)
    assert not hook(rule={**rule, "scope": "Namespaced"}).matches(asked, None)
    selector = {"matchLabels": {"team": "a"}}
    assert hook(rule=rule, namespaceSelector=selector).matches(asked, None)


def test_the_namespace_selector_reads_the_namespace():
    for labels, asked in (({"team": "a"}, True), ({"team": "b"}, False)):
        found = hook(namespaceSelector={"matchLabels": labels})
        assert found.matches(request(), NAMESPACE) is asked
    found = hook(namespaceSelector={"matchLabels": {"team": "a"}})
    assert found.matches(request(namespace=""), None)
    with pytest.raises(ApiError, match='namespaces "conf" not found'):
        found.matches(request(), None)


def test_the_object_selector_reads_either_object():
    found = hook(objectSelector={"matchLabels": {"app": "x"}}, rule={"operations": ["*"]})
    bare = {"metadata": {"name": "g"}}
    assert found.matches(request(), NAMESPACE)
    assert not found.matches(request(object=bare), NAMESPACE)
    changed = request(operation="UPDATE", object=bare, old_object=request().object)
    assert found.matches(changed, NAMESPACE)


CONDITIONS = {
    "object.metadata.name == 'g'": True,
    "object.metadata.labels.app in ['y']": False,
    "oldObject == null": True,
    "request.operation == 'CREATE'": True,
    "request.userInfo.groups.exists(g, g == 'g2')": True,
    "request.kind.kind == 'Other'": False,
    "request.dryRun": False,
    "!has(request.subResource)": True,
    "has(object.spec) && object.spec.x == 1": False,
}


@pytest.mark.parametrize(("expression", "asked"), CONDITIONS.items())
def test_a_match_condition_chooses(expression, asked):
    found = hook(matchConditions=[{"name": "n", "expression": expression}])
    asking = request()
    assert found.admits(asking) is asked


def test_one_false_condition_outweighs_a_failing_one():
    conditions = [
        {"name": "bad", "expression": "object.nope == 1"},
        {"name": "no", "expression": "false"},
    ]
    asking = request()
    assert not hook(matchConditions=conditions).admits(asking)
    conditions[1]["expression"] = "true"
    with pytest.raises(ApiError, match="no such key: nope"):
        hook(matchConditions=conditions).admits(asking)


def test_webhooks_cannot_touch_webhook_configurations():
    gvk = GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration")
    assert exempt(request(gvk=gvk))
    assert not exempt(request())


def test_a_webhook_has_the_defaults_of_the_api():
    found = hook()
    assert (found.timeout_seconds, found.ignore_failures) == (10, False)
    assert not found.side_effect_free
