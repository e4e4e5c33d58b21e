"""Other objects for the webhook's warnings: informers of Clusters, Queues and PriorityClasses.

Only a webhook with `--kubeconfig` watches them. A review never waits for the informers: before
their sync there are no such warnings. The webhook reads the ConfigMaps, Secrets, claims and
ServiceAccounts that the pods of a new HyperJob need by name, for a second at most, as far as its
role allows it, and only their metadata. These objects only cause warnings, never a denial. The
runtime and the namespace of a TrainJob decide whether it becomes a HyperJob, and of what form.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import hyperjob_core.kube.metrics  # noqa: F401 - shows the counts of requests and informers
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.existing import existing
from hyperjob_core.kube.informer import Informer, refused
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CLUSTERS,
    NAMESPACES,
    PRIORITY_CLASSES,
    QUEUES,
    TRAINING_RUNTIMES,
    Resource,
    key_of,
)
from hyperjob_core.tasks import cancel
from hyperjob_core.telemetry.endpoints import Remark
from hyperjob_rules.validation.context import (
    NOTHING_KNOWN,
    Context,
    is_skipped,
    kept_classes,
    known_clusters,
    known_objects,
    known_queues,
    needs,
)
from hyperjob_rules.validation.names import warn_references
from hyperjob_rules.validation.rules import ALLOWED, Decision, Report
from hyperjob_trainjobs.decide import judge
from hyperjob_webhook.review import AdmissionRequest

USER_AGENT: Final = "hyperjob-webhook/1"
LOOK_SECONDS: Final = 1.0
"""The seconds for which the response about a new HyperJob waits for reads of needed objects."""
LOOKS_AT_A_TIME: Final = 8
"""The number of concurrent HyperJobs with such reads; further ones get no such warnings."""
MOST_OBJECTS: Final = 20
MOST_BYTES: Final = 128 * 1024
"""The largest review with such reads: larger reviews are processed in threads."""


@asynccontextmanager
async def watched(kubeconfig: str, known: Context = NOTHING_KNOWN) -> AsyncIterator["Surroundings"]:
    """Watch the objects inside the context. Raises ConfigError for an unusable kubeconfig.

    `known` is what reviews know besides.
    """
    async with Kube.connect(kubeconfig=kubeconfig, user_agent=USER_AGENT) as kube:
        clusters = Informer(kube, CLUSTERS)
        queues = Informer(kube, QUEUES)
        priorities = Informer(kube, PRIORITY_CLASSES)
        surroundings = Surroundings(kube, clusters, queues, priorities, known)
        tasks = [asyncio.create_task(each.run()) for each in (clusters, queues, priorities)]
        try:
            yield surroundings
        finally:
            await cancel(tasks)


class Surroundings:
    """The context from the informers, rebuilt after a change, and the reads of needed objects."""

    def __init__(
        self,
        kube: Kube,
        clusters: Informer,
        queues: Informer,
        priorities: Informer,
        known: Context = NOTHING_KNOWN,
    ) -> None:
        self.kube = kube
        self._looks = 0
        self._clusters = clusters
        self._queues = queues
        self._priorities = priorities
        self._known = known
        self._changed = True
        for informer in (clusters, queues, priorities):
            informer.add_handler(self._note)

    def context(self) -> Context:
        """Return the context of this moment."""
        if self._changed:
            clusters, queues, priorities = self._clusters, self._queues, self._priorities
            self._known = replace(
                self._known,
                clusters=known_clusters(clusters.items()) if _is_whole(clusters) else None,
                queues=known_queues(queues.items()) if _is_whole(queues) else None,
                priority_classes=(
                    set(map(key_of, priorities.items())) if _is_whole(priorities) else None
                ),
                kept_classes=kept_classes(priorities.items()),
            )
            # Before the sync of all informers the context is not kept.
            self._changed = not all(map(_is_whole, (self._clusters, self._queues, priorities)))
        return self._known

    def refused(self) -> Remark | None:
        """Return that the API server refuses the credentials: reviews go on without warnings."""
        why = refused((self._clusters, self._queues, self._priorities))
        return Remark(f"no warnings about other objects, because {why}") if why else None

    async def missing(self, request: AdmissionRequest, hyperjob: Object) -> Sequence[str]:
        """Return warnings about missing objects that the pods of a new HyperJob need.

        `hyperjob` is the validated object of the request. An object that the webhook's role must
        not read, or whose read takes more than a second, causes no warning.
        """
        if request.size > MOST_BYTES or self._looks >= LOOKS_AT_A_TIME:
            return ()
        wanted = [(request.namespace, kind, name) for kind, name in needs(hyperjob)]
        self._looks += 1
        namespace: Object | None = None
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                there = await existing(
                    self.kube, wanted, left_out=lambda *_: None, most=MOST_OBJECTS
                )
                with suppress(KubeError):
                    namespace = await self._read(NAMESPACES, request.namespace)
        except TimeoutError:
            return ()
        finally:
            self._looks -= 1
        report = Report()
        skipped = is_skipped(namespace or {})
        known = known_objects(there, request.namespace, skipped=skipped)
        warn_references(hyperjob, report, context=known)
        return report.decision().warnings

    async def judge(self, request: AdmissionRequest) -> Decision:
        """Return the decision about a TrainJob, with its runtime and namespace.

        The webhook allows a TrainJob whose runtime it cannot read within a second: the controller
        decides again.
        """
        trainjob = request.object or {}
        reference = at(trainjob, "spec", "runtimeRef")
        name = string(at(reference, "name"))
        if not name or self._looks >= LOOKS_AT_A_TIME:
            return ALLOWED
        scoped = at(reference, "kind") == TRAINING_RUNTIMES.kind
        self._looks += 1
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                runtime = await self._read(
                    TRAINING_RUNTIMES if scoped else CLUSTER_TRAINING_RUNTIMES,
                    name,
                    namespace=request.namespace if scoped else None,
                )
                namespace = await self._read(NAMESPACES, request.namespace)
        except (KubeError, TimeoutError):
            return ALLOWED
        finally:
            self._looks -= 1
        return judge(trainjob, request.old_object, runtime, namespace, self.context())

    async def _read(
        self, resource: Resource, name: str, *, namespace: str | None = None
    ) -> Object | None:
        try:
            return await self.kube.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    def _note(self, *_: object) -> None:
        self._changed = True


def _is_whole(informer: Informer) -> bool:
    return informer.synced.is_set()
