"""Read the world of a plan from a live control plane."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta

from hyperjob.client.errors import words
from hyperjob.client.plan.needs import needed, read_needed
from hyperjob.client.plan.world import Snapshot, world_of
from hyperjob.client.reading import attempt, items
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
)
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.placement.capacity import Candidacy


async def read_world(
    kube: Kube,
    *,
    namespace: str,
    admission: QueueAdmission | None = None,
    lag: timedelta = timedelta(seconds=30),
    candidacy: Candidacy | None = None,
    hyperjobs: Iterable[Object] = (),
    left_out: Callable[[str], None],
) -> Snapshot:
    """Read the objects that the controller reads; return the world of a plan.

    `lag` is the time after which a Cluster's status includes a placed sub-job. `admission` None is
    volcano-global where Volcano Global is installed, else builtin. `left_out` gets a line for each
    resource that the user may not read. The function also reads the objects that the pods of
    `hyperjobs` need. Raises KubeError when the Clusters cannot be read.
    """
    selected = {"label_selector": LABEL_HYPERJOB}
    wanted = {**_OTHERS, **({MUTATING_WEBHOOKS: False} if admission is None else {})}
    readings = dict(
        zip(
            wanted,
            await asyncio.gather(
                *(
                    attempt(_all(kube, resource, **(selected if labelled else {})))
                    for resource, labelled in wanted.items()
                )
            ),
            strict=True,
        )
    )
    clusters = await kube.list(CLUSTERS)
    wanted_by_pods = needed(hyperjobs, namespace=namespace)
    there = dict(await read_needed(kube, wanted_by_pods, left_out=left_out))
    classes = readings[PRIORITY_CLASSES]
    if not isinstance(classes, KubeError):
        there["", PRIORITY_CLASSES.kind] = frozenset(item["metadata"]["name"] for item in classes)
    for resource, reading in readings.items():
        if isinstance(reading, KubeError):
            left_out(f"{resource.group_resource} left out: {words(reading)}")
    queues = readings[QUEUES]
    if admission is None:
        mutating = readings[MUTATING_WEBHOOKS]
        unknown = isinstance(mutating, KubeError)
        admission = admitting(volcano_global=unknown or queues_bindings(items(mutating)))
    return world_of(
        clusters=clusters.items,
        queues=None if isinstance(queues, KubeError) else queues,
        now=datetime.now(UTC),
        admission=admission,
        lag=lag,
        candidacy=candidacy or Candidacy(),
        namespace=namespace,
        hyperjobs=items(readings[HYPERJOBS]),
        jobs=items(readings[VCJOBS]),
        policies=items(readings[PROPAGATION_POLICIES]),
        bindings=items(readings[RESOURCE_BINDINGS]),
        priority_classes=items(classes),
        there=there,
    )


def admitting(*, volcano_global: bool) -> QueueAdmission:
    """Return the queue admission of a Karmada with or without Volcano Global."""
    return QueueAdmission.VOLCANO_GLOBAL if volcano_global else QueueAdmission.BUILTIN


_OTHERS = {
    HYPERJOBS: False,
    VCJOBS: True,
    PROPAGATION_POLICIES: True,
    RESOURCE_BINDINGS: False,
    QUEUES: False,
    PRIORITY_CLASSES: False,
}
"""The resources beside Clusters, and whether to read only objects with HyperJob's label."""


def _all(kube: Kube, resource: Resource, **choice: str) -> Callable[[], Awaitable[list[Object]]]:
    async def ask() -> list[Object]:
        return (await kube.list(resource, **choice)).items  # type: ignore[arg-type]  # names

    return ask
