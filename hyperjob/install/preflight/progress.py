"""Check of the account that reads the progress of trainings. Pure."""

from hyperjob.install.preflight.finding import CheckResult, ok, warning
from hyperjob.install.preflight.observed import ObservedPlane, named, need
from hyperjob.install.progress import ACCOUNT
from hyperjob_core.api.wire import at
from hyperjob_core.text import listed


def progress(observed: ObservedPlane) -> CheckResult:
    """Check that the account exists, and that Karmada's proxy can impersonate it in the members."""
    if named(observed.policies, ACCOUNT) is None:
        return ok("the account that reads training progress does not exist: --progress needs it")
    closed = sorted(
        cluster["metadata"]["name"]
        for cluster in need(observed.clusters)
        if not at(cluster, "spec", "impersonatorSecretRef")
    )
    if closed:
        return warning(
            "Karmada's proxy cannot read logs in clusters without impersonatorSecretRef:"
            f" {listed(closed)}",
            remedy="join them again with karmadactl, which creates the Secret",
        )
    return ok(f"{ACCOUNT} may read logs in every cluster, through Karmada's proxy")
