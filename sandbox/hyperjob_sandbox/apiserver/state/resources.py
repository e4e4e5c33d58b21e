"""What the server serves: one `ResourceInfo` per group and resource, in one version."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hyperjob_core.api.meta import Object
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
    columns: tuple[Column, ...] = (NAME_COLUMN, AGE_COLUMN)
    generation: bool = False
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
    def storage(self) -> GroupResource:
        """Give where the objects are: events.k8s.io serves the Events of the core group."""
        return ("" if self.group == "events.k8s.io" else self.group, self.plural)

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
        text = f"{self.group}/{self.version}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


class Registry:
    """All served resources."""

    def __init__(self) -> None:
        self._resources: dict[GroupResource, ResourceInfo] = {}

    def add(self, info: ResourceInfo) -> None:
        """Serve a resource, in place of one of the same group and name."""
        self._resources[info.group, info.plural] = info

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource."""
        self._resources.pop((group, plural), None)

    def find(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        """Find the resource that a path names."""
        found = self._resources.get((group, plural))
        return found if found is not None and found.version == version else None

    def find_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        """Find the resource whose objects have this kind."""
        served = self.resources(group, version)
        return next((info for info in served if info.kind == kind and "list" in info.verbs), None)

    def groups(self) -> list[str]:
        """List the groups, the core group (empty) included."""
        return list(dict.fromkeys(group for group, _ in self._resources))

    def versions(self, group: str) -> list[str]:
        """List a group's versions, the preferred one first."""
        found = {info.version for info in self._resources.values() if info.group == group}
        return sorted(found, key=version_priority, reverse=True)

    def resources(self, group: str, version: str) -> list[ResourceInfo]:
        """List the resources of one group and version by name."""
        served = [info for info in self._resources.values() if info.group == group]
        return sorted(
            (info for info in served if info.version == version), key=lambda info: info.plural
        )

    def stored(self, storage: GroupResource) -> ResourceInfo | None:
        """Find a served resource by where its objects are stored."""
        return self._resources.get(storage)

    def storages(self) -> list[ResourceInfo]:
        """List one served resource for each place where objects are stored."""
        return [info for where, info in self._resources.items() if where == info.storage]


def version_priority(version: str) -> tuple[bool, bool, bool, list[int]]:
    """Order versions as Kubernetes does: stable before beta before alpha, higher first."""
    numbers = [int(digits) for digits in re.findall(r"\d+", version)]
    return bool(numbers), "alpha" not in version, "beta" not in version, numbers
