"""The volumes that a vcjob mounts into all of its pods."""

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.claims import validate_claim_spec
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.rules import DUPLICATE, FORBIDDEN, REQUIRED, Report, rule

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
