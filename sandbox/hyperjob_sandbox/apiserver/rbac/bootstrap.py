"""The roles and bindings that an API server holds from the start.

Those of kube-apiserver by which users look around and administrators do everything; its roles for
people, `view`, `edit` and `admin`, are left out.
"""

from collections.abc import Sequence
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.rbac.authorizer import GROUP
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP

_DEFAULT: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_KNOWN: Final = "system:authenticated"
_STRANGERS: Final = "system:unauthenticated"
_HEALTH: Final = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY: Final = [*_HEALTH, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]


def roles() -> list[Object]:
    """Give the default roles and bindings."""
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    return [
        *_role("cluster-admin", [ADMIN_GROUP], _rule(["*"], "*", ["*"]), _urls(["*"], ["*"])),
        *_role("system:discovery", [_KNOWN], _urls(["get"], _DISCOVERY)),
        *_role("system:public-info-viewer", [_KNOWN, _STRANGERS], _urls(["get"], _HEALTH)),
        *_role(
            "system:basic-user",
            [_KNOWN],
            _rule(["create"], "authorization.k8s.io", reviews),
            _rule(["create"], "authentication.k8s.io", ["selfsubjectreviews"]),
        ),
    ]


def _role(name: str, groups: Sequence[str], *rules: Object) -> tuple[Object, Object]:
    """Give a role and the binding that grants it to groups."""
    head: Object = {
        "apiVersion": f"{GROUP}/v1",
        "metadata": {"name": name, "labels": dict(_DEFAULT)},
    }
    subjects = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    role: Object = {**head, "kind": "ClusterRole", "rules": list(rules)}
    binding = {**head, "kind": "ClusterRoleBinding", "metadata": {**head["metadata"]}}
    return role, {**binding, "roleRef": reference, "subjects": subjects}


def _rule(verbs: Sequence[str], group: str, resources: Sequence[str]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _urls(verbs: Sequence[str], urls: Sequence[str]) -> Object:
    return {"nonResourceURLs": list(urls), "verbs": list(verbs)}
