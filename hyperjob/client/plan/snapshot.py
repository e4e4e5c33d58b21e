"""The snapshot of a plan: the objects of a live control plane, and changes of them.

The module takes no decision.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import orjson

from hyperjob.client.errors import words
from hyperjob.client.members import views_of
from hyperjob.client.reading import Reading, is_ready, items, lease, listed
from hyperjob_controller.options import Options, published
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.existing import KINDS, Names, existing
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    DEPLOYMENTS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    RESOURCE_CLAIM_TEMPLATES,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.resources import add_rows, parse_rows
from hyperjob_rules.validation.context import NOTHING_KNOWN, needs
from hyperjob_rules.validation.create import inspect


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


_BESIDE_CLUSTERS: Final = (
    HYPERJOBS,
    VCJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    QUEUES,
    CLUSTER_RESOURCE_BINDINGS,
    PRIORITY_CLASSES,
    MUTATING_WEBHOOKS,
)


async def read_snapshot(
    kube: Kube,
    *,
    namespace: str,
    hyperjobs: Iterable[Object] = (),
    left_out: Callable[[str], None],
) -> Snapshot:
    """Read the objects that the controller reads, and the settings that it publishes on its Lease.

    `left_out` gets a line for each resource that the user may not read. The function also reads the
    objects that the pods of `hyperjobs` need, and the nodes of the members where the controller
    places by nodes; the plan uses the sums of a member that the user may not read. Raises KubeError
    when the Clusters cannot be read.
    """

    def missing(resource: Resource, error: KubeError | ValueError) -> None:
        text = words(error) if isinstance(error, KubeError) else str(error)
        left_out(f"{resource.group_resource} left out: {text}")

    readings = dict(
        zip(
            _BESIDE_CLUSTERS,
            await asyncio.gather(*(listed(kube, resource) for resource in _BESIDE_CLUSTERS)),
            strict=True,
        )
    )
    readings[CLUSTERS] = (await kube.list(CLUSTERS)).items
    options = await _options(kube, readings[MUTATING_WEBHOOKS], left_out=missing)
    if options.queue_admission is QueueAdmission.VOLCANO_GLOBAL:
        readings[DEPLOYMENTS] = await listed(kube, DEPLOYMENTS)  # they use its quota too
    views: Mapping[str, MemberView] = {}
    if options.members.includes(MemberAccess.NODES):
        ready = [key_of(each) for each in items(readings[CLUSTERS]) if is_ready(each)]
        views, errors = await views_of(kube, ready)
        for name, error in errors.items():
            left_out(f"nodes of cluster {name} left out, which the controller sees: {words(error)}")
        for name, view in views.items():
            if view.unresolved:
                what = f"HyperNodes of cluster {name} left out, as by the controller"
                left_out(f"{what}: {view.unresolved}")
    hyperjobs = list(hyperjobs)
    if any(b"resourceClaims" in orjson.dumps(each) for each in hyperjobs):
        readings[RESOURCE_CLAIM_TEMPLATES] = await listed(
            kube, RESOURCE_CLAIM_TEMPLATES, namespace=namespace
        )
    wanted = _needed(hyperjobs, namespace=namespace)
    there: Names = await existing(kube, wanted, left_out=missing)
    for resource, reading in readings.items():
        if isinstance(reading, KubeError):
            missing(resource, reading)
        elif resource is PRIORITY_CLASSES:
            there = {**there, ("", resource.kind): dict.fromkeys(map(key_of, reading), "")}
    return Snapshot(
        now=datetime.now(UTC),
        objects={resource: items(reading) for resource, reading in readings.items()},
        options=options,
        namespace=namespace,
        unreadable=frozenset({QUEUES} if isinstance(readings[QUEUES], KubeError) else ()),
        there=there,
        views=views,
    )


async def _options(
    kube: Kube, webhooks: Reading, *, left_out: Callable[[Resource, KubeError], None]
) -> Options:
    """Return the options of the controller as its Lease has them, else the defaults.

    Without a Lease the queue admission is volcano-global where Volcano Global is installed or the
    user may not know, else builtin.
    """
    found = await lease(kube)
    if isinstance(found, KubeError) and not isinstance(found, NotFound):
        left_out(LEASES, found)
    options = published(next((at(each, "metadata", "annotations") for each in items(found)), None))
    add_rows(parse_rows(options.devices))
    if options.queue_admission is None:
        unknown = isinstance(webhooks, KubeError)
        admission = admitting(volcano_global=unknown or queues_bindings(items(webhooks)))
        options = replace(options, queue_admission=admission)
    return options


def admitting(*, volcano_global: bool) -> QueueAdmission:
    """Return the queue admission of a Karmada with or without Volcano Global."""
    return QueueAdmission.VOLCANO_GLOBAL if volcano_global else QueueAdmission.BUILTIN


def _needed(hyperjobs: Iterable[Object], *, namespace: str) -> set[tuple[str, str, str]]:
    """Return namespace, kind and name of the objects that the pods of valid HyperJobs need."""
    found: set[tuple[str, str, str]] = set()
    for hyperjob in hyperjobs:
        if inspect(hyperjob, context=NOTHING_KNOWN, strict=True).refusals:
            continue
        home = string(at(hyperjob, "metadata", "namespace")) or namespace
        found |= {(home, kind, name) for kind, name in needs(hyperjob)}
    return found
