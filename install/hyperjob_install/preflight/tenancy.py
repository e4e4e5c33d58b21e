"""Check of the policies that restrict queues, PriorityClasses and clusters. Pure."""

from dataclasses import replace

from hyperjob_install.preflight.finding import CheckResult, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named
from hyperjob_install.tenancy import POLICIES


def tenancy(observed: ObservedPlane) -> CheckResult:
    """Return a finding on tenancy; a warning where some of its policies are missing."""
    missing = [name for name in POLICIES if named(observed.tenancy, name) is None]
    if not missing:
        return ok("tenancy is on: users need the verb use on queues, PriorityClasses and clusters")
    if len(missing) == len(POLICIES):
        return ok("tenancy is off: every user may name all queues, PriorityClasses and clusters")
    return warning(
        f"tenancy is on in part: there is no ValidatingAdmissionPolicyBinding {', '.join(missing)}",
        remedy=observed.install(settings=replace(observed.settings, tenancy=True)),
    )
