"""The whole simulated Karmada, and Volcano Global where it is switched on, over one API server.

It installs what a real installation brings, joins the members, runs all controllers, and takes its
webhook registrations away again. It must never start an API server.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube, PatchType
from hyperjob.kube.errors import AlreadyExists
from hyperjob.kube.events import EventRecorder
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTERS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    QUEUES,
    Resource,
)
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import Cluster, Queue, SandboxConfig
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.karmada import reviews, webhooks
from hyperjob_sandbox.karmada.binding_controller import BindingController
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.karmada.cluster_controller import ClusterController
from hyperjob_sandbox.karmada.clusterstatus import default_resource_models
from hyperjob_sandbox.karmada.dependencies_distributor import DependenciesDistributor
from hyperjob_sandbox.karmada.detector import Detector
from hyperjob_sandbox.karmada.execution import ExecutionController
from hyperjob_sandbox.karmada.namespaces import NamespaceController
from hyperjob_sandbox.karmada.scheduler import Scheduler
from hyperjob_sandbox.karmada.status_controller import StatusController
from hyperjob_sandbox.karmada.volcano_global import Dispatcher
from hyperjob_sandbox.karmada.works import find_condition
from hyperjob_sandbox.member.watching import MemberCaches

_NAMESPACES: Final = ("karmada-system", "karmada-cluster", "volcano-global")
_QUEUE_POLICY: Final[Object] = {
    "apiVersion": CLUSTER_PROPAGATION_POLICIES.api_version,
    "kind": CLUSTER_PROPAGATION_POLICIES.kind,
    "metadata": {"name": "volcano-global-all-queue-propagation"},
    "spec": {
        "resourceSelectors": [{"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
        # without it the default queue, which Volcano makes in every member, is never Karmada's
        "conflictResolution": "Overwrite",
    },
}
_READY_SECONDS: Final = 60.0


class ControlPlane(Part):
    """The controllers of the control plane, an async context manager.

    `members` gives for every cluster of the configuration what is watched in it, and
    `endpoints` the address of its API server.
    """

    def __init__(
        self,
        kube: Kube,
        config: SandboxConfig,
        *,
        members: Mapping[str, MemberCaches],
        endpoints: Mapping[str, str],
        server: webhooks.WebhookServer,
    ) -> None:
        super().__init__()
        self._kube = kube
        self._config = config
        self._members = members
        self._endpoints = endpoints
        self._server = server
        self._caches = Caches(kube)

    async def _set_up(self, stack: AsyncExitStack) -> None:
        await self._install(stack)
        stack.push_async_callback(self._background.stop)
        self._start()
        await self._background.until(self._ready(), seconds=_READY_SECONDS)

    def _start(self) -> None:
        config, kube, caches = self._config, self._kube, self._caches
        recorder = EventRecorder(kube, "karmada")
        detector = Detector(
            kube, caches, recorder, components=config.karmada.multiple_pod_templates
        )
        cluster = ClusterController(
            kube,
            caches,
            self._members,
            self._endpoints,
            every=config.karmada.cluster_status_seconds,
            failure_threshold=config.karmada.cluster_failure_seconds,
        )
        status = StatusController(kube, caches)
        controllers: list[Controller] = [
            detector.templates,
            detector.policies,
            Scheduler(kube, caches, recorder).controller,
            DependenciesDistributor(kube, caches).controller,
            BindingController(kube, caches).controller,
            status.bindings,
            status.templates,
            NamespaceController(kube, caches).controller,
            cluster.clusters,
            cluster.status,
        ]
        for name, member in self._members.items():
            execution = ExecutionController(
                name, kube=kube, caches=caches, member=member, recorder=recorder
            )
            controllers += [execution.apply, execution.status]
        if config.volcano_global.enabled:
            dispatcher = Dispatcher(kube, caches, period=config.volcano_global.dispatch_period)
            self._background.start(dispatcher.run(), name="dispatcher")
        self._background.start(recorder.run(), name="events")
        self._background.start(caches.run(), name="informers")
        for controller in controllers:
            self._background.start(controller.run(), name=controller.name)

    async def _install(self, stack: AsyncExitStack) -> None:
        for name in _NAMESPACES:
            await self._ensure(
                NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        self._server.answers["/mutate-policy"] = reviews.mutate_policy
        configurations = [(MUTATING_WEBHOOKS, webhooks.karmada_configuration(self._server))]
        if self._config.volcano_global.enabled:
            self._server.answers["/resourcebindings/mutate"] = reviews.mutate_binding
            self._server.answers["/jobs/mutate"] = reviews.mutate_job
            self._server.answers["/jobs/validate"] = reviews.validate_job(
                queue_lookup(self._caches[QUEUES])
            )
            configurations += webhooks.volcano_global_configurations(self._server)
        await webhooks.register(self._kube, configurations)
        stack.push_async_callback(webhooks.unregister, self._kube, configurations)
        await self._ensure(CLUSTER_PROPAGATION_POLICIES, _QUEUE_POLICY)
        queues = {queue.name: queue for queue in (Queue(name="default"), *self._config.queues)}
        for queue in queues.values():
            await self._ensure(QUEUES, _queue(queue))
        for cluster in self._config.clusters:
            await self._join(cluster)

    async def _join(self, cluster: Cluster) -> None:
        obj = cluster_object(
            cluster,
            endpoint=self._endpoints[cluster.name],
            models=self._config.karmada.resource_models,
        )
        try:
            await self._kube.create(CLUSTERS, obj)
        except AlreadyExists:
            await self._kube.patch(
                CLUSTERS, cluster.name, {"spec": obj["spec"]}, kind=PatchType.MERGE
            )

    async def _ensure(self, resource: Resource, obj: Object) -> None:
        try:
            await self._kube.create(resource, obj)
        except AlreadyExists:
            return

    async def _ready(self) -> None:
        """Wait until all clusters are Ready and all queues are Open, as an installation is."""
        await self._caches.synced()
        names = {cluster.name for cluster in self._config.clusters}
        queues = {"default", *(queue.name for queue in self._config.queues)}
        changed = asyncio.Event()

        def notice(_event: EventType, _old: Object | None, _new: Object | None) -> None:
            changed.set()

        self._caches.clusters.add_handler(notice)
        self._caches[QUEUES].add_handler(notice)
        while not (
            all(_is_ready(self._caches.clusters.get(name)) for name in names)
            and all(_is_open(self._caches[QUEUES].get(name)) for name in queues)
        ):
            changed.clear()
            await changed.wait()


def queue_lookup(queues: Informer) -> reviews.QueueLookup:
    """Return the lookup that vcjob validation needs, over a cluster's queues."""

    def look_up(name: str) -> tuple[Object | None, int]:
        parents = [(queue.get("spec") or {}).get("parent") for queue in queues.items()]
        return queues.get(name), parents.count(name)

    return look_up


