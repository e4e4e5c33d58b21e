"""Validation of PersistentVolumeClaims, and of the volumes that a vcjob mounts into its pods."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check, parse_amount
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    WARNING,
    Report,
    rule,
)

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")

NO_ACCESS_MODE = rule(
    "V15.no-access-mode",
    REQUIRED,
    "at least 1 access mode is required",
    "a claim has no access mode",
    "add accessModes, such as [ReadWriteMany]",
)
ENUM = rule(
    "V15.enum",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a claim has a mode that Kubernetes does not know",
    "use one of the values listed",
)
ONCE_POD = rule(
    "V15.once-pod",
    FORBIDDEN,
    "may not use ReadWriteOncePod with other access modes",
    "a claim is for one pod and for several",
    "keep one of the access modes",
)
NO_SIZE = rule(
    "V15.no-size",
    REQUIRED,
    "",
    "a claim has no storage request",
    "add resources.requests.storage",
)
SIZE = rule(
    "V15.size",
    INVALID,
    "must be greater than zero",
    "the storage request of a claim is 0",
    "request more than 0",
)
AMOUNT = rule(
    "V15.amount",
    INVALID,
    "{message}",
    "the size of a claim is no amount",
    "write it as 500Mi or 10Gi",
)


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


PATH_TWICE = rule(
    "V15.path-twice",
    DUPLICATE,
    "",
    "two volumes of the template are mounted at the same place",
    "mount one of them elsewhere",
)
NO_CLAIM = rule(
    "V15.no-claim",
    REQUIRED,
    "one of `volumeClaim` or `volumeClaimName` must be set",
    "a volume of the template has no claim",
    "set volumeClaimName, or volumeClaim for a new claim",
)
BOTH_CLAIMS = rule(
    "V15.both-claims",
    FORBIDDEN,
    "may not be set together with `volumeClaim`",
    "a volume of the template names a claim and describes another",
    "keep one of the two",
)
OF_ONE_RUN = rule(
    "V15.of-one-run",
    WARNING,
    "is deleted with its data at the end of each run: Volcano creates the claim for one run of one"
    " sub-job",
    "a volume of the template describes a claim, which ends with a suspension, a restart or a move",
    "create a PersistentVolumeClaim and set volumeClaimName, unless the data is scratch",
)


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
