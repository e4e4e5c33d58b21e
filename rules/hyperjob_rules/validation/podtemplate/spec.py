"""Validation of pod templates, with the rules and messages of a member cluster's API server.

An absent field counts with the default that the API server sets. The tables here are those of the
spec and of containers.
"""

import ipaddress
import re
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check, validate_annotations, validate_labels
from hyperjob_rules.validation.podtemplate.env import ENV_FROM_SOURCE, ENV_VAR
from hyperjob_rules.validation.podtemplate.objects import (
    Unique,
    each,
    exactly_one,
    items,
    struct,
    struct_of,
)
from hyperjob_rules.validation.podtemplate.probes import (
    CONTAINER_SECURITY,
    POD_SECURITY,
    RUNNING,
    VOLUME_DEVICE,
    VOLUME_MOUNT,
    clashes,
    mount_rules,
    shared_processes,
)
from hyperjob_rules.validation.podtemplate.resources import REQUIREMENTS, overhead, pod_resources
from hyperjob_rules.validation.podtemplate.scheduling import (
    AFFINITY,
    READINESS_GATE,
    SCHEDULING_GATE,
    TOLERATION,
    spreads,
)
from hyperjob_rules.validation.podtemplate.sources import VOLUME
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    always,
    at_holder,
    between,
    code,
    enum,
    form,
    held,
    is_padded,
    labels,
    never,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import FORBIDDEN, INVALID, Report

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


