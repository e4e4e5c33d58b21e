"""Check of who may name which queue, PriorityClass and cluster. Pure."""

from hyperjob.install.preflight.finding import CheckResult, ok, warning
from hyperjob.install.preflight.observed import Observed, named
from hyperjob.install.tenancy import POLICIES


def tenancy(observed: Observed) -> CheckResult:
    """Say whether users need the verb `use`; half of the policies are a warning."""
    missing = [name for name in POLICIES if named(observed.tenancy, name) is None]
    if not missing:
        return ok("tenancy is on: users need the verb use on queues, PriorityClasses and clusters")
    if len(missing) == len(POLICIES):
        return ok("tenancy is off: each user may name every queue, PriorityClass and cluster")
    return warning(
        f"tenancy is on in part: there is no ValidatingAdmissionPolicyBinding {', '.join(missing)}",
        remedy="hyperjob install --tenancy",
    )
