"""Decides from the stored Roles and bindings, looked at anew for each question; writes nothing."""

from collections.abc import Iterator

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.rbac.rules import Rule
from hyperjob_sandbox.apiserver.state.selectors import label_selector
from hyperjob_sandbox.apiserver.state.store import GroupResource, Store
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP, User
from hyperjob_sandbox.apiserver.transport.authorization import Action

GROUP = "rbac.authorization.k8s.io"
ROLES: GroupResource = (GROUP, "roles")
CLUSTER_ROLES: GroupResource = (GROUP, "clusterroles")
ROLE_BINDINGS: GroupResource = (GROUP, "rolebindings")
CLUSTER_ROLE_BINDINGS: GroupResource = (GROUP, "clusterrolebindings")


class Rbac:
    """Authorizes by RBAC; the group system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: User, action: Action) -> bool:
        """Decide whether a user may do something."""
        if ADMIN_GROUP in user.groups:
            return True
        return any(rule.allows(action) for rule in self._rules(user, action.namespace))

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """List all rules that hold for a user in a namespace ("": cluster-wide ones only)."""
        if ADMIN_GROUP in user.groups:
            everything = ("*",)
            return [
                Rule(verbs=everything, groups=everything, resources=everything),
                Rule(verbs=everything, urls=everything),
            ]
        return list(self._rules(user, namespace))

    def rules_behind(self, role_ref: Object, namespace: str) -> list[Rule] | None:
        """List the rules of the role that a binding names; None when there is none."""
        if role_ref.get("kind") == "ClusterRole":
            found = self._store.collection(CLUSTER_ROLES).get(("", str(role_ref.get("name"))))
        else:
            key = (namespace, str(role_ref.get("name")))
            found = self._store.collection(ROLES).get(key)
        if found is None:
            return None
        return [Rule.read(rule) for rule in self._written(found.obj, frozenset())]

    def _rules(self, user: User, namespace: str) -> Iterator[Rule]:
        bindings = list(self._store.collection(CLUSTER_ROLE_BINDINGS).select())
        if namespace:
            bindings += self._store.collection(ROLE_BINDINGS).select(namespace)
        for stored in bindings:
            binding = stored.obj
            if any(_is(user, subject, stored.key[0]) for subject in binding.get("subjects") or ()):
                yield from self.rules_behind(binding["roleRef"], stored.key[0]) or ()

    def _written(self, role: Object, seen: frozenset[str]) -> list[Object]:
        """Give a role's rules; an aggregated one's are those of the roles that it selects."""
        aggregation = role.get("aggregationRule")
        if not aggregation:
            return list(role.get("rules") or ())
        seen |= {str(role["metadata"]["name"])}
        rules: list[Object] = []
        for wanted in map(label_selector, aggregation.get("clusterRoleSelectors") or ()):
            for stored in self._store.collection(CLUSTER_ROLES).select():
                labels = stored.metadata.get("labels")
                if stored.key[1] not in seen and wanted is not None and wanted.matches(labels):
                    rules += self._written(stored.obj, seen)
        return rules


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
