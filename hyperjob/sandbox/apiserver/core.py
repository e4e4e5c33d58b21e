"""What every handler works with: the store, the served resources and the admission chain.

It decides nothing; it is the one object that is passed around.
"""

from collections import Counter
from datetime import UTC, datetime

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver.metrics import Metrics
from hyperjob.sandbox.apiserver.resources import Registry, ResourceInfo
from hyperjob.sandbox.apiserver.store import Collection, Key, Store, Stored


class Core:
    """The state behind the API."""

    def __init__(self, *, history_limit: int = 4096, bookmark_seconds: float = 60.0) -> None:
        self.bookmark_seconds = bookmark_seconds
        self.store = Store(history_limit=history_limit)
        self.registry = Registry()
        self.metrics = Metrics()
        self.request_counts: Counter[tuple[str, str, str]] = Counter()

    def collection(self, resource: ResourceInfo) -> Collection:
        """Give the collection that stores a resource's objects."""
        return self.store.collection(resource.storage)

    def find(self, resource: ResourceInfo, namespace: str, name: str) -> Stored | None:
        """Find one stored object."""
        return self.collection(resource).get((namespace if resource.namespaced else "", name))

    def namespace(self, name: str) -> Object | None:
        """Find a Namespace."""
        found = self.store.collection(("", "namespaces")).get(("", name))
        return found.obj if found else None


def now() -> str:
    """Give the present as metav1.Time prints it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def key_of(resource: ResourceInfo, obj: Object) -> Key:
    """Give an object's key in its collection."""
    meta = obj["metadata"]
    return (str(meta.get("namespace") or "") if resource.namespaced else "", str(meta["name"]))
