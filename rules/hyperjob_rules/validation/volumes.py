"""The volumes that a vcjob mounts into all of its pods."""

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.claims import validate_claim_spec
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    REQUIRED,
    WARNING,
    Report,
    rule,
)

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
