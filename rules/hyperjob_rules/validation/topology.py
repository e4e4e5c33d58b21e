"""Validation of network topology: how far apart the pods of a vcjob or partition may be."""

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import FORBIDDEN, WARNING, Report, rule

TIERS = rule(
    "V3",
    FORBIDDEN,
    "may not be set together with `highestTierAllowed`",
    "the farthest network tier is given by number and by name",
    "keep one of the two",
)
VERSION = rule(
    "X13.topology-version",
    WARNING,
    "needs Volcano {version} in the member clusters; older ones drop the field silently",
    "a field of the template is unknown to older versions of Volcano",
    "make sure that all member clusters have that version",
)


def validate_topology(topology: Object, path: Path, report: Report) -> None:
    """Validate the network topology of a vcjob or of a partition."""
    tier, name = topology.get("highestTierAllowed"), topology.get("highestTierName")
    if tier is not None and name:
        report.add(TIERS, path.child("highestTierName"))
    if name:
        report.warn(VERSION, path.child("highestTierName"), version="1.14")
    else:
        report.warn(VERSION, path, version="1.11")
