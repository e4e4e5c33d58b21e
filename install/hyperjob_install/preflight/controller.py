"""Checks of the controller: its leader, release and mode by its Lease, and its rights. Pure."""

from dataclasses import replace
from typing import Final

from hyperjob_core import __version__
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import human_duration, listed
from hyperjob_install.preflight.finding import (
    ONE_RELEASE,
    CheckResult,
    failed,
    go_together,
    ok,
    warning,
)
from hyperjob_install.preflight.observed import ObservedPlane, need
from hyperjob_install.preflight.volcano import has_volcano_global
from hyperjob_install.settings import PREFIX, account_user

_PROCESS: Final = "controller"
_START: Final = (
    "check in the host cluster that the Deployment hyperjob-controller runs, and read its log"
)


def leads(observed: ObservedPlane) -> CheckResult:
    """Check that a controller leads, and that its release is compatible with this release."""
    leader = _leader(observed)
    where = f"{LEASE_NAMESPACE}/{LEASE_NAME}"
    if leader is None:
        return failed(f"no controller leads: there is no Lease {where}", remedy=_START)
    if not leader.leads:
        ago = "at an unknown time"
        if leader.renewed is not None:
            ago = f"{human_duration((observed.now - leader.renewed).total_seconds())} ago"
        return failed(
            f"no controller leads: Lease {where} was renewed {ago}, by {leader.holder or 'none'}",
            remedy=_START,
        )
    version = leader.version or "unknown"
    if not go_together(leader.version, __version__):
        return warning(
            f"{leader.holder} leads: its release is {version}, and this is {__version__}",
            remedy=ONE_RELEASE,
        )
    return ok(f"{leader.holder} leads, release {version}")


def queue_admission(observed: ObservedPlane) -> CheckResult:
    """Check that the controller's queue admission fits the installed components."""
    leader = _leader(observed)
    if leader is None or not leader.leads or not leader.admission:
        return ok("the queue admission is unknown until a controller leads")
    mode, there = leader.admission, has_volcano_global(observed)
    if there and mode == "builtin":
        return warning(
            "queue admission is builtin, and Volcano Global is installed: its quotas have no"
            " effect",
            remedy="run the controller with --queue-admission auto",
        )
    if mode == "volcano-global" and not there:
        return failed(
            "queue admission is volcano-global, and Volcano Global is not installed: no HyperJob"
            " starts",
            remedy="run the controller with --queue-admission auto",
        )
    return ok(f"queue admission is {mode}")


def rights(observed: ObservedPlane) -> CheckResult:
    """Check that the controller's user may do the controller's work."""
    found = observed.rights
    if found is None:
        return ok("the controller's user is unknown until HyperJob is installed")
    if isinstance(found, KubeError):
        return ok(f"the controller's rights cannot be reviewed: {found.message}")
    if not found.refused:
        return ok(f"the controller's user {found.user} may do its work")
    return failed(
        f"the controller's user {found.user} may not {listed(found.refused)}",
        remedy=_installation_of(observed, found.user),
    )


def _installation_of(observed: ObservedPlane, user: str) -> str:
    """Return the installation whose controller is this user."""
    settings = observed.settings
    if user == account_user(LEASE_NAMESPACE, f"{PREFIX}{_PROCESS}"):
        return observed.install(settings=replace(settings, service_accounts=True))
    if user == settings.user(_PROCESS):
        return observed.install()
    if user.endswith(_PROCESS):
        prefix = user.removesuffix(_PROCESS)
        changed = replace(settings, service_accounts=False, user_prefix=prefix)
        return observed.install(settings=changed)
    return f"run the controller as {settings.user(_PROCESS)}, whose rights the installation has"


def _leader(observed: ObservedPlane) -> Leader | None:
    found = need(observed.leases)
    return leader_of(found[0], now=observed.now) if found else None