def cluster_object(cluster: Cluster, *, endpoint: str, models: bool) -> Object:
    """Return a Cluster as it joins."""
    spec: Object = {"apiEndpoint": endpoint, "syncMode": "Push"}
    if cluster.provider:
        spec["provider"] = cluster.provider
    if cluster.region:
        spec["region"] = cluster.region
    if cluster.zone:
        spec["zones"] = [cluster.zone]
    if models:
        spec["resourceModels"] = default_resource_models()
    metadata: Object = {"name": cluster.name}
    if cluster.labels:
        metadata["labels"] = dict(cluster.labels)
    return {
        "apiVersion": CLUSTERS.api_version,
        "kind": CLUSTERS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _queue(queue: Queue) -> Object:
    spec: Object = {"weight": queue.weight, "reclaimable": queue.reclaimable}
    if queue.priority:
        spec["priority"] = queue.priority
    if queue.capability is not None:
        spec["capability"] = {name: str(amount) for name, amount in queue.capability.items()}
    if queue.parent is not None:
        spec["parent"] = queue.parent
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": queue.name},
        "spec": spec,
    }


def _is_ready(cluster: Object | None) -> bool:
    ready = find_condition(cluster, "Ready") if cluster is not None else None
    return ready is not None and ready["status"] == "True"


def _is_open(queue: Object | None) -> bool:
    return queue is not None and (queue.get("status") or {}).get("state") == "Open"
