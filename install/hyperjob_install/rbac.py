"""The roles in Karmada and in the members: each process has the rights of its own requests only.

A commit that adds or removes a request of a process changes the role too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.kube import resources as kinds
from hyperjob_core.kube.resources import Resource
from hyperjob_install.objects import EVERYWHERE, Component, Item, new_item
from hyperjob_install.settings import SECRET_WARNINGS, SERVICE_ACCOUNT_USER, TRAINJOBS, Settings
from hyperjob_install.settings import UI as PAGE
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

CONTROLLER: Final = "hyperjob-controller"
CERTS: Final = "hyperjob-certs"
WEBHOOK: Final = "hyperjob-webhook"
UI: Final = "hyperjob-ui"
MEMBERS: Final = "hyperjob-members"

# Karmada copies each namespace to every member unless the namespace has this label.
SKIP_PROPAGATION: Final = "namespace.karmada.io/skip-auto-propagation"

_RUNTIMES: Final = (kinds.TRAINING_RUNTIMES, kinds.CLUSTER_TRAINING_RUNTIMES)
_FLEET: Final = (kinds.CLUSTERS, kinds.CLUSTER_RESOURCE_BINDINGS, kinds.PRIORITY_CLASSES)
_WATCHED: Final = (
    *_FLEET,
    kinds.RESOURCE_CLAIM_TEMPLATES,
    kinds.MUTATING_WEBHOOKS,
    kinds.DEPLOYMENTS,
)
"""What the controller watches, and has no other right to."""
_SHOWN: Final = (kinds.HYPERJOBS, kinds.QUEUES, *_FLEET)
"""What the web page shows."""
_item = partial(new_item, part=Component.RBAC, component="rbac")
_READ: Final = ("get", "list", "watch")
_EDIT: Final = (*_READ, "create", "update", "patch", "delete")


def rbac(settings: Settings, *, namespace: str = LEASE_NAMESPACE) -> list[Item]:
    """Return roles and bindings for the processes, roles for people, and their namespace.

    With `service_accounts` the result has the service accounts too, and `hyperjob-certs` may renew
    the tokens of all. `namespace` is that of the Lease and of the service accounts.
    """
    lease_namespace = new_item(
        kinds.NAMESPACES,
        namespace,
        {"metadata": {"labels": {SKIP_PROPAGATION: "true"}}},
        part=Component.RECORD,
        component="rbac",
        only_where_missing=True,
    )
    accounts = _accounts(settings, namespace) if settings.service_accounts else []
    trainjobs = TRAINJOBS in settings.parts
    controller = controller_rules(trainjobs=trainjobs)
    webhook = webhook_rules(secrets=SECRET_WARNINGS in settings.parts, trainjobs=trainjobs)
    user = settings.user("controller", namespace=namespace)
    rights = [
        *_granted(CONTROLLER, controller, user),
        *_granted(CONTROLLER, lease_rules(namespace), user, namespace=namespace),
        *_granted(CERTS, certs_rules(), settings.user("certs", namespace=namespace)),
        *_granted(WEBHOOK, webhook, settings.user("webhook", namespace=namespace)),
        _item(kinds.CLUSTER_ROLES, "hyperjob-edit", _for_people("edit", _EDIT)),
        _item(kinds.CLUSTER_ROLES, "hyperjob-view", _for_people("view", _READ)),
    ]
    if PAGE in settings.parts:
        user = settings.user("ui", namespace=namespace)
        rights += _granted(UI, ui_rules(), user)
        rights += _granted(UI, ui_lease_rules(), user, namespace=namespace)
    return [lease_namespace, *accounts, *rights]


def controller_rules(*, trainjobs: bool = False) -> list[Object]:
    """Return the controller's rules for all namespaces, those of optional parts where asked."""
    more = [
        _rule(kinds.HYPERJOBS, "create", "patch"),
        *(_rule(each, "list", "watch") for each in (kinds.TRAINJOBS, *_RUNTIMES, kinds.NAMESPACES)),
        _rule(kinds.TRAINJOBS, "patch", subresource="status"),
        # HyperJobs of TrainJobs have blockOwnerDeletion too.
        _rule(kinds.TRAINJOBS, "update", subresource="finalizers"),
    ]
    return [
        *(more if trainjobs else ()),
        _rule(kinds.HYPERJOBS, "list", "watch", "delete"),
        _rule(kinds.HYPERJOBS, "patch", subresource="status"),
        # Sub-jobs have blockOwnerDeletion, for which the admission plugin
        # OwnerReferencesPermissionEnforcement requires this right.
        _rule(kinds.HYPERJOBS, "update", subresource="finalizers"),
        _rule(kinds.VCJOBS, "get", "list", "watch", "create", "patch", "delete"),
        _rule(kinds.PROPAGATION_POLICIES, "get", "list", "watch", "create", "patch", "delete"),
        _rule(kinds.RESOURCE_BINDINGS, "get", "list", "watch", "patch"),
        _rule(kinds.WORKS, "get", "delete"),  # those that Karmada forgets
        _rule(kinds.SERVICE_EXPORTS, "get", "create", "delete"),
        _rule(kinds.QUEUES, "list", "watch", "patch"),  # an annotation: what the queue has consumed
        *(_rule(each, "list", "watch") for each in _WATCHED),
        _rule(kinds.EVENTS, "create", "patch"),
    ]


