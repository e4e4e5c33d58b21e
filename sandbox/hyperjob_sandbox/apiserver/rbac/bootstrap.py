"""The roles and bindings that an API server holds from the start, as kube-apiserver makes them."""

from collections.abc import Sequence
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.rbac.authorizer import GROUP
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP

_LABEL: Final = "rbac.authorization.k8s.io/aggregate-to-"
_DEFAULT: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_KNOWN: Final = "system:authenticated"
_STRANGERS: Final = "system:unauthenticated"
_HEALTH: Final = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY: Final = [*_HEALTH, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]

_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch", "delete", "deletecollection"]
_USED: Final = (
    ("", ["configmaps", "endpoints", "persistentvolumeclaims", "pods", "services"]),
    ("apps", ["daemonsets", "deployments", "deployments/scale", "replicasets", "statefulsets"]),
    ("batch", ["cronjobs", "jobs"]),
    ("networking.k8s.io", ["ingresses", "networkpolicies"]),
    ("policy", ["poddisruptionbudgets"]),
)


def roles() -> list[Object]:
    """Give the default roles and bindings; `view`, `edit` and `admin` gather labelled roles."""
    everything = [_rule(["*"], "*", ["*"]), _urls(["*"], ["*"])]
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    own_reviews = [
        _rule(["create"], "authorization.k8s.io", reviews),
        _rule(["create"], "authentication.k8s.io", ["selfsubjectreviews"]),
    ]
    reads = [_rule(_READ, group, resources) for group, resources in _USED]
    writes = [_rule(_WRITE, group, resources) for group, resources in _USED]
    secrets = [_rule([*_READ, *_WRITE], "", ["secrets", "serviceaccounts"])]
    own = [_rule([*_READ, *_WRITE], GROUP, ["roles", "rolebindings"])]
    return [
        _role("cluster-admin", everything),
        _binding("cluster-admin", [ADMIN_GROUP]),
        _role("system:discovery", [_urls(["get"], _DISCOVERY)]),
        _binding("system:discovery", [_KNOWN]),
        _role("system:public-info-viewer", [_urls(["get"], _HEALTH)]),
        _binding("system:public-info-viewer", [_KNOWN, _STRANGERS]),
        _role("system:basic-user", own_reviews),
        _binding("system:basic-user", [_KNOWN]),
        _role("view", [], gathers="view", labels=("edit",)),
        _role("edit", [], gathers="edit", labels=("admin",)),
        _role("admin", [], gathers="admin"),
        _role("system:aggregate-to-view", reads, labels=("view",)),
        _role("system:aggregate-to-edit", [*writes, *secrets], labels=("edit",)),
        _role("system:aggregate-to-admin", own, labels=("admin",)),
    ]


def _role(
    name: str, rules: Sequence[Object], *, gathers: str = "", labels: Sequence[str] = ()
) -> Object:
    own = {**_DEFAULT, **{f"{_LABEL}{label}": "true" for label in labels}}
    role: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": own},
        "rules": list(rules),
    }
    if gathers:
        selector = {"matchLabels": {f"{_LABEL}{gathers}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _binding(role: str, groups: Sequence[str]) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": dict(_DEFAULT)},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": name} for name in groups],
    }


def _rule(verbs: Sequence[str], group: str, resources: Sequence[str]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _urls(verbs: Sequence[str], urls: Sequence[str]) -> Object:
    return {"nonResourceURLs": list(urls), "verbs": list(verbs)}
