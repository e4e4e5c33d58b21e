"""Where the world of a plan comes from: a live control plane, read only, or a clusters file."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from controller.model.observed import QueueAdmission
from controller.placement.capacity import Candidacy
from hyperjob.api.meta import Object
from hyperjob.api.names import LABEL_HYPERJOB
from hyperjob.api.volcano_global import queues_bindings
from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.kubectl.output import remark
from hyperjob.cli.plan.nodes import with_node_sizes
from hyperjob.cli.plan.world import World, world_of
from hyperjob.client.errors import words
from hyperjob.client.reading import attempt, items
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import (
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

_BUILT_IN = ("default", "root")


def from_file(path: Path, *, namespace: str | None, admission: QueueAdmission | None) -> World:
    """Read a clusters file, all of it idle; FailureError when it cannot be.

    Without `admission` the file says whether Volcano Global admits, or else we do.
    """
    from hyperjob.cli.embedded import SandboxConfigError, idle_clusters, load

    try:
        config = load(path)
    except SandboxConfigError as error:
        raise FailureError(str(error), code=Code.USAGE) from None
    if admission is None:
        admission = _found(volcano_global=config.volcano_global.enabled)
    specs: dict[str, Object] = {name: {} for name in _BUILT_IN}
    specs |= {queue.name: queue.model_dump(exclude_none=True) for queue in config.queues}
    queues: list[Object] = [
        {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}
        for name, spec in specs.items()
    ]
    return world_of(
        clusters=[
            with_node_sizes(raw, [(group.allocatable, group.count) for group in cluster.nodes])
            for raw, cluster in zip(idle_clusters(config), config.clusters, strict=True)
        ],
        queues=queues,
        now=datetime.now(UTC),
        admission=admission,
        lag=timedelta(),
        candidacy=Candidacy(),
        namespace=namespace or "default",
    )


async def from_control_plane(
    access: Access, *, admission: QueueAdmission | None, lag: timedelta, candidacy: Candidacy
) -> World:
    """Read what the controller reads; what one may not read is named and left out.

    Without `admission`, whether Volcano Global is here says who admits. Raises KubeError when the
    clusters cannot be read, and ConfigError.
    """
    async with access.connect() as kube:
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
        home = access.home(kube)
    for resource, reading in readings.items():
        if isinstance(reading, KubeError):
            remark(f"{resource.group_resource} left out: {words(reading)}")
    queues = readings[QUEUES]
    if admission is None:
        mutating = readings[MUTATING_WEBHOOKS]
        unknown = isinstance(mutating, KubeError)
        admission = _found(volcano_global=unknown or queues_bindings(items(mutating)))
    return world_of(
        clusters=clusters.items,
        queues=None if isinstance(queues, KubeError) else queues,
        now=datetime.now(UTC),
        admission=admission,
        lag=lag,
        candidacy=candidacy,
        namespace=home,
        hyperjobs=items(readings[HYPERJOBS]),
        jobs=items(readings[VCJOBS]),
        policies=items(readings[PROPAGATION_POLICIES]),
        bindings=items(readings[RESOURCE_BINDINGS]),
        priority_classes=items(readings[PRIORITY_CLASSES]),
    )


def _found(*, volcano_global: bool) -> QueueAdmission:
    return QueueAdmission.VOLCANO_GLOBAL if volcano_global else QueueAdmission.BUILTIN


_OTHERS = {
    HYPERJOBS: False,
    VCJOBS: True,
    PROPAGATION_POLICIES: True,
    RESOURCE_BINDINGS: False,
    QUEUES: False,
    PRIORITY_CLASSES: False,
}
"""What is read beside the clusters, and whether only what bears our label."""


def _all(kube: Kube, resource: Resource, **choice: str) -> Callable[[], Awaitable[list[Object]]]:
    async def ask() -> list[Object]:
        return (await kube.list(resource, **choice)).items  # type: ignore[arg-type]  # names

    return ask
