"""Defaults of built-in kinds, where something here reads them back.

Each function changes the object that it is given, which is always a fresh one, and only adds.
"""

import base64
from collections.abc import Callable
from typing import Any

from hyperjob.api.meta import Object


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/metadata.name", obj["metadata"].get("name", ""))
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _definition(obj: Object) -> None:
    spec = obj.get("spec") or {}
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})


def _webhooks(obj: Object) -> None:
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = hook.get("clientConfig", {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _pod_spec(spec: dict[str, Any], *, restart: str = "Always") -> None:
    spec.setdefault("restartPolicy", restart)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        image = str(container.get("image", ""))
        latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _pod(obj: Object) -> None:
    _pod_spec(obj.setdefault("spec", {}))
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _workload(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    kind = obj.get("kind")
    if kind != "DaemonSet":
        spec.setdefault("replicas", 1)
    if kind == "Deployment":
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
        spec.setdefault("strategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
    template = spec.get("template")
    if isinstance(template, dict):
        _pod_spec(template.setdefault("spec", {}))
    obj.setdefault("status", {})


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    obj.setdefault("status", {"loadBalancer": {}})


def _priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _binding(obj: Object) -> None:
    obj.get("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


DEFAULTS: dict[tuple[str, str], Callable[[Object], None]] = {
    ("", "Namespace"): _namespace,
    ("", "Secret"): _secret,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _workload,
    ("apps", "Deployment"): _workload,
    ("apps", "ReplicaSet"): _workload,
    ("apps", "StatefulSet"): _workload,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
