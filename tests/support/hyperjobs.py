"""HyperJobs of one replicatedJob and one task, with what a test adds to its parts."""

from typing import Any

from hyperjob_core.kube.resources import HYPERJOBS

Object = dict[str, Any]


def job_template(
    *,
    pods: int = 1,
    resources: Object | None = None,
    container: Object | None = None,
    pod: Object | None = None,
    **fields: Any,
) -> Object:
    """Return a templateSpec with fields of the container, of the pod and of its own."""
    main = {"name": "main", "image": "i", "resources": resources or {}, **(container or {})}
    template = {"spec": {"containers": [main], **(pod or {})}}
    return {"tasks": [{"name": "worker", "replicas": pods, "template": template}], **fields}


def hyperjob(
    name: str = "hj",
    template: Object | None = None,
    *,
    namespace: str = "default",
    replicas: int = 1,
    group: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a HyperJob with fields of its replicatedJob and of its spec."""
    made = {"name": "trainer", "replicas": replicas, "templateSpec": template or job_template()}
    return {
        **HYPERJOBS.head,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicatedJobs": [made | (group or {})], **spec},
    }
