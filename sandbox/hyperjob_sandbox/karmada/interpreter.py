"""What Karmada's resource interpreter says of the kinds the sandbox propagates.

A ResourceInterpreterCustomization switches a hook on; its script is never run.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import UNCOUNTED
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, string_map
from hyperjob_core.kube.resources import QUEUES, RESOURCE_CLAIMS, VCJOBS
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.jobpods import (
    replicas_of,
    requests_of,
    starting_pods,
    task_minimum,
)
from hyperjob_sandbox.member.jobstate import TERMINAL, job_phase

_UNHEALTHY: Final = frozenset({"", "Failed"})
_MILLI: Final = NANO // 1000
_SOURCES: Final = {
    # field of a container, a variable or a volume: the field with the name, and the kind
    "configMapRef": ("name", "ConfigMap"),
    "secretRef": ("name", "Secret"),
    "configMapKeyRef": ("name", "ConfigMap"),
    "secretKeyRef": ("name", "Secret"),
    "configMap": ("name", "ConfigMap"),
    "secret": ("secretName", "Secret"),
    "persistentVolumeClaim": ("claimName", "PersistentVolumeClaim"),
}


def is_vcjob(obj: Object) -> bool:
    """Tell whether an object is a Volcano Job."""
    return (obj.get("apiVersion"), obj.get("kind")) == (VCJOBS.api_version, VCJOBS.kind)


def hooks(customizations: Iterable[Object]) -> frozenset[str]:
    """Return the names of the hooks that customizations define for the vcjob."""
    return frozenset(
        hook
        for each in customizations
        if is_vcjob(each["spec"].get("target") or {})
        for hook in each["spec"].get("customizations") or ()
    )


def requirements_of(template: Object, *, hooks: frozenset[str]) -> Object:
    """Return `replicas` with `replicaRequirements` of a template, or nothing.

    A vcjob has replicas only when a customization defines `replicaResource`; they answer as the
    script that `hyperjob install` applies: the pods that start together, as a number of equal
    replicas that divides their devices. A vcjob that has ended requests nothing.
    """
    if not is_vcjob(template) or "replicaResource" not in hooks:
        return {}
    tasks: list[Object] = template["spec"].get("tasks") or []
    least = [
        replicas_of(task)
        if "partitionPolicy" in task
        else min(task_minimum(task), replicas_of(task))
        for task in tasks
    ]
    wanted = int(template["spec"].get("minAvailable") or 0) or sum(least)
    numbers = starting_pods(tasks, least, wanted)
    pods, needed = sum(numbers), requests_of(tasks, numbers)
    if job_phase(template) in TERMINAL or not pods:
        return {"replicas": pods} if pods else {}
    marks = string_map(at(template, "metadata", "annotations"))
    for name in marks.get(UNCOUNTED, "").split(","):
        needed.pop(name, None)
    devices = [amount // NANO for name, amount in needed.items() if "/" in name]
    pods = next(count for count in range(pods, 0, -1) if not any(each % count for each in devices))
    shares = {
        name: f"{amount // (_MILLI * pods)}m" if name == "cpu" else str(amount // (NANO * pods))
        for name, amount in sorted(needed.items())
        if amount
    }
    requirements = {"resourceRequest": shares} if shares else {}
    return {"replicas": pods, "replicaRequirements": requirements}


def dependencies_of(job: Object) -> list[Object]:
    """Return references to what the pods of a vcjob name, each once, in their order."""
    found: list[tuple[str, str]] = []
    claims: list[tuple[str, str]] = []
    for task in job["spec"].get("tasks") or ():
        spec = (task.get("template") or {}).get("spec") or {}
        if (account := spec.get("serviceAccountName")) not in (None, "", "default"):
            found.append(("ServiceAccount", account))
        found += [("Secret", each["name"]) for each in spec.get("imagePullSecrets") or ()]
        for part in ("initContainers", "containers", "volumes"):
            found += _named(spec.get(part))
        claims += [
            (
                "ResourceClaimTemplate" if "resourceClaimTemplateName" in each else "ResourceClaim",
                name,
            )
            for each in spec.get("resourceClaims") or ()
            if (name := each.get("resourceClaimTemplateName") or each.get("resourceClaimName"))
        ]
    found += [
        ("PersistentVolumeClaim", volume["volumeClaimName"])
        for volume in job["spec"].get("volumes") or ()
        if volume.get("volumeClaimName") and volume.get("volumeClaim") is None
    ]
    namespace = job["metadata"]["namespace"]
    return [
        {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name}
        for version, references in (("v1", found), (RESOURCE_CLAIMS.api_version, claims))
        for kind, name in dict.fromkeys(references)
    ]


def _named(value: object) -> Iterator[tuple[str, str]]:
    """Walk through a part of a pod's spec to every field that names an object."""
    for each in value if isinstance(value, list) else ():
        yield from _named(each)
    for field, part in value.items() if isinstance(value, dict) else ():
        if field in _SOURCES and isinstance(part, dict):
            key, kind = _SOURCES[field]
            if name := part.get(key) or part.get("name"):  # a projected Secret has a name
                yield kind, name
        else:
            yield from _named(part)


def reflect_status(obj: Object) -> Object | None:
    """Return the part of a member object's status that travels up, None when it has none."""
    status = obj.get("status")
    if is_vcjob(obj):
        found = (status or {}).items()
        status = {key: value for key, value in found if value not in (None, {}, [])}
    return deepcopy(status)


def health(obj: Object) -> str:
    """Return Healthy, Unhealthy or Unknown of a member object."""
    if not is_vcjob(obj):
        return "Unknown" if obj.get("kind") == QUEUES.kind else "Healthy"
    return "Unhealthy" if job_phase(obj) in _UNHEALTHY else "Healthy"


def aggregate_status(template: Object, items: list[Object]) -> Object | None:
    """Return the template's status made of its clusters' statuses; None takes the status away.

    The one item of a vcjob is copied as it is: a sub-job is on one cluster.
    """
    if template.get("kind") == QUEUES.kind:
        return _aggregate_queue(items)
    return deepcopy(items[0].get("status")) if len(items) == 1 else {}


def _aggregate_queue(items: list[Object]) -> Object:
    statuses = [item["status"] for item in items if item.get("status")]
    allocated = resources.total(resources.parse(each.get("allocated")) for each in statuses)
    status: Object = {
        "allocated": {"cpu": "0", "memory": "0", **resources.wire(allocated)},
        "running": 0,
    }
    states = [each["state"] for each in statuses if each.get("state")]
    if states:
        status["state"] = "Open" if "Open" in states else states[0]
    return status
