"""The simulated Karmada over one API server, and Volcano Global where it is switched on."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists
from hyperjob_core.kube.resources import CLUSTER_PROPAGATION_POLICIES, CLUSTERS, NAMESPACES, QUEUES
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import Queue, SandboxConfig
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.karmada.cluster_controller import ClusterController, Member
from hyperjob_sandbox.karmada.clusterstatus import cluster_object
from hyperjob_sandbox.karmada.dependencies import DependenciesDistributor
from hyperjob_sandbox.karmada.detector import Detector
from hyperjob_sandbox.karmada.dispatch import (
    BindingController,
    NamespaceController,
    StatusController,
)
from hyperjob_sandbox.karmada.execution import ExecutionController
from hyperjob_sandbox.karmada.scheduler import Scheduler
from hyperjob_sandbox.karmada.volcano_global import Dispatcher
from hyperjob_sandbox.karmada.webhooks import WebhookServer, registered
from hyperjob_sandbox.objects import FIELD_MANAGER, is_open, is_ready, new_object

_NAMESPACES: Final = ("karmada-system", "karmada-cluster", "volcano-global")
_QUEUE_POLICY: Final = new_object(
    CLUSTER_PROPAGATION_POLICIES,
    "volcano-global-all-queue-propagation",
    spec={
        "resourceSelectors": [QUEUES.head],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
        # without it the default queue, which Volcano makes in every member, is never Karmada's
        "conflictResolution": "Overwrite",
    },
)
_READY_SECONDS: Final = 60.0


class ControlPlane(Part):
    """The controllers of the control plane, an async context manager."""

    def __init__(
        self,
        kube: Kube,
        config: SandboxConfig,
        *,
        members: Mapping[str, Member],
        server: WebhookServer,
    ) -> None:
        super().__init__()
        self._config = config
        self._members = members
        self._server = server
        self.caches = Caches(kube)
        self._queues = {each.name: each for each in (Queue(name="default"), *config.queues)}

    async def _set_up(self, stack: AsyncExitStack) -> None:
        self.start(self.caches.run(), name="informers")
        async with asyncio.timeout(_READY_SECONDS):
            # a foreign API server may establish the definitions a moment after it took them
            await self.until(self.caches.synced())
            await self._install(stack)
            self._start()
            await self.until(self._ready())

    def _start(self) -> None:
        config, caches = self._config, self.caches
        detector = Detector(caches)
        cluster = ClusterController(
            caches,
            self._members,
            every=config.karmada.cluster_status_seconds,
            threshold=config.karmada.cluster_failure_seconds,
        )
        controllers = [
            detector.templates,
            detector.policies,
            Scheduler(caches).controller,
            DependenciesDistributor(caches).controller,
            BindingController(caches).controller,
            NamespaceController(caches).controller,
            StatusController(caches).controller,
            cluster.clusters,
            cluster.status,
        ]
        for name, member in self._members.items():
            execution = ExecutionController(name, caches=caches, member=member.caches)
            controllers += [execution.apply, execution.status]
        if config.volcano_global.enabled:
            dispatcher = Dispatcher(caches, period=config.volcano_global.dispatch_period)
            self.start(dispatcher.run(), name="dispatcher")
        for controller in controllers:
            self.start(controller.run(), name=controller.name)

    async def _install(self, stack: AsyncExitStack) -> None:
        products = ("karmada", "volcano-global", "volcano")
        brought = products if self._config.volcano_global.enabled else products[:1]
        queues = self.caches[QUEUES]
        await stack.enter_async_context(
            registered(self.caches.kube, self._server, queues, *brought)
        )
        namespaces = [new_object(NAMESPACES, name) for name in _NAMESPACES]
        for obj in (*namespaces, _QUEUE_POLICY, *map(_queue, self._queues.values())):
            with suppress(AlreadyExists):
                await self.caches.create(obj)
        for cluster in self._config.clusters:
            endpoint = self._members[cluster.name].endpoint
            models = self._config.karmada.resource_models
            obj = cluster_object(cluster, endpoint=endpoint, models=models)
            await self.caches.kube.apply(CLUSTERS, obj, field_manager=FIELD_MANAGER)

    async def _ready(self) -> None:
        """Wait until all clusters are Ready and all queues are Open, as an installation is."""
        clusters, queues = self.caches.clusters, self.caches[QUEUES]
        await self.caches.until(
            lambda: (
                all(is_ready(clusters.get(name)) for name in self._members)
                and all(is_open(queues.get(name)) for name in self._queues)
            )
        )


def _queue(queue: Queue) -> Object:
    spec: Object = queue.model_dump(exclude={"name"}, exclude_none=True)
    if "capability" in spec:
        spec["capability"] = {name: str(amount) for name, amount in spec["capability"].items()}
    return new_object(QUEUES, queue.name, spec=spec)
