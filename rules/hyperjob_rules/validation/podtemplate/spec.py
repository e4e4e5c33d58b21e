"""Validation of pod templates, with the rules and messages of a member cluster's API server.

An absent field counts with the default that the API server sets. The tables here are those of the
spec and of containers.
"""

import re
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import validate_annotations, validate_labels
from hyperjob_rules.validation.podtemplate.env import ENV_FROM_SOURCE, ENV_VAR
from hyperjob_rules.validation.podtemplate.objects import Unique, exactly_one, items, struct
from hyperjob_rules.validation.podtemplate.probes import (
    RUNNING,
    VOLUME_MOUNT,
    mount_rules,
)
from hyperjob_rules.validation.podtemplate.resources import REQUIREMENTS, overhead, pod_resources
from hyperjob_rules.validation.podtemplate.scheduling import (
    AFFINITY,
    SPREAD,
    TOLERATION,
)
from hyperjob_rules.validation.podtemplate.sources import VOLUME
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    between,
    code,
    enum,
    form,
    held,
    is_padded,
    labels,
    optional,
    pointer,
    required,
    row,
)
from hyperjob_rules.validation.rules import INVALID, Report

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"

BUDGET_TWICE: Final = row("F5.exclusive")
BUDGET_NUMBER: Final = row("F5.number")
NAME_IGNORED: Final = row("X13.pod-name")

