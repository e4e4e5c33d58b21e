"""RBAC decisions from the stored Roles and bindings, which each decision reads again."""

from collections.abc import Iterator, Sequence

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.state.store import Collection, Store
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP, User
from hyperjob_sandbox.apiserver.transport.authorization import Action

_GROUP = "rbac.authorization.k8s.io"
_ALL = "*"


class Rbac:
    """Authorizes by RBAC; the group system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: User, action: Action) -> bool:
        """Decide whether a user may do something."""
        if ADMIN_GROUP in user.groups:
            return True
        return any(allows(rule, action) for rule in self._rules(user, action.namespace))

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        """Yield all rules that hold for a user in a namespace ("": cluster-wide ones only)."""
        bindings = list(self._collection("clusterrolebindings").select())
        if namespace:
            bindings += self._collection("rolebindings").select(namespace)
        for stored in bindings:
            where, binding = stored.key[0], stored.obj
            if any(_is(user, subject, where) for subject in binding.get("subjects") or ()):
                role, name = binding["roleRef"], str(binding["roleRef"].get("name"))
                plural = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
                key = ("" if plural == "clusterroles" else where, name)
                found = self._collection(plural).get(key)
                yield from (found.obj.get("rules") or ()) if found is not None else ()

    def _collection(self, plural: str) -> Collection:
        return self._store.collection((_GROUP, plural))


def allows(rule: Object, action: Action) -> bool:
    """Tell whether a PolicyRule allows an action."""
    if not _lists(rule, "verbs", action.verb):
        return False
    if action.path:
        urls = rule.get("nonResourceURLs") or ()
        return any(_url_matches(url, action.path) for url in urls)
    below = action.subresource
    wanted = (f"{action.resource}/{below}", f"{_ALL}/{below}") if below else (action.resource,)
    names = rule.get("resourceNames")
    return (
        _lists(rule, "apiGroups", action.group)
        and _lists(rule, "resources", *wanted)
        and (not names or action.name in names)
    )


def _lists(rule: Object, key: str, *wanted: str) -> bool:
    listed: Sequence[str] = rule.get(key) or ()
    return any(word in listed for word in (_ALL, *wanted))


def _url_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith(_ALL) else pattern == path


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
