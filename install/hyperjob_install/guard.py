"""Restrict `hyperjob-certs` to caBundle of webhook configurations, which RBAC cannot.

The restriction is a ValidatingAdmissionPolicy, which API servers of Kubernetes 1.30 and newer
evaluate.
"""

from json import dumps
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
from hyperjob_install.objects import Component, Item, new_item

NAME: Final = "hyperjob-certs"

_FIELDS: Final = (
    "rules",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "matchConditions",
    "reinvocationPolicy",
    "clientConfig.url",
    "clientConfig.service",
)
"""The fields of a webhook beside its name and `clientConfig.caBundle`."""


def certs_guard(user: str) -> list[Item]:
    """Return the policy for the user of `hyperjob-certs inject`, and its binding."""
    rule = {
        "apiGroups": [MUTATING_WEBHOOKS.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [MUTATING_WEBHOOKS.plural, VALIDATING_WEBHOOKS.plural],
    }
    same = " && ".join(["w.name == o.name", *map(_same, _FIELDS)])
    unchanged = (
        "size(object.webhooks) == size(oldObject.webhooks)"
        f" && object.webhooks.all(w, oldObject.webhooks.exists(o, {same}))"
    )
    policy: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "by-certs", "expression": f"request.userInfo.username == {dumps(user)}"}
        ],
        "validations": [
            {
                "expression": unchanged,
                "message": f"{user} may change only caBundle of a webhook",
                "reason": "Forbidden",
            }
        ],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        new_item(
            resource,
            NAME,
            {"spec": spec},
            part=Component.RBAC,
            component="rbac",
            only_where_served=True,
        )
        for resource, spec in (
            (ADMISSION_POLICIES, policy),
            (ADMISSION_POLICY_BINDINGS, binding),
        )
    ]


def _same(path: str) -> str:
    """Return the CEL expression that compares an optional field of `w` and `o`."""
    return f"(has(w.{path}) ? has(o.{path}) && w.{path} == o.{path} : !has(o.{path}))"
