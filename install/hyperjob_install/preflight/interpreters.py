"""Checks of HyperJob's ResourceInterpreterCustomizations, and of conflicting ones. Pure."""

from typing import Final

from hyperjob_core.kube.resources import VCJOBS
from hyperjob_install.interpreters import (
    SCRIPTS,
    VOLCANO_GLOBAL,
    clashes,
    interpreters,
    operations,
    targets,
)
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named, need

# Karmada's own scripts return the whole status; scripts of others may return a part of it.
_BETTER_LEFT: Final = ("healthInterpretation", "statusAggregation", "statusReflection")


def customizations(observed: ObservedPlane) -> CheckResult:
    """Check that this release's customizations are installed."""
    if found := clashes(need(observed.interpreters)):
        names = list(dict.fromkeys(each.name for each in found))
        delete = f"kubectl delete resourceinterpretercustomization {' '.join(names)}"
        what = "; ".join(f"{each.name} defines {', '.join(each.operations)}" for each in found)
        return failed(
            f"other customizations conflict with HyperJob's: {what}",
            remedy=observed.install() if VOLCANO_GLOBAL.issuperset(names) else delete,
        )
    missing = [name for name in SCRIPTS if named(observed.interpreters, name) is None]
    if missing:
        return failed(
            f"customizations are missing: {', '.join(missing)}", remedy=observed.install()
        )
    for item in interpreters():
        live = named(observed.interpreters, item.name) or {}
        if live.get("spec") != item.object["spec"]:
            return warning(
                f"customization {item.name} is not this release's", remedy=observed.install()
            )
    return ok(f"customizations are this release's: {', '.join(SCRIPTS)}")


def others(observed: ObservedPlane) -> CheckResult:
    """Check for harmful customizations of others for vcjobs."""
    for each in need(observed.interpreters):
        name = each["metadata"]["name"]
        if name in SCRIPTS or not targets(each, VCJOBS):
            continue
        defined = operations(each)
        delete = f"kubectl delete resourceinterpretercustomization {name}"
        if "replicaRevision" in defined:
            return warning(
                f"customization {name} defines replicaRevision for vcjobs: with the gate"
                " MultiplePodTemplatesScheduling members get jobs without pods",
                remedy=delete,
            )
        if hidden := [operation for operation in _BETTER_LEFT if operation in defined]:
            return warning(
                f"customization {name} replaces Karmada's {', '.join(hidden)} for vcjobs: part of"
                " their status may be missing",
                remedy=delete,
            )
    return ok("no other customization changes the status that Karmada collects from vcjobs")
