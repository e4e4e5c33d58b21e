"""The snapshot of a plan: the objects of a control plane as they were read, and changes of them.

The module makes no request and takes no decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.existing import KINDS, Names
from hyperjob_core.kube.resources import (
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIM_TEMPLATES,
    Resource,
    key_of,
)
from hyperjob_engine.model.members import MemberView


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The objects of a control plane, and the options of its controller.

    `unreadable` are resources that the user may not list. `there` are the names of the objects that
    pods may need; a missing key means unknown. `views` are the members whose nodes are known.
    """

    now: datetime
    objects: Mapping[Resource, Sequence[Object]]
    options: Options = field(default_factory=Options)
    namespace: str = "default"
    unreadable: frozenset[Resource] = frozenset()
    there: Names = field(default_factory=dict)
    views: Mapping[str, MemberView] = field(default_factory=dict)

    def of(self, resource: Resource) -> Sequence[Object]:
        """Return the objects of a resource."""
        return self.objects.get(resource, ())

    def with_queues(self, specs: Iterable[Object]) -> "Snapshot":
        """Return the snapshot with these Queues; existing Queues keep their state, others are Open.

        The snapshot stays unchanged where the Queues of the control plane cannot be read.
        """
        if QUEUES in self.unreadable:
            return self
        states = {key_of(item): at(item, "status", "state") for item in self.of(QUEUES)}
        made = [
            {**item, "status": {"state": states.get(key_of(item), "Open")}}
            for item in specs
            if string(at(item, "metadata", "name"))
        ]
        names = {key_of(item) for item in made}
        kept = [item for item in self.of(QUEUES) if key_of(item) not in names]
        return replace(self, objects={**self.objects, QUEUES: [*kept, *made]})

    def with_needed(self, found: Iterable[Object]) -> "Snapshot":
        """Return the snapshot with objects that pods may need, for the kinds that are known."""
        templates = {key_of(each): each for each in self.of(RESOURCE_CLAIM_TEMPLATES)}
        more: dict[tuple[str, str], dict[str, str]] = {}
        for obj in found:
            kind, name = string(obj.get("kind")), string(at(obj, "metadata", "name"))
            if kind in KINDS:
                home = string(at(obj, "metadata", "namespace")) or self.namespace
                volume = string(at(obj, "spec", "volumeName"))
                more.setdefault((home, kind), {})[name] = volume
            elif kind == PRIORITY_CLASSES.kind:
                more.setdefault(("", kind), {})[name] = ""
            elif kind == RESOURCE_CLAIM_TEMPLATES.kind:
                whole = {**obj, "metadata": {"namespace": self.namespace, **obj["metadata"]}}
                templates[key_of(whole)] = whole
        there = {key: {**names, **more.get(key, {})} for key, names in self.there.items()}
        objects = {**self.objects, RESOURCE_CLAIM_TEMPLATES: list(templates.values())}
        return replace(self, there=there, objects=objects)
