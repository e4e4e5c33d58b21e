"""The table of volume mounts."""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    code,
    descending,
    enum,
    has_backsteps,
    held,
    one_known,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report, Rule

UNKNOWN: Final = row("V8.VolumeMount.name.unknown")
PATH_EXPR: Final = row("V8.VolumeMount.subPathExpr.exclusive")
OF_IMAGE: Final = row("V8.VolumeMount.subPath.image")
PRIVILEGED: Final = row("V8.VolumeMount.mountPropagation.privileged")
RECURSIVE: Final = row("V8.VolumeMount.recursiveReadOnly.read-only")
RECURSIVE_PROPAGATION: Final = row("V8.VolumeMount.recursiveReadOnly.propagation")
ALSO_DEVICE: Final = row("V8.VolumeMount.name.device")
ALSO_DEVICE_PATH: Final = row("V8.VolumeMount.mountPath.device")
ALSO_MOUNT: Final = row("V8.VolumeDevice.name.mount")
ALSO_MOUNT_PATH: Final = row("V8.VolumeDevice.devicePath.mount")
NOT_A_CLAIM: Final = row("V8.VolumeDevice.name.claim")
BACKSTEPS: Final = row("V8.VolumeDevice.devicePath.backsteps")
_READ_ONLY: Final = ("Enabled", "IfPossible")


def _device(name: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
    volume = pod.volumes.get(name)
    if volume is not None and not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
        report.add(NOT_A_CLAIM, path.child("name"), name)


def mount_rules(mount: Object, container: Object, path: Path, pod: Pod, report: Report) -> None:
    """Compare a mount with its volume, its container, and its other fields."""
    part, expression = mount.get("subPath"), mount.get("subPathExpr")
    if (part or expression) and pod.volumes.get(mount.get("name") or "", {}).get("image"):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                report.add(OF_IMAGE, path.child(field), mount[field])
    if part and expression:
        report.add(PATH_EXPR, path.child("subPathExpr"), expression)
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        report.add(PRIVILEGED, path.child("mountPropagation"))
    if recursive in _READ_ONLY:
        at = path.child("recursiveReadOnly")
        if not mount.get("readOnly"):
            report.add(RECURSIVE, at)
        if propagation not in {None, "None"}:
            report.add(RECURSIVE_PROPAGATION, at)


def clashes(mounts: list[Object], container: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that no volume mount of a container has the name or the path of a volume device."""
    devices = container.get("volumeDevices")
    if devices:
        at = path.child("volumeMounts")
        _clash(
            mounts, "mountPath", devices, "devicePath", (ALSO_DEVICE, ALSO_DEVICE_PATH), at, report
        )
        at = path.child("volumeDevices")
        _clash(
            devices, "devicePath", mounts, "mountPath", (ALSO_MOUNT, ALSO_MOUNT_PATH), at, report
        )


def _clash(
    listed: list[Object],
    where: str,
    others: list[Object],
    elsewhere: str,
    rules: tuple[Rule, Rule],
    path: Path,
    report: Report,
) -> None:
    """Report items of `listed` with a name, or a path at `where`, that one of `others` has."""
    names = {other.get("name") for other in others} - {None, ""}
    paths = {other.get(elsewhere) for other in others} - {None, ""}
    for index, one in enumerate(listed):
        for field, taken, rule_ in (("name", names, rules[0]), (where, paths, rules[1])):
            if one.get(field) in taken:
                report.add(rule_, path.index(index).child(field), one[field])


KNOWN: Final = one_known(UNKNOWN, lambda pod: pod.volumes)
VOLUME_MOUNT: Final = Type(
    "VolumeMount",
    "a mount",
    required("name", KNOWN),
    required("mountPath"),
    optional("subPath", descending),
    optional("subPathExpr", descending),
    pointer("mountPropagation", enum("Bidirectional", "HostToContainer", "None")),
    pointer("recursiveReadOnly", enum("Disabled", "Enabled", "IfPossible")),
)
VOLUME_DEVICE: Final = Type(
    "VolumeDevice",
    "a device",
    required("name", KNOWN, code(_device)),
    required("devicePath", held((BACKSTEPS, has_backsteps))),
)
