"""The spec of a pod: its parts, and the fields that stand alone.

Each part has a file of its own; here is what belongs to none of them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import Check, check, validate_labels
from webhook.validation.place import Path
from webhook.validation.podtemplate.affinity import validate_affinity
from webhook.validation.podtemplate.containers import (
    validate_containers,
    validate_init_containers,
)
from webhook.validation.podtemplate.dns import (
    validate_dns_config,
    validate_dns_policy,
    validate_host_aliases,
)
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.resources import validate_overhead, validate_pod_resources
from webhook.validation.podtemplate.scheduling import (
    validate_readiness_gates,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread,
)
from webhook.validation.podtemplate.security import (
    validate_pod_security,
    validate_shared_processes,
)
from webhook.validation.podtemplate.volumes import validate_volumes
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    rule,
)

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
SYSTEMS: Final = ("linux", "windows")
MAX_DEADLINE: Final = 2**31 - 1

Validate = Callable[[Object, Path, Report], None]

ENUM = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a field of the pod template has a value that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
EPHEMERAL = rule(
    "V8",
    FORBIDDEN,
    "ephemeral containers not allowed in pod template",
    "a pod template has containers that can only be added to a running pod",
    "remove ephemeralContainers",
)
CLAIM_NAME_MISSING = rule("V8", REQUIRED, "", "a resource claim has no name", "give it a name")
CLAIM_TWICE = rule(
    "V8",
    DUPLICATE,
    "",
    "two resource claims of a pod have the same name",
    "rename one of them",
)
CLAIM_ONE = rule(
    "V8",
    INVALID,
    "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
    "a resource claim says neither which claim nor which template it means",
    "set one of the two",
)
CLAIM_BOTH = rule(
    "V8",
    INVALID,
    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    "a resource claim names both a claim and a template",
    "keep one of the two",
)
DEADLINE = rule(
    "V8",
    INVALID,
    f"must be between 1 and {MAX_DEADLINE}, inclusive",
    "the deadline of a pod is not positive, or too far away",
    "use a number of seconds in that range, or leave it out",
)
HOST_USERS = rule(
    "V8",
    FORBIDDEN,
    "when `pod.Spec.HostUsers` is false",
    "a pod with its own user namespace shares a namespace of the host",
    "remove hostUsers, or the host namespace",
)
SYSTEM_MISSING = rule(
    "V8", REQUIRED, "cannot be empty", "the pod's `os` has no name", "use linux or windows"
)


def validate_pod_spec(spec: Object, path: Path, report: Report) -> None:
    """Check everything in the spec of a pod template."""
    pod = Pod.of(spec)
    validate_containers(spec.get("containers") or [], pod, path.child("containers"), report)
    if spec.get("initContainers"):
        validate_init_containers(spec["initContainers"], pod, path.child("initContainers"), report)
    for field, value in spec.items():
        validate = FIELDS.get(field)
        if validate is not None and value is not None:
            validate(spec, path, report)


def _choice(field: str, known: tuple[str, ...]) -> Validate:
    """Return the check of a field that has a closed set of values."""

    def validate(spec: Object, path: Path, report: Report) -> None:
        value = spec[field]
        if value and value not in known:
            report.unsupported(ENUM, path.child(field), value, known)

    return validate


def _form(field: str, form: Check) -> Validate:
    """Return the check of a field that is a name."""

    def validate(spec: Object, path: Path, report: Report) -> None:
        if spec[field]:
            check(form, spec[field], path, report, field)

    return validate


def _validate_system(spec: Object, path: Path, report: Report) -> None:
    name = spec["os"].get("name")
    if not name:
        report.add(SYSTEM_MISSING, path.child("os", "name"))
    elif name not in SYSTEMS:
        report.unsupported(ENUM, path.child("os"), name, SYSTEMS)


def _validate_deadline(spec: Object, path: Path, report: Report) -> None:
    deadline = spec["activeDeadlineSeconds"]
    if not 1 <= deadline <= MAX_DEADLINE:
        report.add(DEADLINE, path.child("activeDeadlineSeconds"), deadline)


def _validate_host_users(spec: Object, path: Path, report: Report) -> None:
    if spec["hostUsers"]:
        return
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            report.add(HOST_USERS, path.child(name))


def _validate_node_selector(spec: Object, path: Path, report: Report) -> None:
    validate_labels(spec["nodeSelector"], path.child("nodeSelector"), report)


def _refuse_ephemeral(spec: Object, path: Path, report: Report) -> None:
    if spec["ephemeralContainers"]:
        report.add(EPHEMERAL, path.child("ephemeralContainers"))


def _validate_claims(spec: Object, path: Path, report: Report) -> None:
    seen: set[str] = set()
    path = path.child("resourceClaims")
    for index, claim in enumerate(spec["resourceClaims"]):
        at = path.index(index)
        name = claim.get("name") or ""
        if not name:
            report.add(CLAIM_NAME_MISSING, at.child("name"))
        elif name in seen:
            report.add(CLAIM_TWICE, at.child("name"), name)
        else:
            check(formats.dns1123_label, name, at, report, "name")
        seen.add(name)
        ways = [way for way in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(way)]
        if not ways:
            report.add(CLAIM_ONE, at, claim)
        elif len(ways) > 1:
            report.add(CLAIM_BOTH, at, claim)
        for way in ways:
            check(formats.dns1123_subdomain, claim[way], at, report, way)


FIELDS: Final[Mapping[str, Validate]] = {
    "activeDeadlineSeconds": _validate_deadline,
    "affinity": validate_affinity,
    "dnsConfig": validate_dns_config,
    "dnsPolicy": validate_dns_policy,
    "ephemeralContainers": _refuse_ephemeral,
    "hostAliases": validate_host_aliases,
    "hostUsers": _validate_host_users,
    "hostname": _form("hostname", formats.dns1123_label),
    "nodeName": _form("nodeName", formats.dns1123_subdomain),
    "nodeSelector": _validate_node_selector,
    "os": _validate_system,
    "overhead": validate_overhead,
    "preemptionPolicy": _choice("preemptionPolicy", PREEMPTION_POLICIES),
    "priorityClassName": _form("priorityClassName", formats.dns1123_subdomain),
    "readinessGates": validate_readiness_gates,
    "resourceClaims": _validate_claims,
    "resources": validate_pod_resources,
    "restartPolicy": _choice("restartPolicy", RESTART_POLICIES),
    "runtimeClassName": _form("runtimeClassName", formats.dns1123_subdomain),
    "schedulingGates": validate_scheduling_gates,
    "securityContext": validate_pod_security,
    "serviceAccountName": _form("serviceAccountName", formats.dns1123_subdomain),
    "shareProcessNamespace": validate_shared_processes,
    "subdomain": _form("subdomain", formats.dns1123_label),
    "tolerations": validate_tolerations,
    "topologySpreadConstraints": validate_topology_spread,
    "volumes": validate_volumes,
}
"""The checks of the fields of a pod's spec; each finds its field set."""