def lease_rules(namespace: str) -> list[Object]:
    """Return the controller's rules in the namespace of its Lease; `create` has no name."""
    return [
        _rule(kinds.NAMESPACES, "get", names=[namespace]),
        _rule(kinds.LEASES, "create"),
        _rule(kinds.LEASES, "get", "update", names=[LEASE_NAME]),
    ]


def certs_rules() -> list[Object]:
    """Return the rules of `hyperjob-certs inject`."""
    return [
        _rule(kinds.MUTATING_WEBHOOKS, "get", "update", names=[MUTATING_NAME]),
        _rule(kinds.VALIDATING_WEBHOOKS, "get", "update", names=[VALIDATING_NAME]),
    ]


def webhook_rules(*, secrets: bool = False, trainjobs: bool = False) -> list[Object]:
    """Return the webhook's rules, which it needs for warnings, and for TrainJobs where asked.

    The webhook requests metadata only, but RBAC has no such right: a role that may get Secrets may
    read their data. Therefore `secrets` is optional.
    """
    needed = (
        kinds.CONFIG_MAPS,
        kinds.PERSISTENT_VOLUME_CLAIMS,
        kinds.SERVICE_ACCOUNTS,
        kinds.NAMESPACES,
        *((kinds.SECRETS,) if secrets else ()),
        *(_RUNTIMES if trainjobs else ()),
    )
    return [
        *(
            _rule(each, "list", "watch")
            for each in (kinds.CLUSTERS, kinds.QUEUES, kinds.PRIORITY_CLASSES)
        ),
        *(_rule(each, "get") for each in needed),
    ]


def ui_rules() -> list[Object]:
    """Return the rules of the shared web page: lists, watches, and reviews of tokens and access.

    The page makes all other requests with the tokens of its visitors.
    """
    return [
        *(_rule(each, "list", "watch") for each in _SHOWN),
        _rule(kinds.TOKEN_REVIEWS, "create"),
        _rule(kinds.SUBJECT_ACCESS_REVIEWS, "create"),
    ]


def ui_lease_rules() -> list[Object]:
    """Return the rules of the shared web page in the namespace of the controller's Lease."""
    return [_rule(kinds.LEASES, "list", "watch", names=[LEASE_NAME])]


def token_rules(*more: str) -> list[Object]:
    """Return the rules of `hyperjob credentials renew` in the namespace of the accounts."""
    names = [CERTS, CONTROLLER, WEBHOOK, *more]
    return [_rule(kinds.SERVICE_ACCOUNTS, "create", subresource="token", names=names)]


