"""The roles in Karmada and in the members: each process has the rights of its own requests only.

A commit that adds or removes a request of a process changes the role too.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_TRAINING_RUNTIMES,
    CLUSTERS,
    CONFIG_MAPS,
    CORE_EVENTS,
    DEPLOYMENTS,
    DEVICES,
    EVENTS,
    HYPERJOBS,
    HYPERNODES,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_EXPORTS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VALIDATING_WEBHOOKS,
    VCJOBS,
    WORKS,
    Resource,
)
from hyperjob_install.objects import Component, Item, new_item
from hyperjob_install.settings import SERVICE_ACCOUNT_USER, Settings
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

CONTROLLER: Final = "hyperjob-controller"
CERTS: Final = "hyperjob-certs"
WEBHOOK: Final = "hyperjob-webhook"
UI: Final = "hyperjob-ui"
MEMBERS: Final = "hyperjob-members"

# Karmada copies each namespace to every member unless the namespace has this label.
SKIP_PROPAGATION: Final = "namespace.karmada.io/skip-auto-propagation"

_RUNTIMES: Final = (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
_item = partial(new_item, part=Component.RBAC, component="rbac")
_READ: Final = ("get", "list", "watch")
_EDIT: Final = (*_READ, "create", "update", "patch", "delete")


def rbac(settings: Settings, *, namespace: str = LEASE_NAMESPACE) -> list[Item]:
    """Return roles and bindings for the processes, roles for people, and their namespace.

    With `service_accounts` the result has the service accounts too, and `hyperjob-certs` may renew
    the tokens of all. `namespace` is that of the Lease and of the service accounts.
    """
    lease_namespace = new_item(
        NAMESPACES,
        namespace,
        {"metadata": {"labels": {SKIP_PROPAGATION: "true"}}},
        part=Component.RECORD,
        component="rbac",
        only_where_missing=True,
    )
    accounts = _accounts(settings, namespace) if settings.service_accounts else []
    controller = controller_rules(trainjobs=settings.trainjobs)
    webhook = webhook_rules(secrets=settings.secret_warnings, trainjobs=settings.trainjobs)
    user = settings.user("controller", namespace=namespace)
    rights = [
        *_granted(CONTROLLER, controller, user),
        *_granted(CONTROLLER, lease_rules(namespace), user, namespace=namespace),
        *_granted(CERTS, certs_rules(), settings.user("certs", namespace=namespace)),
        *_granted(WEBHOOK, webhook, settings.user("webhook", namespace=namespace)),
        _item(CLUSTER_ROLES, "hyperjob-edit", _for_people("edit", _EDIT)),
        _item(CLUSTER_ROLES, "hyperjob-view", _for_people("view", _READ)),
    ]
    if settings.ui:
        user = settings.user("ui", namespace=namespace)
        rights += _granted(UI, ui_rules(), user)
        rights += _granted(UI, ui_lease_rules(), user, namespace=namespace)
    return [lease_namespace, *accounts, *rights]


def controller_rules(*, trainjobs: bool = False) -> list[Object]:
    """Return the controller's rules for all namespaces, those of optional parts where asked."""
    more = [
        _rule(HYPERJOBS, "create", "patch"),
        *(_rule(each, "list", "watch") for each in (TRAINJOBS, *_RUNTIMES, NAMESPACES)),
        _rule(TRAINJOBS, "patch", subresource="status"),
        # HyperJobs of TrainJobs have blockOwnerDeletion too.
        _rule(TRAINJOBS, "update", subresource="finalizers"),
    ]
    return [
        *(more if trainjobs else ()),
        _rule(HYPERJOBS, "list", "watch", "delete"),
        _rule(HYPERJOBS, "patch", subresource="status"),
        # Sub-jobs have blockOwnerDeletion, for which the admission plugin
        # OwnerReferencesPermissionEnforcement requires this right.
        _rule(HYPERJOBS, "update", subresource="finalizers"),
        _rule(VCJOBS, "get", "list", "watch", "create", "patch", "delete"),
        _rule(PROPAGATION_POLICIES, "get", "list", "watch", "create", "patch", "delete"),
        _rule(RESOURCE_BINDINGS, "get", "list", "watch", "patch"),
        _rule(WORKS, "get", "delete"),  # those that Karmada forgets
        _rule(SERVICE_EXPORTS, "get", "create", "delete"),
        _rule(CLUSTERS, "list", "watch"),
        _rule(QUEUES, "list", "watch", "patch"),  # an annotation: what the queue has consumed
        _rule(CLUSTER_RESOURCE_BINDINGS, "list", "watch"),
        _rule(PRIORITY_CLASSES, "list", "watch"),
        _rule(RESOURCE_CLAIM_TEMPLATES, "list", "watch"),
        _rule(MUTATING_WEBHOOKS, "list", "watch"),
        _rule(DEPLOYMENTS, "list", "watch"),
        _rule(EVENTS, "create", "patch"),
    ]


