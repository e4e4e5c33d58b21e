"""Validation of the partitions of a task: groups of pods of equal size."""

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import INVALID, WARNING, Report, rule
from hyperjob_rules.validation.topology import validate_topology

REPLICAS = rule(
    "V10.replicas",
    INVALID,
    "must be totalPartitions * partitionSize ({product}) when `partitionPolicy` is set",
    "the pods of a task do not fill its partitions",
    "make replicas the product of the two",
)
TOO_MANY = rule(
    "V10.too-many",
    INVALID,
    "must be less than or equal to `totalPartitions` ({total})",
    "more partitions must start together than there are",
    "lower minPartitions",
)
MIN_AVAILABLE = rule(
    "V10.min-available",
    INVALID,
    "must be minPartitions * partitionSize ({product}) when `minPartitions` is set",
    "the pods that must start together are no whole number of partitions",
    "make minAvailable the product of the two, or leave it out",
)
VERSION = rule(
    "X13.partitions-version",
    WARNING,
    "needs Volcano 1.14 in the member clusters; older ones drop the field silently",
    "partitions are unknown to older versions of Volcano",
    "make sure that all member clusters have that version",
)


def validate_partitions(task: Object, path: Path, report: Report) -> None:
    """Check the partitions of a task against its size."""
    policy, at = task["partitionPolicy"], path.child("partitionPolicy")
    total, size = policy.get("totalPartitions") or 0, policy.get("partitionSize") or 0
    least = policy.get("minPartitions") or 0
    replicas, available = task.get("replicas") or 0, task.get("minAvailable")
    if total > 0 and size > 0:
        if replicas != total * size:
            report.add(REPLICAS, path.child("replicas"), replicas, product=total * size)
        if least > total:
            report.add(TOO_MANY, at.child("minPartitions"), least, total=total)
        elif least > 0 and available is not None and available != least * size:
            at_available = path.child("minAvailable")
            report.add(MIN_AVAILABLE, at_available, available, product=least * size)
    report.warn(VERSION, at)
    if policy.get("networkTopology"):
        validate_topology(policy["networkTopology"], at.child("networkTopology"), report)
