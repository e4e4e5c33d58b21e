"""Garbage collection by owner references: background, foreground and orphaning deletion.

An object goes when it names owners and none of them exists any more. Owners are known by uid, as in
the real collector.
"""

from collections import deque
from collections.abc import Sequence

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
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
    """The graph of owners and dependents, and the work that changes in it make."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._objects: dict[str, Node] = {}
        self._dependents: dict[str, set[Node]] = {}
        self.due: deque[tuple[str, Node]] = deque()

    def follow(self, resource: GroupResource, change: Change) -> None:
        """Bring the graph up to date with a change."""
        now = change.now
        node = (resource, now.key)
        meta = now.obj["metadata"]
        owners = meta.get("ownerReferences") or ()
        if change.before is not None:
            for owner in change.before.metadata.get("ownerReferences") or ():
                self._dependents.get(owner["uid"], set()).discard(node)
        if change.type == "DELETED":
            self._objects.pop(now.uid, None)
            self.due.extend(
                ("object", dependent) for dependent in self._dependents.pop(now.uid, ())
            )
            self._look_at_owners(owners)
            return
        self._objects[now.uid] = node
        for owner in owners:
            self._dependents.setdefault(owner["uid"], set()).add(node)
            if owner["uid"] not in self._objects:
                self.due.append(("object", node))
        if not meta.get("deletionTimestamp"):
            return
        if {ORPHAN, FOREGROUND} & set(meta.get("finalizers") or ()):
            self.due.append(("owner", node))

    def step(self) -> None:
        """Do one piece of the work that is due."""
        kind, (resource, key) = self.due.popleft()
        stored = self._core.store.collection(resource).get(key)
        if stored is None:
            return
        if kind == "owner":
            self._release(resource, stored)
        else:
            self._judge(resource, stored)

    def _look_at_owners(self, owners: Sequence[Object]) -> None:
        for owner in owners:
            node = self._objects.get(owner["uid"])
            if node is None:
                continue
            stored = self._core.store.collection(node[0]).get(node[1])
            if stored is not None and _is_foreground(stored):
                self.due.append(("owner", node))

    def _judge(self, resource: GroupResource, stored: Stored) -> None:
        """Delete an object whose owners are gone or wait for it; else tidy its references."""
        meta = stored.obj["metadata"]
        references = meta.get("ownerReferences") or []
        if not references or meta.get("deletionTimestamp"):
            return
        solid: list[Object] = []
        waiting = False
        for reference in references:
            owner = self._owner(reference, stored)
            if owner is None:
                continue
            if _is_foreground(owner):
                waiting = True
            else:
                solid.append(reference)
        if solid:
            if len(solid) < len(references):
                self._write(resource, stored, {"ownerReferences": solid})
            return
        finalizers = meta.get("finalizers") or ()
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
        finalizers = owner.obj["metadata"].get("finalizers") or []
        dependents = [
            (node[0], found)
            for node in sorted(self._dependents.get(owner.uid, ()))
            if (found := self._core.store.collection(node[0]).get(node[1])) is not None
        ]
        if ORPHAN in finalizers:
            for where, dependent in dependents:
                references = dependent.obj["metadata"].get("ownerReferences") or []
                kept = [r for r in references if r["uid"] != owner.uid]
                self._write(where, dependent, {"ownerReferences": kept})
            self._drop_finalizer(resource, owner, ORPHAN)
        elif FOREGROUND in finalizers:
            for where, dependent in dependents:
                self._judge(where, dependent)
            if not any(_blocks(found, owner.uid) for _, found in self._left(owner.uid)):
                self._drop_finalizer(resource, owner, FOREGROUND)

    def _left(self, uid: str) -> list[tuple[GroupResource, Stored]]:
        found: list[tuple[GroupResource, Stored]] = []
        for resource, key in self._dependents.get(uid, ()):
            stored = self._core.store.collection(resource).get(key)
            if stored is not None:
                found.append((resource, stored))
        return found

    def _owner(self, reference: Object, dependent: Stored) -> Stored | None:
        node = self._objects.get(reference["uid"])
        if node is None:
            return None
        resource, key = node
        if key[0] and key[0] != dependent.key[0]:
            return None  # an owner in another namespace is no owner
        return self._core.store.collection(resource).get(key)

    def _drop_finalizer(self, resource: GroupResource, owner: Stored, finalizer: str) -> None:
        current = self._core.store.collection(resource).get(owner.key)
        if current is None:
            return
        finalizers = current.obj["metadata"].get("finalizers") or []
        self._write(resource, current, {"finalizers": [f for f in finalizers if f != finalizer]})

    def _write(self, resource: GroupResource, stored: Stored, changes: Object) -> None:
        meta = {**stored.obj["metadata"], **changes}
        meta = {key: value for key, value in meta.items() if value != []}
        changed = {**stored.obj, "metadata": meta}
        info = self._core.registry.stored(resource)
        if info is not None and finish_if_free(self._core, info, changed, stored) is None:
            self._core.store.update(resource, changed, expected=stored)


def _is_foreground(stored: Stored) -> bool:
    meta = stored.obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())


def _blocks(dependent: Stored, uid: str) -> bool:
    references = dependent.obj["metadata"].get("ownerReferences") or ()
    return any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in references)