def lease_rules(namespace: str) -> list[Object]:
    """Return the controller's rules in the namespace of its Lease; `create` has no name."""
    return [
        {**_rule(NAMESPACES, "get"), "resourceNames": [namespace]},
        _rule(LEASES, "create"),
        {**_rule(LEASES, "get", "update"), "resourceNames": [LEASE_NAME]},
    ]


def certs_rules() -> list[Object]:
    """Return the rules of `hyperjob-certs inject`."""
    return [
        {**_rule(MUTATING_WEBHOOKS, "get", "update"), "resourceNames": [MUTATING_NAME]},
        {**_rule(VALIDATING_WEBHOOKS, "get", "update"), "resourceNames": [VALIDATING_NAME]},
    ]


def webhook_rules(*, secrets: bool = False, trainjobs: bool = False) -> list[Object]:
    """Return the webhook's rules, which it needs for warnings, and for TrainJobs where asked.

    The webhook requests metadata only, but RBAC has no such right: a role that may get Secrets may
    read their data. Therefore `secrets` is optional.
    """
    needed = (
        CONFIG_MAPS,
        PERSISTENT_VOLUME_CLAIMS,
        SERVICE_ACCOUNTS,
        NAMESPACES,
        *((SECRETS,) if secrets else ()),
        *(_RUNTIMES if trainjobs else ()),
    )
    return [
        *(_rule(each, "list", "watch") for each in (CLUSTERS, QUEUES, PRIORITY_CLASSES)),
        *(_rule(each, "get") for each in needed),
    ]


def ui_rules() -> list[Object]:
    """Return the rules of the shared web page: lists, watches, and reviews of tokens and access.

    The page makes all other requests with the tokens of its visitors.
    """
    return [
        _rule(HYPERJOBS, "list", "watch"),
        _rule(CLUSTERS, "list", "watch"),
        _rule(QUEUES, "list", "watch"),
        _rule(CLUSTER_RESOURCE_BINDINGS, "list", "watch"),
        _rule(PRIORITY_CLASSES, "list", "watch"),
        _rule(TOKEN_REVIEWS, "create"),
        _rule(SUBJECT_ACCESS_REVIEWS, "create"),
    ]


def ui_lease_rules() -> list[Object]:
    """Return the rules of the shared web page in the namespace of the controller's Lease."""
    return [{**_rule(LEASES, "list", "watch"), "resourceNames": [LEASE_NAME]}]


def token_rules(*more: str) -> list[Object]:
    """Return the rules of `hyperjob credentials renew` in the namespace of the accounts."""
    return [
        {
            **_rule(SERVICE_ACCOUNTS, "create", subresource="token"),
            "resourceNames": [CERTS, CONTROLLER, WEBHOOK, *more],
        }
    ]


