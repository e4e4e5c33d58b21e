"""How far apart in the network the pods of a vcjob, or of one partition, may be."""

from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, NOT_SUPPORTED, WARNING, rule

MODES: Final = ("hard", "soft")

TIERS = rule(
    "V3",
    FORBIDDEN,
    "may not be set together with `highestTierAllowed`",
    "the farthest network tier is given by number and by name",
    "keep one of the two",
)
MODE = rule(
    "V3",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the mode of networkTopology is not one that Volcano knows",
    "use hard or soft",
)
TIER_NEGATIVE = rule(
    "V3",
    INVALID,
    "must be greater than or equal to 0",
    "a network tier is negative",
    "use 0 or more",
)
VERSION = rule(
    "X13",
    WARNING,
    "needs Volcano {version} in the member clusters; older ones drop the field silently",
    "a field of the template is unknown to older versions of Volcano",
    "make sure that all member clusters have that version",
)


def validate_topology(topology: Object, path: Path, report: Report) -> None:
    """Check how far apart in the network pods may be."""
    mode = topology.get("mode")
    if mode and mode not in MODES:
        report.unsupported(MODE, path.child("mode"), mode, MODES)
    tier, name = topology.get("highestTierAllowed"), topology.get("highestTierName")
    if tier is not None and tier < 0:
        report.add(TIER_NEGATIVE, path.child("highestTierAllowed"), tier)
    if tier is not None and name:
        report.add(TIERS, path.child("highestTierName"))
    if name:
        report.warn(VERSION, path.child("highestTierName"), version="1.14")
    else:
        report.warn(VERSION, path, version="1.11")
