"""Check of the account that reads how far trainings are. Pure."""

from controller.model.wire import at
from hyperjob.install.preflight.finding import CheckResult, ok, warning
from hyperjob.install.preflight.observed import Observed, named, need
from hyperjob.install.progress import ACCOUNT
from hyperjob.text import listed


def progress(observed: Observed) -> CheckResult:
    """Say whether there is the account, and name clusters that Karmada cannot read for it."""
    if named(observed.policies, ACCOUNT) is None:
        return ok("there is no account that reads how far trainings are: --progress needs it")
    closed = sorted(
        cluster["metadata"]["name"]
        for cluster in need(observed.clusters)
        if not at(cluster, "spec", "impersonatorSecretRef")
    )
    if closed:
        return warning(
            "clusters have no impersonatorSecretRef, so Karmada's proxy reads no logs there:"
            f" {listed(closed)}",
            remedy="join them again with karmadactl, which makes the Secret",
        )
    return ok(f"{ACCOUNT} may read logs in every cluster, through Karmada's proxy")