_PERCENT: Final = re.compile(r"[+-]?[0-9]+%*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def validate_pod_metadata(metadata: Object, spec: Object, path: Path, report: Report) -> None:
    """Validate the labels and annotations of a pod template."""
    labels = metadata.get("labels")
    if labels:
        validate_labels(labels, path.child("labels"), report)
    annotations = metadata.get("annotations")
    if annotations:
        at = path.child("annotations")
        validate_annotations(annotations, at, report)
        _validate_budget(annotations, at, report)
        _validate_known(annotations, spec, at, report)
    for name in ("name", "generateName"):
        if metadata.get(name):
            report.warn("X13.pod-name", path.child(name))


def _validate_budget(annotations: Object, path: Path, report: Report) -> None:
    for key in (MIN_AVAILABLE, MAX_UNAVAILABLE):
        value = annotations.get(key)
        if value is not None and not _is_budget(value):
            report.add("F5.number", path.key(key), value)
    if MIN_AVAILABLE in annotations and MAX_UNAVAILABLE in annotations:
        report.add("F5.exclusive", path.key(MAX_UNAVAILABLE))


def _is_budget(value: str) -> bool:
    if len(value) > 20:
        return False
    if _INTEGER.fullmatch(value):
        return int(value) > 0
    return bool(_PERCENT.fullmatch(value)) and 0 < int(value.rstrip("%")) < 100


def _validate_known(annotations: Object, spec: Object, path: Path, report: Report) -> None:
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_int32(cost):
        report.add("V8.ObjectMeta.annotations.deletion-cost", path.key(DELETION_COST), cost)
    keys = sorted(key for key in annotations if key.startswith(APP_ARMOR))
    names = _container_names(spec) if keys else set()
    for key in keys:
        container, profile = key[len(APP_ARMOR) :], annotations[key]
        if container not in names:
            report.add("V8.ObjectMeta.annotations.apparmor-container", path.key(key), container)
        known = profile in {"", "runtime/default", "unconfined"}
        if not known and not profile.startswith("localhost/"):
            report.add(
                "V8.ObjectMeta.annotations.apparmor-profile",
                path.key(key),
                profile,
                profile=profile,
            )


def _container_names(spec: Object) -> set[str]:
    lists = (spec.get("initContainers") or (), spec.get("containers") or ())
    return {container.get("name") or "" for containers in lists for container in containers}


def _is_int32(text: str) -> bool:
    if len(text) > 11 or not re.fullmatch(r"0|-?[1-9][0-9]*", text):
        return False
    return -(2**31) <= int(text) < 2**31


MAX_SERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_LENGTH: Final = 2048


def _is_no_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return True
    return "%" in value


ADDRESS_FORM: Final = held(("V8.address.form", _is_no_address))


def at_most(count: int, what: str) -> Maker:
    """Limit the length of a list, with Kubernetes' message for it."""

    def make(cell: Cell) -> Check:
        too_many = cell.rule(
            "max",
            INVALID,
            f"must not have more than {count} {what}",
            f"{cell.noun} has more {what} than a resolver reads",
            "remove some",
        )

        def validate(value: list[str], _o: object, path: Path, _p: Pod, report: Report) -> None:
            if len(value) > count:
                report.add(too_many, path.child(cell.field), value)

        return validate

    return make


def _search(
    value: str, _o: object, path: Path, _p: Pod, report: Report, step: str | int = "searches"
) -> None:
    # Unlike names of objects, search domains may have underscores anywhere.
    name = value.removesuffix(".")
    if value != "." and formats.dns1123_subdomain(name.replace("_", "a")):
        check(formats.dns1123_subdomain, name, path, report, step)


def _option(option: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    if not option.get("name"):
        report.add("V8.PodDNSConfigOption.name.required", path)


def dns_policy(policy: str, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that a pod with dnsPolicy None names a server."""
    if policy == "None":
        config = spec.get("dnsConfig")
        if config is None:
            report.add("V8.PodSpec.dnsConfig.required", path.child("dnsConfig"))
        elif not config.get("nameservers"):
            report.add(
                "V8.PodDNSConfig.nameservers.required", path.child("dnsConfig", "nameservers")
            )


DNS_CONFIG: Final = Type(
    "PodDNSConfig",
    "a DNS configuration",
    optional("nameservers", at_most(MAX_SERVERS, "nameservers"), each(ADDRESS_FORM)),
    optional(
        "searches",
        at_most(MAX_SEARCHES, "search paths"),
        held(
            (
                "V8.PodDNSConfig.searches.length",
                lambda names: len(" ".join(names)) > MAX_SEARCH_LENGTH,
            )
        ),
        each(code(_search)),
    ),
    optional("options", items(Type("PodDNSConfigOption", "a DNS option", across=(_option,)))),
)
HOST_ALIAS: Final = Type(
    "HostAlias",
    "a host alias",
    always("ip", ADDRESS_FORM),
    optional("hostnames", each(form(formats.dns1123_subdomain))),
)


RESTARTS: Final = ("NotRequired", "RestartContainer")
RESIZED: Final = ("cpu", "memory")
MAIN_ONLY: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def _resize(policy: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
    at = path.parent or path  # Kubernetes reports these without the index of the policy.
    if name not in RESIZED:
        report.unsupported("V8.ContainerResizePolicy.enum", at, name, RESIZED)
    if restart not in RESTARTS:
        report.unsupported("V8.ContainerResizePolicy.enum", at, restart, RESTARTS)
    if pod.restart_policy == "Never" and restart != "NotRequired":
        report.add("V8.ContainerResizePolicy.restartPolicy.never", at, restart)


PORT: Final = Type(
    "ContainerPort",
    "a port",
    optional("name", form(formats.port_name)),
    required("containerPort", between(1, 65535)),
    optional("hostPort", between(1, 65535)),
    optional("protocol", enum("SCTP", "TCP", "UDP")),
)
CONTAINER: Final = Type(
    "Container",
    "a container",
    required("name", form(formats.dns1123_label)),
    required("image", held(("V8.Container.image.form", is_padded))),
    optional("imagePullPolicy", enum("Always", "IfNotPresent", "Never")),
    optional("terminationMessagePolicy", enum("File", "FallbackToLogsOnError")),
    optional("ports", items(PORT, Unique("name", form=formats.port_name))),
    optional("env", items(ENV_VAR)),
    optional("envFrom", items(ENV_FROM_SOURCE)),
    optional(
        "volumeMounts",
        items(
            VOLUME_MOUNT,
            Unique("mountPath", INVALID, "must be unique"),
            across=(mount_rules,),
        ),
        code(clashes),
    ),
    optional(
        "volumeDevices",
        items(
            VOLUME_DEVICE,
            Unique("name", INVALID, "must be unique"),
            Unique("devicePath", INVALID, "must be unique"),
        ),
    ),
    optional("resources", struct(REQUIREMENTS)),
    optional(
        "resizePolicy",
        items(
            Type("ContainerResizePolicy", "a resizePolicy", across=(_resize,)),
            Unique("resourceName", of_item=True),
        ),
    ),
    optional("securityContext", struct(CONTAINER_SECURITY)),
)


def _restart_rules(container: Object, path: Path, report: Report) -> None:
    if container.get("restartPolicyRules") and not container.get("restartPolicy"):
        report.add("V8.Container.restartPolicy.required", path.child("restartPolicy"))


def main_container(container: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the rules for containers that are not init containers."""
    _restart_rules(container, path, report)
    RUNNING.walk(container, container, path, pod, report)
    if container.get("restartPolicy"):
        report.add("V8.Container.restartPolicy.forbidden", path.child("restartPolicy"))


def init_container(container: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the rules for init containers; those with restartPolicy Always are sidecars."""
    _restart_rules(container, path, report)
    policy = container.get("restartPolicy")
    if policy and policy != "Always":
        report.unsupported(
            "V8.Container.restartPolicy.enum", path.child("restartPolicy"), policy, ("Always",)
        )
    if policy == "Always":
        RUNNING.walk(container, container, path, pod, report)
    else:
        for field in MAIN_ONLY:
            if container.get(field):
                report.add("V8.Container.sidecar.forbidden", path.child(field))
        if container.get("resizePolicy"):
            report.add(
                "V8.Container.resizePolicy.init",
                path.child("resizePolicy"),
                container["resizePolicy"],
            )
    # Kubernetes looks at one init container at a time and counts each as the first.
    first = (path.parent or path).index(0)
    _host_ports(container, set(), first, report, host_network=False)


def host_ports(containers: list[Object], _o: object, path: Path, pod: Pod, report: Report) -> None:
    """Check the host ports of the containers of one pod."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        at = path.child("containers").index(index)
        _host_ports(container, taken, at, report, host_network=pod.host_network)


def _host_ports(
    container: Object, taken: set[str], path: Path, report: Report, *, host_network: bool
) -> None:
    """Report host ports in `taken`, and add the others to it, as PROTOCOL/IP/PORT."""
    for index, port in enumerate(container.get("ports") or ()):
        host = port.get("hostPort")
        if not host:
            continue
        at = path.child("ports").index(index).child("hostPort")
        key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{host}"
        if key in taken:
            report.add("V8.ContainerPort.hostPort.unique", at, key)
        taken.add(key)
        if host_network and host != port.get("containerPort"):
            report.add("V8.ContainerPort.hostPort.host-network", at, host)


def _host_users(users: bool, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    for name in () if users else ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            report.add("V8.PodSpec.hostUsers.host", path.child(name))


CLAIM: Final = Type(
    "PodResourceClaim",
    "a resource claim",
    required("name", form(formats.dns1123_label)),
    optional("resourceClaimName", form(formats.dns1123_subdomain)),
    optional("resourceClaimTemplateName", form(formats.dns1123_subdomain)),
    across=(
        exactly_one(
            "resourceClaimName",
            "resourceClaimTemplateName",
            none="V8.PodResourceClaim.one-of.required",
            twice="V8.PodResourceClaim.one-of.max",
        ),
    ),
)
POD_SPEC: Final = Type(
    "PodSpec",
    "a pod",
    required(
        "containers",
        items(CONTAINER, Unique("name"), across=(main_container,)),
        code(host_ports),
        remedy="add a container",
    ),
    optional(
        "initContainers",
        items(
            CONTAINER,
            Unique("name", taken=lambda pod: pod.containers),
            across=(init_container,),
        ),
    ),
    optional(
        "ephemeralContainers",
        never(
            FORBIDDEN,
            "ephemeral containers not allowed in pod template",
            "a pod template has containers that can only be added to a running pod",
            "remove ephemeralContainers",
        ),
    ),
    optional("volumes", items(VOLUME, Unique("name"))),
    optional("resourceClaims", items(CLAIM, Unique("name"))),
    optional("restartPolicy", enum("Always", "OnFailure", "Never")),
    optional("preemptionPolicy", enum("PreemptLowerPriority", "Never")),
    optional(
        "dnsPolicy",
        enum("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
        code(dns_policy),
    ),
    optional("dnsConfig", struct(DNS_CONFIG)),
    optional("hostAliases", items(HOST_ALIAS)),
    optional("serviceAccountName", form(formats.dns1123_subdomain)),
    optional("priorityClassName", form(formats.dns1123_subdomain)),
    optional("runtimeClassName", form(formats.dns1123_subdomain)),
    optional("nodeName", form(formats.dns1123_subdomain)),
    optional("hostname", form(formats.dns1123_label)),
    optional("subdomain", form(formats.dns1123_label)),
    optional("nodeSelector", labels()),
    pointer("activeDeadlineSeconds", between(1, 2**31 - 1)),
    pointer(
        "os",
        struct_of(
            "PodOS",
            "os of a pod",
            required("name", at_holder(enum("linux", "windows")), detail="cannot be empty"),
        ),
    ),
    pointer("hostUsers", code(_host_users)),
    optional("shareProcessNamespace", code(shared_processes)),
    optional("securityContext", struct(POD_SECURITY)),
    optional("affinity", struct(AFFINITY)),
    optional("tolerations", items(TOLERATION)),
    optional("topologySpreadConstraints", code(spreads)),
    optional("schedulingGates", items(SCHEDULING_GATE, Unique("name", of_item=True))),
    optional("readinessGates", items(READINESS_GATE)),
    optional("overhead", code(overhead)),
    optional("resources", code(pod_resources)),
)


def validate_pod_spec(spec: Object, path: Path, report: Report) -> None:
    """Validate the spec of a pod template."""
    POD_SPEC.walk(spec, spec, path, Pod.of(spec), report)


def validate_pod_template(template: Object, path: Path, report: Report) -> None:
    """Validate the metadata and the spec of one task's pod template."""
    spec = template.get("spec") or {}
    metadata = template.get("metadata")
    if metadata:
        validate_pod_metadata(metadata, spec, path.child("metadata"), report)
    validate_pod_spec(spec, path.child("spec"), report)
