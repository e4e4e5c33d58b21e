"""The clusters, queues and priority classes around HyperJobs, watched for warnings.

Only a webhook that was given a kubeconfig watches them. Reviews never wait for the watches: without
them there is no warning. No HyperJob is refused for what is read here.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import CLUSTERS, PRIORITY_CLASSES, QUEUES
from hyperjob.telemetry.metrics import Metrics
from webhook.validation.context import NOTHING_KNOWN, Cluster, Context, Queue

USER_AGENT: Final = "hyperjob-webhook/1"


@asynccontextmanager
async def watched(kubeconfig: str, *, metrics: Metrics) -> AsyncIterator[Callable[[], Context]]:
    """Watch while inside; gives what is known at any moment. ConfigError if it cannot be read."""
    async with Kube.connect(kubeconfig=kubeconfig, user_agent=USER_AGENT, metrics=metrics) as kube:
        clusters = Informer(kube, CLUSTERS, metrics=metrics)
        queues = Informer(kube, QUEUES, metrics=metrics)
        priorities = Informer(kube, PRIORITY_CLASSES, metrics=metrics)
        surroundings = Surroundings(clusters, queues, priorities)
        tasks = [asyncio.create_task(each.run()) for each in (clusters, queues, priorities)]
        try:
            yield surroundings.context
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task


class Surroundings:
    """Turns what the informers hold into a context, anew only after a change."""

    def __init__(self, clusters: Informer, queues: Informer, priorities: Informer) -> None:
        self._clusters = clusters
        self._queues = queues
        self._priorities = priorities
        self._known = NOTHING_KNOWN
        self._changed = True
        for informer in (clusters, queues, priorities):
            informer.add_handler(self._note)

    def context(self) -> Context:
        """Return what is known now."""
        if self._changed:
            priorities = self._priorities
            self._known = Context(
                clusters=_clusters(self._clusters.items()) if _is_whole(self._clusters) else None,
                queues=_queues(self._queues.items()) if _is_whole(self._queues) else None,
                priority_classes=_names(priorities.items()) if _is_whole(priorities) else None,
            )
            # Until all lists are complete the next review has to look again.
            self._changed = not all(map(_is_whole, (self._clusters, self._queues, priorities)))
        return self._known

    def _note(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        del kind, old, new
        self._changed = True


def _is_whole(informer: Informer) -> bool:
    return informer.synced.is_set()


def _clusters(items: Iterable[Object]) -> dict[str, Cluster]:
    return {item["metadata"]["name"]: Cluster(ready=_is_ready(item)) for item in items}


def _names(items: Iterable[Object]) -> frozenset[str]:
    return frozenset(item["metadata"]["name"] for item in items)


def _is_ready(cluster: Object) -> bool:
    conditions = (cluster.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _queues(items: Iterable[Object]) -> dict[str, Queue]:
    queues = list(items)
    parents = Counter((queue.get("spec") or {}).get("parent") for queue in queues)
    return {
        queue["metadata"]["name"]: Queue(
            state=(queue.get("status") or {}).get("state") or "",
            children=parents[queue["metadata"]["name"]],
        )
        for queue in queues
    }