def subject(user: str) -> Object:
    """Return the subject of a role binding for a user's name.

    Raises ValueError for a service account without a namespace or a name.
    """
    if not user.startswith(SERVICE_ACCOUNT_USER):
        return {"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": user}
    namespace, _, name = user.removeprefix(SERVICE_ACCOUNT_USER).partition(":")
    if not namespace or not name:
        raise ValueError(f"{user!r} must be {SERVICE_ACCOUNT_USER}NAMESPACE:NAME")
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _accounts(settings: Settings, namespace: str) -> list[Item]:
    more = (
        *((UI,) if settings.ui else ()),
        *((MEMBERS,) if settings.members is not MemberAccess.OFF else ()),
    )
    return [
        *(
            _item(SERVICE_ACCOUNTS, name, {}, namespace=namespace)
            for name in (CONTROLLER, CERTS, WEBHOOK, *more)
        ),
        *_granted(
            CERTS,
            token_rules(*more),
            settings.user("certs", namespace=namespace),
            namespace=namespace,
        ),
    ]


def _granted(
    name: str,
    rules: list[Object],
    user: str,
    *,
    namespace: str | None = None,
    item: Callable[..., Item] = _item,
) -> list[Item]:
    """Return a ClusterRole, or a Role in a namespace, and its binding to a user."""
    roles, bindings = (
        (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS) if namespace is None else (ROLES, ROLE_BINDINGS)
    )
    binding = {
        "roleRef": {"apiGroup": roles.group, "kind": roles.kind, "name": name},
        "subjects": [subject(user)],
    }
    return [
        item(roles, name, {"rules": rules}, namespace=namespace),
        item(bindings, name, binding, namespace=namespace),
    ]


def _rule(resource: Resource, *verbs: str, subresource: str = "") -> Object:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return {"apiGroups": [resource.group], "resources": [plural], "verbs": list(verbs)}


def _for_people(role: str, verbs: tuple[str, ...]) -> Object:
    """Return a ClusterRole that Kubernetes aggregates to `view`, `edit` or `admin`."""
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true"}
    if role == "edit":
        labels["rbac.authorization.k8s.io/aggregate-to-admin"] = "true"
    return {"metadata": {"labels": labels}, "rules": [_rule(HYPERJOBS, *verbs)]}


MEMBER_ROLE: Final = "hyperjob-members-reader"


def members(user: str, step: MemberAccess) -> list[Item]:
    """Return the roles, their bindings and the policy that copies them to members.

    With the step `off` the items are marked for deletion.
    """
    absent = step is MemberAccess.OFF
    item = partial(new_item, part=Component.MEMBERS, component="members", absent=absent)
    spec = {
        "resourceSelectors": [
            {"apiVersion": resource.api_version, "kind": resource.kind, "name": MEMBER_ROLE}
            for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        ],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
    }
    return [
        *_granted(MEMBERS, proxy_rules(), user, item=item),
        *_granted(MEMBER_ROLE, member_rules(step), user, item=item),
        item(CLUSTER_PROPAGATION_POLICIES, MEMBERS, {"spec": spec}),
    ]


def proxy_rules() -> list[Object]:
    """Return the rules of the account in the Karmada API server."""
    return [
        {"apiGroups": [CLUSTERS.group], "resources": ["clusters/proxy"], "verbs": ["get"]},
    ]


def member_rules(step: MemberAccess) -> list[Object]:
    """Return the rules of the account in a member, the least that a step needs."""
    rules: list[Object] = []
    if step.includes(MemberAccess.PODS):
        rules += [_rule(PODS, *_READ), _rule(PODGROUPS, *_READ)]
        rules.append(_rule(CORE_EVENTS, "list", "watch"))
    if step.includes(MemberAccess.NODES):
        rules += [_rule(each, *_READ) for each in (NODES, HYPERNODES)]
        rules += [_rule(each, "list", "watch") for each in DEVICES]
    if step.includes(MemberAccess.LOGS):
        rules.append(_rule(PODS, "get", subresource="log"))
    return rules