def subject(user: str) -> Object:
    """Return the subject of a role binding for a user's name.

    Raises ValueError for a service account without a namespace or a name.
    """
    if not user.startswith(SERVICE_ACCOUNT_USER):
        return {"apiGroup": kinds.CLUSTER_ROLES.group, "kind": "User", "name": user}
    namespace, _, name = user.removeprefix(SERVICE_ACCOUNT_USER).partition(":")
    if not namespace or not name:
        raise ValueError(f"{user!r} must be {SERVICE_ACCOUNT_USER}NAMESPACE:NAME")
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _accounts(settings: Settings, namespace: str) -> list[Item]:
    more = (
        *((UI,) if PAGE in settings.parts else ()),
        *((MEMBERS,) if settings.members is not MemberAccess.OFF else ()),
    )
    return [
        *(
            _item(kinds.SERVICE_ACCOUNTS, name, {}, namespace=namespace)
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
        (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS)
        if namespace is None
        else (kinds.ROLES, kinds.ROLE_BINDINGS)
    )
    binding = {
        "roleRef": {"apiGroup": roles.group, "kind": roles.kind, "name": name},
        "subjects": [subject(user)],
    }
    return [
        item(roles, name, {"rules": rules}, namespace=namespace),
        item(bindings, name, binding, namespace=namespace),
    ]


def _rule(
    resource: Resource, *verbs: str, subresource: str = "", names: Sequence[str] = ()
) -> Object:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    rule = {"apiGroups": [resource.group], "resources": [plural], "verbs": list(verbs)}
    return {**rule, "resourceNames": [*names]} if names else rule


def _for_people(role: str, verbs: tuple[str, ...]) -> Object:
    """Return a ClusterRole that Kubernetes aggregates to `view`, `edit` or `admin`."""
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true"}
    if role == "edit":
        labels["rbac.authorization.k8s.io/aggregate-to-admin"] = "true"
    return {"metadata": {"labels": labels}, "rules": [_rule(kinds.HYPERJOBS, *verbs)]}


MEMBER_ROLE: Final = "hyperjob-members-reader"


def members(user: str, step: MemberAccess) -> list[Item]:
    """Return the roles, their bindings and the policy that copies them to members.

    With the step `off` the items are marked for deletion.
    """
    absent = step is MemberAccess.OFF
    item = partial(new_item, part=Component.MEMBERS, component="members", absent=absent)
    spec = {
        "resourceSelectors": [
            {**resource.head, "name": MEMBER_ROLE}
            for resource in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS)
        ],
        "placement": EVERYWHERE,
    }
    return [
        *_granted(MEMBERS, proxy_rules(), user, item=item),
        *_granted(MEMBER_ROLE, member_rules(step), user, item=item),
        item(kinds.CLUSTER_PROPAGATION_POLICIES, MEMBERS, {"spec": spec}),
    ]


def proxy_rules() -> list[Object]:
    """Return the rules of the account in the Karmada API server."""
    return [_rule(kinds.CLUSTERS, "get", subresource="proxy")]


def member_rules(step: MemberAccess) -> list[Object]:
    """Return the rules of the account in a member, the least that a step needs."""
    rules: list[Object] = []
    if step.includes(MemberAccess.PODS):
        rules += [_rule(kinds.PODS, *_READ), _rule(kinds.PODGROUPS, *_READ)]
        rules.append(_rule(kinds.CORE_EVENTS, "list", "watch"))
    if step.includes(MemberAccess.NODES):
        rules += [_rule(each, *_READ) for each in (kinds.NODES, kinds.HYPERNODES)]
        rules += [_rule(each, "list", "watch") for each in kinds.DEVICES]
    if step.includes(MemberAccess.LOGS):
        rules.append(_rule(kinds.PODS, "get", subresource="log"))
    return rules
