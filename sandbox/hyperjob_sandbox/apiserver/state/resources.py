"""What the server serves: one `ResourceInfo` per group, version and resource, found by path.

The registry answers questions only; who fills it (built-in kinds, custom resource definitions) and
who serves it (the handlers) live elsewhere.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.printing import AGE_COLUMN, NAME_COLUMN, Column
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema
from hyperjob_sandbox.apiserver.state.store import GroupResource

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
PARTIAL_VERBS = ("get", "patch", "update")

Prepare = Callable[[Object], None]


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object and the kind it speaks; empty group and version mean the parent's."""

    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = PARTIAL_VERBS


@dataclass(frozen=True, slots=True, eq=False)
class ResourceInfo:
    """A served resource: its names, its storage, and the rules that hold for its objects."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool = True
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    storage: GroupResource = ("", "")
    storage_version: str = ""
    columns: tuple[Column, ...] = (NAME_COLUMN, AGE_COLUMN)
    generation: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    dns_names: bool = True
    default: Prepare | None = None
    scale: Scale | None = None
    schema: StructuralSchema | None = None
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Give `group/version`, or the bare version of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        """Tell a custom resource from a built-in kind."""
        return self.schema is not None

    def complete(self, obj: Object) -> None:
        """Fill in the defaults of an object, and drop what its schema does not know."""
        if self.schema is not None:
            self.schema.prepare(obj)
        elif self.default is not None:
            self.default(obj)

    @property
    def has_status(self) -> bool:
        """Tell whether status is written through its own path only."""
        return "status" in self.subresources

    @property
    def lists(self) -> str:
        """Give the kind of a list of these objects."""
        return self.list_kind or self.kind + "List"

    @property
    def storage_hash(self) -> str:
        """Give the discovery document's storageVersionHash."""
        text = f"{self.group}/{self.storage_version or self.version}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


class Registry:
    """All served resources; `changes` counts every registration, for caches of documents."""

    def __init__(self) -> None:
        self.changes = 0
        self._groups: dict[str, dict[str, dict[str, ResourceInfo]]] = {}

    def add(self, info: ResourceInfo) -> None:
        """Serve a resource, in place of one of the same group, version and name."""
        versions = self._groups.setdefault(info.group, {})
        versions.setdefault(info.version, {})[info.plural] = info
        self.changes += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource in every version."""
        versions = self._groups.get(group, {})
        for version in list(versions):
            if versions[version].pop(plural, None) is not None and not versions[version]:
                del versions[version]
        if group in self._groups and not versions:
            del self._groups[group]
        self.changes += 1

    def find(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        """Find the resource that a path names."""
        return self._groups.get(group, {}).get(version, {}).get(plural)

    def find_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        """Find the resource whose objects have this kind."""
        for info in self._groups.get(group, {}).get(version, {}).values():
            if info.kind == kind and "list" in info.verbs:
                return info
        return None

    def groups(self) -> list[str]:
        """List the groups, the core group (empty) included."""
        return list(self._groups)

    def versions(self, group: str) -> list[str]:
        """List a group's versions, the preferred one first."""
        return sorted(self._groups.get(group, {}), key=version_priority, reverse=True)

    def resources(self, group: str, version: str) -> list[ResourceInfo]:
        """List the resources of one group and version by name."""
        found = self._groups.get(group, {}).get(version, {})
        return [found[plural] for plural in sorted(found)]

    def stored(self, storage: GroupResource) -> ResourceInfo | None:
        """Find a served resource by where its objects are stored, its storage version first."""
        found: ResourceInfo | None = None
        for info in self._groups.get(storage[0], {}).values():
            here = info.get(storage[1])
            if here is not None and (found is None or here.version == here.storage_version):
                found = here
        return found

    def storages(self) -> Iterator[ResourceInfo]:
        """Yield one served resource for each storage, in its storage version where served."""
        seen: dict[GroupResource, ResourceInfo] = {}
        for group in self._groups:
            for version in self.versions(group):
                for info in self._groups[group][version].values():
                    if "list" in info.verbs:
                        known = seen.get(info.storage)
                        if known is None or info.version == info.storage_version:
                            seen[info.storage] = info
        yield from seen.values()


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes does: stable before beta before alpha, higher first."""
    head = version.removeprefix("v")
    for rank, word in ((2, "beta"), (1, "alpha")):
        major, found, minor = head.partition(word)
        if found and major.isdigit() and (minor.isdigit() or not minor):
            return rank, int(major), int(minor or 0), ""
    if head.isdigit() and version.startswith("v"):
        return 3, int(head), 0, ""
    return 0, 0, 0, version
