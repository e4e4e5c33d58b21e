"""Containers and init containers: what each must have, and what they must not share.

The parts of a container have files of their own.
"""

from collections.abc import Callable, Mapping
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.env import validate_env, validate_env_from
from webhook.validation.podtemplate.mounts import validate_devices, validate_mounts
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.ports import validate_host_ports, validate_ports
from webhook.validation.podtemplate.probes import PROBES, validate_lifecycle, validate_probe
from webhook.validation.podtemplate.resources import validate_resize, validate_resources
from webhook.validation.podtemplate.security import validate_container_security
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    rule,
)

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
ONLY_SIDECARS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")

NO_CONTAINERS = rule("V8", REQUIRED, "", "a pod has no container", "add a container")
NAME_MISSING = rule("V8", REQUIRED, "", "a container has no name", "give it a name")
NAME_TWICE = rule(
    "V8", DUPLICATE, "", "two containers of a pod have the same name", "rename one of them"
)
IMAGE_MISSING = rule("V8", REQUIRED, "", "a container has no image", "say which image it runs")
IMAGE_SPACES = rule(
    "V8",
    INVALID,
    "must not have leading or trailing whitespace",
    "the name of an image starts or ends with a blank",
    "remove the blank",
)
ENUM = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a field of a container has a value that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
RESTART_POLICY = rule(
    "V8",
    FORBIDDEN,
    "may not be set for non-init containers",
    "a container has a restart policy of its own, which only init containers can have",
    "set restartPolicy of the pod",
)
NOT_A_SIDECAR = rule(
    "V8",
    FORBIDDEN,
    "may not be set for init containers without restartPolicy=Always",
    "an init container that ends has a probe or a lifecycle hook",
    "remove it, or make the container a sidecar with restartPolicy: Always",
)
RESIZE_OF_INIT = rule(
    "V8",
    INVALID,
    "must not be set for init containers",
    "an init container says how it is resized",
    "remove resizePolicy",
)


def validate_containers(containers: list[Object], pod: Pod, path: Path, report: Report) -> None:
    """Check the containers of a pod, each and together."""
    if not containers:
        report.add(NO_CONTAINERS, path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = path.index(index)
        _validate_common(container, pod, at, report)
        name = container.get("name") or ""
        if name and name in names:
            report.add(NAME_TWICE, at.child("name"), name)
        names.add(name)
        _validate_running(container, pod, at, report)
        if container.get("restartPolicy"):
            report.add(RESTART_POLICY, at.child("restartPolicy"))
    validate_host_ports(containers, path, report, host_network=pod.host_network)


def validate_init_containers(
    containers: list[Object], pod: Pod, path: Path, report: Report
) -> None:
    """Check the init containers of a pod, whose names are shared with the containers."""
    names = set(pod.container_names)
    for index, container in enumerate(containers):
        at = path.index(index)
        _validate_common(container, pod, at, report)
        name = container.get("name") or ""
        if name and name in names:
            report.add(NAME_TWICE, at.child("name"), name)
        names.add(name)
        sidecar = _validate_restart(container, at, report)
        if sidecar:
            _validate_running(container, pod, at, report)
        else:
            for field in ONLY_SIDECARS:
                if container.get(field):
                    report.add(NOT_A_SIDECAR, at.child(field))
            if container.get("resizePolicy"):
                report.add(RESIZE_OF_INIT, at.child("resizePolicy"), container["resizePolicy"])
        validate_host_ports([container], path, report, host_network=False)


def _validate_restart(container: Object, path: Path, report: Report) -> bool:
    """Check the restart policy of an init container; returns whether it is a sidecar."""
    policy = container.get("restartPolicy")
    if policy and policy != "Always":
        report.unsupported(ENUM, path.child("restartPolicy"), policy, ("Always",))
    return bool(policy == "Always")


def _validate_common(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check what all containers have in common."""
    if not container.get("name"):
        report.add(NAME_MISSING, path.child("name"))
    if not container.get("image"):
        report.add(IMAGE_MISSING, path.child("image"))
    for field, value in container.items():
        validate = FIELDS.get(field)
        if validate is not None and value:
            validate(container, pod, path, report)


def _validate_running(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check what only containers that stay up have."""
    if container.get("lifecycle"):
        validate_lifecycle(container["lifecycle"], pod.grace, path.child("lifecycle"), report)
    for field in PROBES:
        if container.get(field) is not None:
            validate_probe(container[field], field, path.child(field), report)


def _validate_name(container: Object, _: Pod, path: Path, report: Report) -> None:
    check(formats.dns1123_label, container["name"], path, report, "name")


def _validate_image(container: Object, _: Pod, path: Path, report: Report) -> None:
    image = container["image"]
    if image.strip() != image:
        report.add(IMAGE_SPACES, path.child("image"), image)


def _validate_message_policy(container: Object, _: Pod, path: Path, report: Report) -> None:
    _validate_choice(container, "terminationMessagePolicy", MESSAGE_POLICIES, path, report)


def _validate_pull_policy(container: Object, _: Pod, path: Path, report: Report) -> None:
    _validate_choice(container, "imagePullPolicy", PULL_POLICIES, path, report)


def _validate_choice(
    container: Object, field: str, known: tuple[str, ...], path: Path, report: Report
) -> None:
    if container[field] not in known:
        report.unsupported(ENUM, path.child(field), container[field], known)


Validate = Callable[[Object, Pod, Path, Report], None]

FIELDS: Final[Mapping[str, Validate]] = {
    "name": _validate_name,
    "image": _validate_image,
    "terminationMessagePolicy": _validate_message_policy,
    "imagePullPolicy": _validate_pull_policy,
    "ports": validate_ports,
    "env": validate_env,
    "envFrom": validate_env_from,
    "volumeMounts": validate_mounts,
    "volumeDevices": validate_devices,
    "resources": validate_resources,
    "resizePolicy": validate_resize,
    "securityContext": validate_container_security,
}
"""The checks of the fields that all containers have; each finds its field filled."""
