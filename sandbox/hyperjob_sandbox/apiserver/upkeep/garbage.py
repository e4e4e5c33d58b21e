"""Garbage collection by owner references: background, foreground and orphaning deletion.

An object goes when it names owners and none of them exists any more. Owners are known by uid, as in
the real collector.
"""

from collections.abc import Sequence

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource, Key, Stored
from hyperjob_sandbox.apiserver.verbs.deleting import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    delete_stored,
    finish_if_free,
)

Node = tuple[GroupResource, Key]


class Collector:
    """The graph of owners and dependents, and the objects that changes in it give reason to visit.

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
        owners = [str(each["uid"]) for each in _references(now)]
        for each in _references(change.before) if change.before is not None else ():
            self._dependents.get(each["uid"], set()).discard(node)
        if change.type == "DELETED":
            self._objects.pop(now.uid, None)
            self.due |= dict.fromkeys(self._dependents.pop(now.uid, ()))
            # An owner may have waited for it.
            self.due |= dict.fromkeys(self._objects[uid] for uid in owners if uid in self._objects)
            return
        self._objects[now.uid] = node
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(node)
        if now.metadata.get("deletionTimestamp") or any(u not in self._objects for u in owners):
            self.due[node] = None

    def step(self) -> None:
        """Visit one object that is due."""
        node = next(iter(self.due))
        del self.due[node]
        stored = self._stored(node)
        if stored is not None and stored.metadata.get("deletionTimestamp"):
            self._release(node[0], stored)
        elif stored is not None:
            self._judge(node[0], stored)

    def _stored(self, node: Node) -> Stored | None:
        return self._core.store.collection(node[0]).get(node[1])

    def _judge(self, resource: GroupResource, stored: Stored) -> None:
        """Delete an object whose owners are gone or wait for it; else tidy its references."""
        references = _references(stored)
        if not references or stored.metadata.get("deletionTimestamp"):
            return
        owners = [(each, self._owner(each, stored)) for each in references]
        waiting = any(owner is not None and _is_foreground(owner) for _, owner in owners)
        solid = [each for each, owner in owners if owner is not None and not _is_foreground(owner)]
        if solid:
            if len(solid) < len(references):
                self._write(resource, stored, {"ownerReferences": solid})
            return
        finalizers = stored.metadata.get("finalizers") or ()
        policy = "Background"
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers or (waiting and self._dependents.get(stored.uid)):
            policy = "Foreground"
        info = self._core.registry.stored(resource)
        if info is not None:
            delete_stored(self._core, info, stored, DeleteOptions(propagation=policy))

    def _release(self, resource: GroupResource, owner: Stored) -> None:
        """Let an owner go once its dependents are orphaned, or those that block it are gone."""
        finalizers = owner.metadata.get("finalizers") or []
        nodes = sorted(self._dependents.get(owner.uid, ()))
        if ORPHAN in finalizers:
            done = ORPHAN
            for node in nodes:
                if (dependent := self._stored(node)) is not None:
                    kept = [r for r in _references(dependent) if r["uid"] != owner.uid]
                    self._write(node[0], dependent, {"ownerReferences": kept})
        elif FOREGROUND in finalizers:
            done = FOREGROUND
            for node in nodes:
                if (dependent := self._stored(node)) is not None:
                    self._judge(node[0], dependent)
            left = filter(None, map(self._stored, self._dependents.get(owner.uid, ())))
            if any(_blocks(dependent, owner.uid) for dependent in left):
                return
        else:
            return
        current = self._stored((resource, owner.key))
        if current is not None:
            kept = [f for f in current.metadata.get("finalizers") or [] if f != done]
            self._write(resource, current, {"finalizers": kept})

    def _owner(self, reference: Object, dependent: Stored) -> Stored | None:
        node = self._objects.get(reference["uid"])
        if node is None or (node[1][0] and node[1][0] != dependent.key[0]):
            return None  # an owner in another namespace is no owner
        return self._stored(node)

    def _write(self, resource: GroupResource, stored: Stored, changes: Object) -> None:
        meta = {**stored.obj["metadata"], **changes}
        meta = {key: value for key, value in meta.items() if value != []}
        changed = {**stored.obj, "metadata": meta}
        info = self._core.registry.stored(resource)
        if info is not None and finish_if_free(self._core, info, changed, stored) is None:
            self._core.store.update(resource, changed, expected=stored)


def _references(stored: Stored) -> Sequence[Object]:
    return stored.metadata.get("ownerReferences") or ()


def _is_foreground(stored: Stored) -> bool:
    meta = stored.metadata
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())


def _blocks(dependent: Stored, uid: str) -> bool:
    return any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in _references(dependent))
