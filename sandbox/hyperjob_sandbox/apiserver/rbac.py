"""Decides from the stored Roles and bindings, looked at anew for each question; writes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.store import GroupResource, Store
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP, User
from hyperjob_sandbox.apiserver.transport.authorization import Action

_GROUP = "rbac.authorization.k8s.io"
_ROLES: GroupResource = (_GROUP, "roles")
_CLUSTER_ROLES: GroupResource = (_GROUP, "clusterroles")
_ROLE_BINDINGS: GroupResource = (_GROUP, "rolebindings")
_CLUSTER_ROLE_BINDINGS: GroupResource = (_GROUP, "clusterrolebindings")
_ALL = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One PolicyRule."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def read(cls, rule: Object) -> "Rule":
        """Read the rule of a Role as it is stored."""
        return cls(
            verbs=_words(rule, "verbs"),
            groups=_words(rule, "apiGroups"),
            resources=_words(rule, "resources"),
            names=_words(rule, "resourceNames"),
            urls=_words(rule, "nonResourceURLs"),
        )

    def allows(self, action: Action) -> bool:
        """Tell whether the rule allows an action."""
        if action.verb not in self.verbs and _ALL not in self.verbs:
            return False
        if action.path:
            return any(_url_matches(url, action.path) for url in self.urls)
        return (
            (action.group in self.groups or _ALL in self.groups)
            and _names_resource(self.resources, action.resource, action.subresource)
            and (not self.names or action.name in self.names)
        )


EVERYTHING = (
    Rule(verbs=(_ALL,), groups=(_ALL,), resources=(_ALL,)),
    Rule(verbs=(_ALL,), urls=(_ALL,)),
)


class Rbac:
    """Authorizes by RBAC; the group system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: User, action: Action) -> bool:
        """Decide whether a user may do something."""
        if ADMIN_GROUP in user.groups:
            return True
        return any(rule.allows(action) for rule in self._rules(user, action.namespace))

    def rules_of(self, user: User, namespace: str) -> Sequence[Rule]:
        """List all rules that hold for a user in a namespace ("": cluster-wide ones only)."""
        return EVERYTHING if ADMIN_GROUP in user.groups else list(self._rules(user, namespace))

    def _rules(self, user: User, namespace: str) -> Iterator[Rule]:
        bindings = list(self._store.collection(_CLUSTER_ROLE_BINDINGS).select())
        if namespace:
            bindings += self._store.collection(_ROLE_BINDINGS).select(namespace)
        for stored in bindings:
            binding = stored.obj
            if any(_is(user, subject, stored.key[0]) for subject in binding.get("subjects") or ()):
                yield from self._rules_behind(binding["roleRef"], stored.key[0])

    def _rules_behind(self, role_ref: Object, namespace: str) -> list[Rule]:
        """List the rules of the role that a binding names."""
        resource, where = _ROLES, namespace
        if role_ref.get("kind") == "ClusterRole":
            resource, where = _CLUSTER_ROLES, ""
        found = self._store.collection(resource).get((where, str(role_ref.get("name"))))
        return [Rule.read(rule) for rule in found.obj.get("rules") or ()] if found else []


def _is(user: User, subject: Object, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return subject.get("name") == user.name
        case "Group":
            return subject.get("name") in user.groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{where}:{subject.get('name')}"
        case _:
            return False


def _names_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    whole = f"{resource}/{subresource}" if subresource else resource
    if _ALL in resources or whole in resources:
        return True
    return bool(subresource) and f"{_ALL}/{subresource}" in resources


def _url_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith(_ALL) else pattern == path


def _words(rule: Object, key: str) -> tuple[str, ...]:
    return tuple(str(word) for word in rule.get(key) or ())
