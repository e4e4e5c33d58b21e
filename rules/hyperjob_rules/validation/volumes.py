"""Validation of PersistentVolumeClaims, and of the volumes that a vcjob mounts into its pods."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check, parse_amount
from hyperjob_rules.validation.rules import Report

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def validate_claim_spec(spec: Object, path: Path, report: Report) -> None:
    """Validate the spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or []
    if not modes:
        report.add("V15.no-access-mode", path.child("accessModes"))
    for mode in modes:
        if mode not in ACCESS_MODES:
            at = path.child("accessModes")
            report.unsupported("V15.enum", at, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        report.add("V15.once-pod", path.child("accessModes"))
    at = path.child("resources")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        report.add("V15.no-size", at.key("storage"))
    else:
        _validate_size(size, at.key("storage"), report)
    if spec.get("storageClassName"):
        at = path.child("storageClassName")
        check(formats.dns1123_subdomain, spec["storageClassName"], at, report)
    mode = spec.get("volumeMode")
    if mode and mode not in VOLUME_MODES:
        report.unsupported("V15.enum", path.child("volumeMode"), mode, VOLUME_MODES)


def _validate_size(size: str | int, path: Path, report: Report) -> None:
    try:
        amount = parse_amount(size)
    except ValueError as error:
        report.add("V15.amount", path, size, message=error)
        return
    if amount.nano <= 0:
        report.add("V15.size", path, str(amount))


def validate_volumes(volumes: list[Object], path: Path, report: Report) -> None:
    """Validate the volumes of one vcjob template."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        at = path.index(index)
        where = volume.get("mountPath") or ""
        if where in seen:
            report.add("V15.path-twice", at.child("mountPath"), where)
        seen.add(where)
        claim, name = volume.get("volumeClaim"), volume.get("volumeClaimName")
        if claim is None and not name:
            report.add("V15.no-claim", at)
        if claim is not None and name:
            report.add("V15.both-claims", at.child("volumeClaimName"))
        if name:
            check(formats.dns1123_subdomain, name, at, report, "volumeClaimName")
        if claim is not None:
            validate_claim_spec(claim, at.child("volumeClaim"), report)
            report.warn("V15.of-one-run", at.child("volumeClaim"))
