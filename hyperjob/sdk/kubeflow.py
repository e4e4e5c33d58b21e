"""Kubeflow's TrainerClient over several clusters: it reads pods, logs and Events of the members.

    client = over_clusters(TrainerClient(KubernetesBackendConfig(config_file=karmada)))
    client.get_job_logs("llm", step="node-3", follow=True)

The client creates, lists, reads and deletes TrainJobs in the Karmada API server by itself. The pods
of a TrainJob that runs as a HyperJob are in members: this module reads them through Karmada's
cluster proxy. It imports neither `kubeflow` nor `kubernetes`, and uses those of the caller.
"""

# ruff: noqa: ANN401 - the Python client of Kubernetes has no types

import copy
import functools
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hyperjob_core.api.names import GROUP, PLURAL, VERSION
from hyperjob_core.api.trainer import JOBSET_NAME
from hyperjob_core.api.wire import at, objects, string

__all__ = ["over_clusters"]

_NAME: Final = re.compile(rf"{re.escape(JOBSET_NAME)}=([^,]+)")
_PROXY: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"

_C = TypeVar("_C")


def over_clusters(client: _C) -> _C:
    """Let a TrainerClient with Kubernetes' backend read the pods of members; return the client.

    Raises TypeError for a client with another backend.
    """
    backend: Any = getattr(client, "backend", None)
    if not (hasattr(backend, "core_api") and hasattr(backend, "custom_api")):
        raise TypeError("over_clusters needs a TrainerClient with the Kubernetes backend")
    backend.core_api = _Members(backend.core_api, backend.custom_api)
    return client


class _Members:
    """CoreV1Api of the Karmada API server, whose pods, logs and Events are also those of members.

    Every other attribute is that of the CoreV1Api.
    """

    def __init__(self, core: Any, custom: Any) -> None:
        self._core = core
        self._custom = custom
        self._clusters: dict[str, Any] = {}
        self._places: dict[tuple[str, str], str] = {}

        # kubernetes.watch reads from the docstring how a method is called.
        @functools.wraps(type(core).read_namespaced_pod_log)
        def read_log(name: str, namespace: str, **options: Any) -> Any:
            return self._read_log(name, namespace, **options)

        self.read_namespaced_pod_log = read_log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def list_namespaced_pod(
        self, namespace: str, *, async_req: bool = False, **options: Any
    ) -> Any:
        """Return the pods of a TrainJob in all clusters of its HyperJob."""
        return self._answer(lambda: self._pods(namespace, **options), later=async_req)

    def list_namespaced_event(
        self, namespace: str, *, async_req: bool = False, **options: Any
    ) -> Any:
        """Return the Events of the namespace, and those of the clusters of known pods."""
        return self._answer(lambda: self._events(namespace, **options), later=async_req)

    def _answer(self, ask: Callable[[], Any], *, later: bool) -> Any:
        return self._core.api_client.pool.apply_async(ask) if later else ask()

    def _pods(self, namespace: str, **options: Any) -> Any:
        listed = self._core.list_namespaced_pod(namespace, **options)
        found = _NAME.search(string(options.get("label_selector")))
        for cluster in sorted(self._used(namespace, found[1])) if found else ():
            more = self._cluster(cluster).list_namespaced_pod(namespace, **options)
            listed.items.extend(more.items)
            self._places |= {(namespace, pod.metadata.name): cluster for pod in more.items}
        return listed

    def _events(self, namespace: str, **options: Any) -> Any:
        listed = self._core.list_namespaced_event(namespace, **options)
        used = {cluster for (where, _), cluster in self._places.items() if where == namespace}
        for cluster in sorted(used):
            listed.items.extend(
                self._cluster(cluster).list_namespaced_event(namespace, **options).items
            )
        for event in listed.items:
            # Events of events.k8s.io have an eventTime, and TrainerClient drops those without this.
            event.first_timestamp = event.first_timestamp or event.event_time
        return listed

    def _read_log(self, name: str, namespace: str, **options: Any) -> Any:
        cluster = self._places.get((namespace, name))
        core = self._core if cluster is None else self._cluster(cluster)
        return core.read_namespaced_pod_log(name, namespace, **options)

    def _used(self, namespace: str, name: str) -> set[str]:
        """Return the clusters of the sub-jobs of a TrainJob's HyperJob."""
        listed = self._custom.list_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, field_selector=f"metadata.name={name}"
        )
        return {
            string(job.get("cluster"))
            for hyperjob in objects(at(listed, "items"))
            for job in objects(at(hyperjob, "status", "jobs"))
            if job.get("cluster")
        }

    def _cluster(self, name: str) -> Any:
        """Return the CoreV1Api of a member, by Karmada's cluster proxy."""
        if name not in self._clusters:
            configuration = copy.copy(self._core.api_client.configuration)
            configuration.host += _PROXY.format(name)
            self._clusters[name] = type(self._core)(type(self._core.api_client)(configuration))
        return self._clusters[name]
