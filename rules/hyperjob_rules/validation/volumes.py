"""Validation of PersistentVolumeClaims, and of the volumes that a vcjob mounts into its pods."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check, parse_amount
from hyperjob_rules.validation.rules import Report, rule

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")

NO_ACCESS_MODE: Final = rule("V15.no-access-mode")
ENUM: Final = rule("V15.enum")
ONCE_POD: Final = rule("V15.once-pod")
NO_SIZE: Final = rule("V15.no-size")
SIZE: Final = rule("V15.size")
AMOUNT: Final = rule("V15.amount")


def validate_claim_spec(spec: Object, path: Path, report: Report) -> None:
    """Validate the spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or []
    if not modes:
        report.add(NO_ACCESS_MODE, path.child("accessModes"))
    for mode in modes:
        if mode not in ACCESS_MODES:
            at = path.child("accessModes")
            report.unsupported(ENUM, at, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        report.add(ONCE_POD, path.child("accessModes"))
    at = path.child("resources")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        report.add(NO_SIZE, at.key("storage"))
    else:
        _validate_size(size, at.key("storage"), report)
    if spec.get("storageClassName"):
        at = path.child("storageClassName")
        check(formats.dns1123_subdomain, spec["storageClassName"], at, report)
    mode = spec.get("volumeMode")
    if mode and mode not in VOLUME_MODES:
        report.unsupported(ENUM, path.child("volumeMode"), mode, VOLUME_MODES)


def _validate_size(size: str | int, path: Path, report: Report) -> None:
    try:
        amount = parse_amount(size)
    except ValueError as error:
        report.add(AMOUNT, path, size, message=error)
        return
    if amount.nano <= 0:
        report.add(SIZE, path, str(amount))


PATH_TWICE: Final = rule("V15.path-twice")
NO_CLAIM: Final = rule("V15.no-claim")
BOTH_CLAIMS: Final = rule("V15.both-claims")
OF_ONE_RUN: Final = rule("V15.of-one-run")


def validate_volumes(volumes: list[Object], path: Path, report: Report) -> None:
    """Validate the volumes of one vcjob template."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        at = path.index(index)
        where = volume.get("mountPath") or ""
        if where in seen:
            report.add(PATH_TWICE, at.child("mountPath"), where)
        seen.add(where)
        claim, name = volume.get("volumeClaim"), volume.get("volumeClaimName")
        if claim is None and not name:
            report.add(NO_CLAIM, at)
        if claim is not None and name:
            report.add(BOTH_CLAIMS, at.child("volumeClaimName"))
        if name:
            check(formats.dns1123_subdomain, name, at, report, "volumeClaimName")
        if claim is not None:
            validate_claim_spec(claim, at.child("volumeClaim"), report)
            report.warn(OF_ONE_RUN, at.child("volumeClaim"))
