"""Checks of the installation: Karmada, interpreters, tenancy, TrainJobs, the controller. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hyperjob_core import __version__
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.api.trainer import RUNS_AS, TRAINER_CONTROLLER
from hyperjob_core.api.wire import at, objects
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import (
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    TRAINJOBS,
    VCJOBS,
    Resource,
)
from hyperjob_core.text import human_duration, listed
from hyperjob_install.definitions import schema_of
from hyperjob_install.interpreters import (
    SCRIPTS,
    VOLCANO_GLOBAL,
    clashes,
    interpreters,
    operations,
    targets,
)
from hyperjob_install.preflight.finding import (
    ONE_RELEASE,
    CheckResult,
    are_compatible,
    failed,
    ok,
    warning,
)
from hyperjob_install.preflight.observed import ObservedPlane, named, need, sees
from hyperjob_install.preflight.volcano import has_volcano_global
from hyperjob_install.settings import PREFIX, TENANCY, account_user
from hyperjob_install.settings import TRAINJOBS as TRAINJOB_PART
from hyperjob_install.tenancy import POLICIES
from hyperjob_rules.configuration import VALIDATING_NAME

GROUPS: Final = ("cluster.karmada.io", "config.karmada.io", "policy.karmada.io", "work.karmada.io")

_ITEM: Final = "[]"
# Karmada's API server has no version of Karmada; these fields of its CRDs show it, newest first.
_MARKS: Final[tuple[tuple[tuple[int, int], Resource, tuple[str, ...]], ...]] = (
    ((1, 19), RESOURCE_BINDINGS, ("spec", "clusters", _ITEM, "components")),
    (
        (1, 18),
        PROPAGATION_POLICIES,
        ("spec", "placement", "clusterAffinities", _ITEM, "overflowAffinities"),
    ),
    ((1, 17), PROPAGATION_POLICIES, ("spec", "placement", "workloadAffinity")),
    ((1, 15), RESOURCE_BINDINGS, ("spec", "components")),
    ((1, 13), RESOURCE_BINDINGS, ("spec", "suspension", "scheduling")),
)
# Karmada 1.13 can suspend scheduling; Karmada 1.16 collects the whole status of vcjobs.
_WHOLE_STATUS: Final = (1, 17)


def karmada(observed: ObservedPlane) -> CheckResult:
    """Check that the API server is Karmada's, of a supported release; name both."""
    missing = [group for group in GROUPS if group not in observed.groups]
    if missing:
        return failed(
            f"this is not a Karmada API server: it does not serve {', '.join(missing)}",
            remedy="give the kubeconfig of the Karmada API server with --kubeconfig",
        )
    release = oldest_release(observed)
    if release is None:
        return failed(
            "Karmada is older than 1.13 and cannot suspend the scheduling of an object",
            remedy="upgrade Karmada to 1.16 or newer",
        )
    text = f"Karmada is {release[0]}.{release[1]} or newer"
    if release < _WHOLE_STATUS:
        return warning(
            f"{text}; before 1.16 Karmada does not collect the status of vcjobs by itself",
            remedy="check that Karmada is 1.16 or newer, or upgrade it",
        )
    return ok(f"{text}; Kubernetes {observed.version} answers at {observed.host}")


def oldest_release(observed: ObservedPlane) -> tuple[int, int] | None:
    """Return the oldest release that serves the found fields; None before 1.13."""
    for release, resource, path in _MARKS:
        definition = named(observed.definitions, resource.group_resource)
        if definition is not None and _knows(schema_of(definition, resource.version), path):
            return release
    return None


def _knows(schema: Mapping[str, object], path: tuple[str, ...]) -> bool:
    found: object = schema
    for name in path:
        found = at(found, "items") if name == _ITEM else at(found, "properties", name)
    return found is not None


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


def tenancy(observed: ObservedPlane) -> CheckResult:
    """Return a finding on tenancy; a warning where some of its policies are missing."""
    known = observed.settings
    missing = [name for name in POLICIES if named(observed.tenancy, name) is None]
    if not missing:
        return ok("tenancy is on: users need the verb use on queues, PriorityClasses and clusters")
    if len(missing) == len(POLICIES):
        return ok("tenancy is off: every user may name all queues, PriorityClasses and clusters")
    return warning(
        f"tenancy is on in part: there is no ValidatingAdmissionPolicyBinding {', '.join(missing)}",
        remedy=observed.install(settings=replace(known, parts=known.parts | {TENANCY})),
    )


_OURS: Final = f"TrainJobs with the label {RUNS_AS} and managedBy {TRAINER_CONTROLLER}"


def trainjobs(observed: ObservedPlane) -> CheckResult:
    """Return a finding on TrainJobs; a warning where Trainer's own controller seems to run too."""
    if named(observed.definitions, TRAINJOBS.group_resource) is None:
        return ok("Kubeflow's TrainJobs are not installed")
    others = [
        str(each["metadata"]["name"])
        for each in [*need(observed.validating), *need(observed.mutating)]
        if each["metadata"]["name"] != VALIDATING_NAME
        and any(sees(hook, TRAINJOBS) for hook in objects(each.get("webhooks")))
    ]
    known = observed.settings
    if TRAINJOB_PART not in known.parts:
        return ok(
            "HyperJob leaves TrainJobs to Kubeflow Trainer; to run them as HyperJobs: "
            + observed.install(settings=replace(known, parts=known.parts | {TRAINJOB_PART}))
        )
    if others:
        return warning(
            f"Kubeflow Trainer is installed beside HyperJob (webhook configuration {others[0]}):"
            f" its controller, if it runs, reconciles {_OURS} a second time",
            remedy="stop the controller of Kubeflow Trainer in the Karmada API server, and delete"
            f" its webhook configurations {', '.join(others)}",
        )
    return ok(f"HyperJob reconciles {_OURS}; TrainJobs of MultiKueue are left alone")


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
    if not are_compatible(leader.version, __version__):
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
    return leader_of(need(observed.leases), now=observed.now)
