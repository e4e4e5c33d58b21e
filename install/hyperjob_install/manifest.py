"""All objects of an installation, in the order in which `install` applies them.

CRDs come first, since the API server stores their objects only afterwards; webhook configurations
come last, since the API server then calls the webhooks for every HyperJob. Pure.
"""

from json import dumps
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_PROPAGATION_POLICIES,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASSES,
    QUEUES,
    VALIDATING_WEBHOOKS,
)
from hyperjob_install.definitions import definitions
from hyperjob_install.interpreters import interpreters
from hyperjob_install.objects import EVERYWHERE, Component, Item, labelled, new_item
from hyperjob_install.rbac import members, rbac
from hyperjob_install.settings import TENANCY, TRAINJOBS, Settings, record_item
from hyperjob_install.tenancy import tenancy
from hyperjob_rules.configuration import configurations

ORDER: Final = tuple(Component)


def manifest(settings: Settings) -> list[Item]:
    """Return all objects in order; ValueError for an invalid setting."""
    items = [*definitions(), queue_policy(), default_queue(), *interpreters()]
    items += priority_class_policies()
    items += rbac(settings)
    items.append(record_item(settings))
    items += certs_guard(settings.user("certs"))
    items += tenancy(enabled=TENANCY in settings.parts)
    items += members(settings.user("members"), settings.members)
    if Component.WEBHOOKS not in settings.skip:
        items += _webhooks(settings)
    wanted = [item for item in items if item.part not in settings.skip]
    return sorted(wanted, key=lambda item: ORDER.index(item.part))


def _webhooks(settings: Settings) -> list[Item]:
    pair = configurations(
        url=settings.url,
        service=settings.service,
        ca_bundle=settings.ca_bundle,
        trainjobs=TRAINJOBS in settings.parts,
    )
    return [
        Item(
            part=Component.WEBHOOKS,
            resource=resource,
            object=labelled(configuration, component="webhook"),
        )
        for resource, configuration in zip(
            (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), pair, strict=True
        )
    ]


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


QUEUE_POLICY: Final = "hyperjob-queues"
PRIORITY_CLASS_POLICY: Final = "hyperjob-priority-classes"
SYSTEM_CLASS_POLICY: Final = "hyperjob-system-priority-classes"
SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
DEFAULT_QUEUE: Final = "default"


def queue_policy() -> Item:
    """Return the ClusterPropagationPolicy of Queues.

    Its conflictResolution is Overwrite, because Volcano creates the Queue `default` in each
    member: otherwise Karmada does not adopt that Queue and collects no status, and Volcano's
    webhook refuses jobs for it.
    """
    spec = {
        "resourceSelectors": [QUEUES.head],
        "placement": EVERYWHERE,
        "conflictResolution": "Overwrite",
    }
    return _policy(Component.QUEUE_POLICY, QUEUE_POLICY, spec, component="queues")


def priority_class_policies() -> list[Item]:
    """Return the ClusterPropagationPolicies of PriorityClasses.

    A PriorityClass that a member has already stays as it is. Each member has the classes `system-*`
    of its own. The second policy selects these by name, which has precedence, and sends nothing.
    Both without preserveResourcesOnDeletion: with it Karmada cannot remove a Cluster that has a
    PriorityClass of its own under the same name.
    """
    kind = PRIORITY_CLASSES.head
    copied: Object = {
        "resourceSelectors": [kind],
        "placement": EVERYWHERE,
    }
    system = [{**kind, "name": name} for name in SYSTEM_CLASSES]
    kept = copied | {"resourceSelectors": system, "suspension": {"dispatching": True}}
    return [
        _policy(Component.PRIORITY_CLASSES, name, spec, component="priority-classes")
        for name, spec in ((PRIORITY_CLASS_POLICY, copied), (SYSTEM_CLASS_POLICY, kept))
    ]


def _policy(part: Component, name: str, spec: Object, *, component: str) -> Item:
    return new_item(
        CLUSTER_PROPAGATION_POLICIES, name, {"spec": spec}, part=part, component=component
    )


def default_queue() -> Item:
    """Return the Queue of jobs that name no queue; `install` does not change an existing Queue.

    The Queue has none of HyperJob's labels, since other jobs may use it: `install` and `uninstall`
    never change or delete it.
    """
    return Item(
        part=Component.DEFAULT_QUEUE,
        resource=QUEUES,
        object={
            **QUEUES.head,
            "metadata": {"name": DEFAULT_QUEUE},
            "spec": {"weight": 1},
        },
        only_where_missing=True,
    )
