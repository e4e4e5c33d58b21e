"""The roles in the Karmada API server: each process has the rights of its own requests only.

A commit that adds or removes a request of a process changes the role too.
"""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAME
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_TRAINING_RUNTIMES,
    CLUSTERS,
    CONFIG_MAPS,
    CORE_EVENTS,
    DEPLOYMENTS,
    EVENTS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    SECRETS,
    SERVICE_EXPORTS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VALIDATING_WEBHOOKS,
    VCJOBS,
    Resource,
)
from hyperjob_install.objects import Component, Item, labelled
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

CONTROLLER: Final = "hyperjob-controller"
CERTS: Final = "hyperjob-certs"
WEBHOOK: Final = "hyperjob-webhook"
UI: Final = "hyperjob-ui"

# Karmada copies each namespace to every member unless the namespace has this label.
SKIP_PROPAGATION: Final = "namespace.karmada.io/skip-auto-propagation"

SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_RUNTIMES: Final = (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
_READ: Final = ("get", "list", "watch")
_EDIT: Final = (*_READ, "create", "update", "patch", "delete")


def rbac(
    *,
    controller_user: str,
    certs_user: str,
    webhook_user: str,
    lease_namespace: str,
    service_accounts: bool = False,
    ui_user: str = "",
    more_accounts: tuple[str, ...] = (),
    secret_warnings: bool = False,
    trainjobs: bool = False,
    failed_logs: bool = False,
) -> list[Item]:
    """Return roles and bindings for the processes, and roles for people.

    A user is a name, or `system:serviceaccount:NAMESPACE:NAME`. With `service_accounts` the result
    has a service account for each user and for `more_accounts`, in the namespace of the
    controller's Lease, and `certs_user` may renew the tokens of all. The result has that namespace
    too. `ui_user` is the user of a shared web page, empty without one. `secret_warnings` lets the
    webhook get Secrets. `trainjobs` lets controller and webhook follow TrainJobs, `failed_logs` the
    controller keep logs in ConfigMaps.
    """
    accounts: list[Item] = []
    if service_accounts:
        controller_user = account_user(lease_namespace, CONTROLLER)
        certs_user = account_user(lease_namespace, CERTS)
        webhook_user = account_user(lease_namespace, WEBHOOK)
        ui_user = ui_user and account_user(lease_namespace, UI)
        more = (*((UI,) if ui_user else ()), *more_accounts)
        accounts = _accounts(lease_namespace, certs_user, more)
    return [
        _item(
            NAMESPACES,
            lease_namespace,
            {"metadata": {"labels": {SKIP_PROPAGATION: "true"}}},
            part=Component.RECORD,
            only_where_missing=True,
        ),
        *accounts,
        _item(
            CLUSTER_ROLES,
            CONTROLLER,
            {"rules": controller_rules(trainjobs=trainjobs, failed_logs=failed_logs)},
        ),
        _item(
            ROLES, CONTROLLER, {"rules": lease_rules(lease_namespace)}, namespace=lease_namespace
        ),
        _item(CLUSTER_ROLES, CERTS, {"rules": certs_rules()}),
        _item(
            CLUSTER_ROLES,
            WEBHOOK,
            {"rules": webhook_rules(secrets=secret_warnings, trainjobs=trainjobs)},
        ),
        _item(CLUSTER_ROLES, "hyperjob-edit", _for_people("edit", _EDIT)),
        _item(CLUSTER_ROLES, "hyperjob-view", _for_people("view", _READ)),
        _item(
            CLUSTER_ROLE_BINDINGS, CONTROLLER, _binding(CLUSTER_ROLES, CONTROLLER, controller_user)
        ),
        _item(
            ROLE_BINDINGS,
            CONTROLLER,
            _binding(ROLES, CONTROLLER, controller_user),
            namespace=lease_namespace,
        ),
        _item(CLUSTER_ROLE_BINDINGS, CERTS, _binding(CLUSTER_ROLES, CERTS, certs_user)),
        _item(CLUSTER_ROLE_BINDINGS, WEBHOOK, _binding(CLUSTER_ROLES, WEBHOOK, webhook_user)),
        *(_for_ui(ui_user, lease_namespace) if ui_user else ()),
    ]


def controller_rules(*, trainjobs: bool = False, failed_logs: bool = False) -> list[Object]:
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
        *((_rule(CONFIG_MAPS, "get", "create", "patch"),) if failed_logs else ()),
        _rule(HYPERJOBS, "list", "watch", "delete"),
        _rule(HYPERJOBS, "patch", subresource="status"),
        # Sub-jobs have blockOwnerDeletion, for which the admission plugin
        # OwnerReferencesPermissionEnforcement requires this right.
        _rule(HYPERJOBS, "update", subresource="finalizers"),
        _rule(VCJOBS, "get", "list", "watch", "create", "patch", "delete"),
        _rule(PROPAGATION_POLICIES, "get", "list", "watch", "create", "patch", "delete"),
        _rule(RESOURCE_BINDINGS, "list", "watch", "patch"),
        _rule(SERVICE_EXPORTS, "get", "create", "delete"),
        _rule(CLUSTERS, "list", "watch"),
        _rule(QUEUES, "list", "watch"),
        _rule(CLUSTER_RESOURCE_BINDINGS, "list", "watch"),
        _rule(PRIORITY_CLASSES, "list", "watch"),
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
        *((SECRETS,) if secrets else ()),
        *((*_RUNTIMES, NAMESPACES) if trainjobs else ()),
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
        _rule(CORE_EVENTS, "list"),
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


def account_user(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def subject(user: str) -> Object:
    """Return the subject of a role binding for a user's name.

    Raises ValueError for a service account without a namespace or a name.
    """
    if not user.startswith(_SERVICE_ACCOUNT):
        return {"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": user}
    namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not namespace or not name:
        raise ValueError(f"{user!r} must be {_SERVICE_ACCOUNT}NAMESPACE:NAME")
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _for_ui(user: str, namespace: str) -> list[Item]:
    role = {"rules": ui_lease_rules()}
    return [
        _item(CLUSTER_ROLES, UI, {"rules": ui_rules()}),
        _item(CLUSTER_ROLE_BINDINGS, UI, _binding(CLUSTER_ROLES, UI, user)),
        _item(ROLES, UI, role, namespace=namespace),
        _item(ROLE_BINDINGS, UI, _binding(ROLES, UI, user), namespace=namespace),
    ]


def _accounts(namespace: str, certs_user: str, more: tuple[str, ...]) -> list[Item]:
    binding = _binding(ROLES, CERTS, certs_user)
    return [
        *(
            _item(SERVICE_ACCOUNTS, name, {}, namespace=namespace)
            for name in (CONTROLLER, CERTS, WEBHOOK, *more)
        ),
        _item(ROLES, CERTS, {"rules": token_rules(*more)}, namespace=namespace),
        _item(ROLE_BINDINGS, CERTS, binding, namespace=namespace),
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


def _binding(roles: Resource, role: str, user: str) -> Object:
    return {
        "roleRef": {"apiGroup": roles.group, "kind": roles.kind, "name": role},
        "subjects": [subject(user)],
    }


def _item(
    resource: Resource,
    name: str,
    content: Object,
    *,
    namespace: str | None = None,
    part: Component = Component.RBAC,
    only_where_missing: bool = False,
) -> Item:
    metadata = {"name": name, **content.get("metadata", {})}
    if namespace is not None:
        metadata["namespace"] = namespace
    obj = {
        **content,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
    }
    return Item(
        part=part,
        resource=resource,
        object=labelled(obj, component="rbac"),
        only_where_missing=only_where_missing,
    )
