"""The spec of a pod: its parts, and the fields that stand alone.

Each part has a file of its own; here is what belongs to none of them.
"""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.field import Path
from hyperjob.api.meta import Object
from webhook.validation.forms import check, validate_labels
from webhook.validation.podtemplate.affinity import validate_affinity
from webhook.validation.podtemplate.containers import (
    validate_containers,
    validate_init_containers,
)
from webhook.validation.podtemplate.dns import validate_dns, validate_host_aliases
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.resources import validate_overhead, validate_pod_resources
from webhook.validation.podtemplate.scheduling import (
    validate_gates,
    validate_tolerations,
    validate_topology_spread,
)
from webhook.validation.podtemplate.security import validate_pod_security
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
    if spec.get("volumes"):
        validate_volumes(spec["volumes"], path.child("volumes"), report)
    if spec.get("resourceClaims"):
        _validate_claims(spec["resourceClaims"], path.child("resourceClaims"), report)
    validate_containers(spec.get("containers") or [], pod, path.child("containers"), report)
    if spec.get("initContainers"):
        validate_init_containers(spec["initContainers"], pod, path.child("initContainers"), report)
    if spec.get("ephemeralContainers"):
        report.add(EPHEMERAL, path.child("ephemeralContainers"))
    if spec.get("resources"):
        validate_pod_resources(spec, pod, path.child("resources"), report)
    _validate_choices(spec, path, report)
    if spec.get("nodeSelector"):
        validate_labels(spec["nodeSelector"], path.child("nodeSelector"), report)
    validate_pod_security(spec, path, report)
    if spec.get("affinity"):
        validate_affinity(spec["affinity"], path.child("affinity"), report)
    validate_dns(spec, path, report)
    validate_gates(spec, path, report)
    if spec.get("topologySpreadConstraints"):
        validate_topology_spread(
            spec["topologySpreadConstraints"], path.child("topologySpreadConstraints"), report
        )
    _validate_host_users(spec, path, report)
    _validate_names(spec, path, report)
    if spec.get("tolerations"):
        validate_tolerations(spec["tolerations"], path.child("tolerations"), report)
    if spec.get("hostAliases"):
        validate_host_aliases(spec["hostAliases"], path.child("hostAliases"), report)
    if spec.get("overhead"):
        validate_overhead(spec["overhead"], path.child("overhead"), report)


def _validate_choices(spec: Object, path: Path, report: Report) -> None:
    """Check the fields that have a closed set of values, and the numbers of seconds."""
    for name, known in (
        ("restartPolicy", RESTART_POLICIES),
        ("preemptionPolicy", PREEMPTION_POLICIES),
    ):
        value = spec.get(name)
        if value and value not in known:
            report.errors.append(ENUM.unsupported(path.child(name), value, known))
    system = spec.get("os")
    if system is not None:
        name = system.get("name")
        if not name:
            report.add(SYSTEM_MISSING, path.child("os", "name"))
        elif name not in SYSTEMS:
            report.errors.append(ENUM.unsupported(path.child("os"), name, SYSTEMS))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_DEADLINE:
        report.add(DEADLINE, path.child("activeDeadlineSeconds"), deadline)


def _validate_names(spec: Object, path: Path, report: Report) -> None:
    """Check the names of other objects, and of the host in the network."""
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value:
            check(formats.dns1123_subdomain, value, path.child(name), report)
    for name in ("hostname", "subdomain"):
        value = spec.get(name)
        if value:
            check(formats.dns1123_label, value, path.child(name), report)


def _validate_host_users(spec: Object, path: Path, report: Report) -> None:
    if spec.get("hostUsers") is not False:
        return
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            report.add(HOST_USERS, path.child(name))


def _validate_claims(claims: list[Object], path: Path, report: Report) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at = path.index(index)
        name = claim.get("name") or ""
        if not name:
            report.add(CLAIM_NAME_MISSING, at.child("name"))
        elif name in seen:
            report.add(CLAIM_TWICE, at.child("name"), name)
        else:
            check(formats.dns1123_label, name, at.child("name"), report)
        seen.add(name)
        ways = [way for way in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(way)]
        if not ways:
            report.add(CLAIM_ONE, at, claim)
        elif len(ways) > 1:
            report.add(CLAIM_BOTH, at, claim)
        for way in ways:
            check(formats.dns1123_subdomain, claim[way], at.child(way), report)