_PERCENT: Final = re.compile(r"[+-]?[0-9]+%*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def validate_pod_metadata(metadata: Object, path: Path, report: Report) -> None:
    """Validate the labels and annotations of a pod template."""
    labels = metadata.get("labels")
    if labels:
        validate_labels(labels, path.child("labels"), report)
    annotations = metadata.get("annotations")
    if annotations:
        at = path.child("annotations")
        validate_annotations(annotations, at, report)
        _validate_budget(annotations, at, report)
    for name in ("name", "generateName"):
        if metadata.get(name):
            report.warn(NAME_IGNORED, path.child(name))


def _validate_budget(annotations: Object, path: Path, report: Report) -> None:
    for key in (MIN_AVAILABLE, MAX_UNAVAILABLE):
        value = annotations.get(key)
        if value is not None and not _is_budget(value):
            report.add(BUDGET_NUMBER, path.key(key), value)
    if MIN_AVAILABLE in annotations and MAX_UNAVAILABLE in annotations:
        report.add(BUDGET_TWICE, path.key(MAX_UNAVAILABLE))


def _is_budget(value: str) -> bool:
    if len(value) > 20:
        return False
    if _INTEGER.fullmatch(value):
        return int(value) > 0
    return bool(_PERCENT.fullmatch(value)) and 0 < int(value.rstrip("%")) < 100


MAIN_ONLY: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")

IMAGE_SPACES: Final = row("V8.Container.image.form")
NOT_A_SIDECAR: Final = row("V8.Container.sidecar.forbidden")
HOST_PORT_TWICE: Final = row("V8.ContainerPort.hostPort.unique")
HOST_PORT_DIFFERS: Final = row("V8.ContainerPort.hostPort.host-network")


PORT: Final = Type(
    "ContainerPort",
    "a port",
    optional("name", form(formats.port_name)),
    required("containerPort", between(1, 65535)),
    optional("hostPort", between(1, 65535)),
    optional("protocol", enum("SCTP", "TCP", "UDP")),
)
CONTAINER: Final = Type(
    "Container",
    "a container",
    required("name", form(formats.dns1123_label)),
    required("image", held((IMAGE_SPACES, is_padded))),
    optional("imagePullPolicy", enum("Always", "IfNotPresent", "Never")),
    optional("terminationMessagePolicy", enum("File", "FallbackToLogsOnError")),
    optional("ports", items(PORT, Unique("name", form=formats.port_name))),
    optional("env", items(ENV_VAR)),
    optional("envFrom", items(ENV_FROM_SOURCE)),
    optional(
        "volumeMounts",
        items(
            VOLUME_MOUNT,
            Unique("mountPath", INVALID, "must be unique"),
            across=(mount_rules,),
        ),
    ),
    optional("resources", struct(REQUIREMENTS)),
)


def main_container(container: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the rules for containers that are not init containers."""
    RUNNING.walk(container, container, path, pod, report)


def init_container(container: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the rules for init containers; those with restartPolicy Always are sidecars."""
    if container.get("restartPolicy") == "Always":
        RUNNING.walk(container, container, path, pod, report)
    else:
        for field in MAIN_ONLY:
            if container.get(field):
                report.add(NOT_A_SIDECAR, path.child(field))
    # Kubernetes looks at one init container at a time and counts each as the first.
    first = (path.parent or path).index(0)
    _host_ports(container, set(), first, report, host_network=False)


def host_ports(containers: list[Object], _o: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the host ports of the containers of one pod."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        at = path.child("containers").index(index)
        _host_ports(container, taken, at, report, host_network=pod.host_network)


def _host_ports(
    container: Object, taken: set[str], path: Path, report: Report, *, host_network: bool
) -> None:
    """Report host ports in `taken`, and add the others to it, as PROTOCOL/IP/PORT."""
    for index, port in enumerate(container.get("ports") or ()):
        host = port.get("hostPort")
        if not host:
            continue
        at = path.child("ports").index(index).child("hostPort")
        key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{host}"
        if key in taken:
            report.add(HOST_PORT_TWICE, at, key)
        taken.add(key)
        if host_network and host != port.get("containerPort"):
            report.add(HOST_PORT_DIFFERS, at, host)


CLAIM_ONE: Final = row("V8.PodResourceClaim.one-of.required")
CLAIM_BOTH: Final = row("V8.PodResourceClaim.one-of.max")


CLAIM: Final = Type(
    "PodResourceClaim",
    "a resource claim",
    required("name", form(formats.dns1123_label)),
    optional("resourceClaimName", form(formats.dns1123_subdomain)),
    optional("resourceClaimTemplateName", form(formats.dns1123_subdomain)),
    across=(
        exactly_one(
            "resourceClaimName", "resourceClaimTemplateName", none=CLAIM_ONE, twice=CLAIM_BOTH
        ),
    ),
)
POD_SPEC: Final = Type(
    "PodSpec",
    "a pod",
    required(
        "containers",
        items(CONTAINER, Unique("name"), across=(main_container,)),
        code(host_ports),
        remedy="add a container",
    ),
    optional(
        "initContainers",
        items(
            CONTAINER,
            Unique("name", taken=lambda pod: pod.containers),
            across=(init_container,),
        ),
    ),
    optional("volumes", items(VOLUME, Unique("name"))),
    optional("resourceClaims", items(CLAIM, Unique("name"))),
    optional("restartPolicy", enum("Always", "OnFailure", "Never")),
    optional("preemptionPolicy", enum("PreemptLowerPriority", "Never")),
    optional("serviceAccountName", form(formats.dns1123_subdomain)),
    optional("priorityClassName", form(formats.dns1123_subdomain)),
    optional("runtimeClassName", form(formats.dns1123_subdomain)),
    optional("nodeName", form(formats.dns1123_subdomain)),
    optional("hostname", form(formats.dns1123_label)),
    optional("subdomain", form(formats.dns1123_label)),
    optional("nodeSelector", labels()),
    pointer("activeDeadlineSeconds", between(1, 2**31 - 1)),
    optional("affinity", struct(AFFINITY)),
    optional("tolerations", items(TOLERATION)),
    optional("topologySpreadConstraints", items(SPREAD)),
    optional("overhead", code(overhead)),
    optional("resources", code(pod_resources)),
)


def validate_pod_spec(spec: Object, path: Path, report: Report) -> None:
    """Validate the spec of a pod template."""
    POD_SPEC.walk(spec, spec, path, Pod.of(spec), report)


def validate_pod_template(template: Object, path: Path, report: Report) -> None:
    """Validate the metadata and the spec of one task's pod template."""
    spec = template.get("spec") or {}
    metadata = template.get("metadata")
    if metadata:
        validate_pod_metadata(metadata, path.child("metadata"), report)
    validate_pod_spec(spec, path.child("spec"), report)
