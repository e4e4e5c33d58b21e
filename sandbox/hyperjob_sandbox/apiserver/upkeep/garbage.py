"""Garbage collection by owner references.

An object goes when it names owners and none of them exists any more. Owners are known by uid, as in
the real collector.
"""

from collections.abc import Sequence

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource, Key, Stored
from hyperjob_sandbox.apiserver.verbs.deleting import delete_stored

Node = tuple[GroupResource, Key]


class Collector:
    """The graph of owners and dependents, and the dependents that changes give reason to visit.

    `due` has them in the order in which they are to be visited.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._objects: dict[str, Node] = {}
        self._dependents: dict[str, set[Node]] = {}
        self.due: dict[Node, None] = {}

    def follow(self, resource: GroupResource, change: Change) -> None:
        """Bring the graph up to date with a change."""
        now, node = change.now, (resource, change.now.key)
        for each in _references(change.before) if change.before is not None else ():
            self._dependents.get(each["uid"], set()).discard(node)
        if change.type == "DELETED":
            self._objects.pop(now.uid, None)
            self.due |= dict.fromkeys(self._dependents.pop(now.uid, ()))
            return
        self._objects[now.uid] = node
        owners = [str(each["uid"]) for each in _references(now)]
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(node)
        if any(uid not in self._objects for uid in owners):
            self.due[node] = None

    def step(self) -> None:
        """Visit one object that is due: delete it without owners, else drop those that are gone."""
        resource, key = node = next(iter(self.due))
        del self.due[node]
        stored, info = (
            self._core.store.collection(resource).get(key),
            self._core.registry.stored(resource),
        )
        if stored is None or info is None or stored.metadata.get("deletionTimestamp"):
            return
        owners = _references(stored)
        left = [each for each in owners if self._exists(each, key[0])]
        if not left and owners:
            delete_stored(self._core, info, stored)
        elif len(left) < len(owners):
            meta = {**stored.obj["metadata"], "ownerReferences": left}
            self._core.store.update(resource, {**stored.obj, "metadata": meta}, expected=stored)

    def _exists(self, owner: Object, namespace: str) -> bool:
        """Tell whether an owner exists; an owner in another namespace is none."""
        node = self._objects.get(owner["uid"])
        return node is not None and node[1][0] in ("", namespace)


def _references(stored: Stored) -> Sequence[Object]:
    return stored.metadata.get("ownerReferences") or ()
