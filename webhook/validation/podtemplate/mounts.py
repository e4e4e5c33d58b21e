"""Where containers see the volumes of their pod."""

from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.podtemplate.paths import validate_descending
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import (
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    rule,
)

PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
NONE: Final[frozenset[str]] = frozenset()
READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")

MISSING = rule("V8", REQUIRED, "", "a mount has no name or no mountPath", "add the field named")
UNKNOWN = rule(
    "V8",
    NOT_FOUND,
    "{hint}",
    "a container mounts a volume that its pod lacks",
    "add the volume to `volumes` of the pod, or correct the name",
)
PATH_TWICE = rule(
    "V8",
    INVALID,
    "must be unique",
    "a container mounts two volumes at the same place",
    "mount one of them elsewhere",
)
PATH_EXPR = rule(
    "V8",
    INVALID,
    "subPathExpr and subPath are mutually exclusive",
    "a mount has both subPath and subPathExpr",
    "keep one of the two",
)
OF_IMAGE = rule(
    "V8",
    INVALID,
    "not allowed in image volume sources",
    "a part of an image volume is mounted",
    "mount the whole volume",
)
PROPAGATION = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a mount has a mode that Kubernetes does not know",
    "use one of the values listed",
)
PRIVILEGED = rule(
    "V8",
    FORBIDDEN,
    "Bidirectional mount propagation is available only to privileged containers",
    "an unprivileged container wants its mounts seen by the host",
    "use HostToContainer or None",
)
RECURSIVE = rule(
    "V8",
    FORBIDDEN,
    "may only be specified when readOnly is true",
    "recursiveReadOnly is set on a mount that can be written",
    "set readOnly: true",
)
RECURSIVE_PROPAGATION = rule(
    "V8",
    FORBIDDEN,
    "may only be specified when mountPropagation is None or not specified",
    "recursiveReadOnly is set on a mount that is propagated",
    "remove mountPropagation",
)
ALSO_DEVICE = rule(
    "V8",
    INVALID,
    "must not already exist in volumeDevices",
    "a volume is mounted and given as a device to one container",
    "keep one of the two",
)
ALSO_DEVICE_PATH = rule(
    "V8",
    INVALID,
    "must not already exist as a path in volumeDevices",
    "a volume is mounted where a device is",
    "use another path",
)
NOT_A_CLAIM = rule(
    "V8",
    INVALID,
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
    "a volume that is no claim is given as a device",
    "use a persistentVolumeClaim or ephemeral volume",
)
BACKSTEPS = rule(
    "V8",
    INVALID,
    "can not contain backsteps ('..')",
    "the path of a device leads upwards",
    "write the path without '..'",
)


def validate_mounts(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check the mounts of one container against the volumes of the pod."""
    path = path.child("volumeMounts")
    devices = container.get("volumeDevices") or ()
    device_names = {device.get("name") for device in devices} if devices else NONE
    device_paths = {device.get("devicePath") for device in devices} if devices else NONE
    seen: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        at = path.index(index)
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            report.add(MISSING, at.child("name"))
        elif name not in pod.volumes:
            report.missing(UNKNOWN, at.child("name"), name, pod.volumes)
        if not where:
            report.add(MISSING, at.child("mountPath"))
        elif where in seen:
            report.add(PATH_TWICE, at.child("mountPath"), where)
        seen.add(where)
        if name and name in device_names:
            report.add(ALSO_DEVICE, at.child("name"), name)
        if where and where in device_paths:
            report.add(ALSO_DEVICE_PATH, at.child("mountPath"), where)
        _validate_part(mount, pod.volumes.get(name) or {}, at, report)
        _validate_mode(mount, container, at, report)


def _validate_part(mount: Object, volume: Object, path: Path, report: Report) -> None:
    """Check which part of the volume is mounted."""
    part, expression = mount.get("subPath"), mount.get("subPathExpr")
    if not part and not expression:
        return
    for name in ("subPath", "subPathExpr"):
        value = mount.get(name)
        if not value:
            continue
        if volume.get("image"):
            report.add(OF_IMAGE, path.child(name), value)
        validate_descending(value, path.child(name), report)
    if part and expression:
        report.add(PATH_EXPR, path.child("subPathExpr"), expression)


def _validate_mode(mount: Object, container: Object, path: Path, report: Report) -> None:
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        at = path.child("mountPropagation")
        if propagation not in PROPAGATIONS:
            report.unsupported(PROPAGATION, at, propagation, PROPAGATIONS)
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            report.add(PRIVILEGED, at)
    recursive = mount.get("recursiveReadOnly")
    if recursive is None:
        return
    at = path.child("recursiveReadOnly")
    if recursive not in READ_ONLY:
        report.unsupported(PROPAGATION, at, recursive, READ_ONLY)
    elif recursive != "Disabled":
        if not mount.get("readOnly"):
            report.add(RECURSIVE, at)
        if propagation not in {None, "None"}:
            report.add(RECURSIVE_PROPAGATION, at)


def validate_devices(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check the volumes that one container has as raw devices."""
    path = path.child("volumeDevices")
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        at = path.index(index)
        name, where = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            report.add(MISSING, at.child("name"))
        elif name in names:
            report.add(PATH_TWICE, at.child("name"), name)
        elif name not in pod.volumes:
            report.missing(UNKNOWN, at.child("name"), name, pod.volumes)
        elif not {"persistentVolumeClaim", "ephemeral"} & pod.volumes[name].keys():
            report.add(NOT_A_CLAIM, at.child("name"), name)
        names.add(name)
        if not where:
            report.add(MISSING, at.child("devicePath"))
        elif where in paths:
            report.add(PATH_TWICE, at.child("devicePath"), where)
        elif ".." in where.split("/"):
            report.add(BACKSTEPS, at.child("devicePath"), where)
        paths.add(where)
