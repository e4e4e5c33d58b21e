"""The table of a pod's spec; the types of its parts are in the other modules."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.affinity import AFFINITY
from hyperjob_rules.validation.podtemplate.containers import (
    CONTAINER,
    host_ports,
    init_container,
    main_container,
)
from hyperjob_rules.validation.podtemplate.dns import DNS_CONFIG, HOST_ALIAS, dns_policy
from hyperjob_rules.validation.podtemplate.objects import Unique, exactly_one, items, struct
from hyperjob_rules.validation.podtemplate.pod import Pod
from hyperjob_rules.validation.podtemplate.resources import overhead, pod_resources
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.scheduling import (
    READINESS_GATE,
    SCHEDULING_GATE,
    TOLERATION,
    spreads,
)
from hyperjob_rules.validation.podtemplate.security import POD_SECURITY, shared_processes
from hyperjob_rules.validation.podtemplate.sources import VOLUME
from hyperjob_rules.validation.podtemplate.table import Type, optional, pointer, required
from hyperjob_rules.validation.podtemplate.values import (
    at_holder,
    between,
    code,
    enum,
    form,
    labels,
    never,
)
from hyperjob_rules.validation.rules import FORBIDDEN, Report

HOST_USERS: Final = row("V8.PodSpec.hostUsers.host")
CLAIM_ONE: Final = row("V8.PodResourceClaim.one-of.required")
CLAIM_BOTH: Final = row("V8.PodResourceClaim.one-of.max")


def _host_users(users: bool, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    for name in () if users else ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            report.add(HOST_USERS, path.child(name))


CLAIM: Final = Type(
    "PodResourceClaim",
    "a resource claim",
    required("name", form(formats.dns1123_label)),
    optional("resourceClaimName", form(formats.dns1123_subdomain)),
    optional("resourceClaimTemplateName", form(formats.dns1123_subdomain)),
    together=(
        exactly_one(
            "resourceClaimName", "resourceClaimTemplateName", none=CLAIM_ONE, twice=CLAIM_BOTH
        ),
    ),
)
POD_SPEC: Final = Type(
    "PodSpec",
    "a pod",
    required(
        "containers",
        items(CONTAINER, Unique("name"), together=(main_container,)),
        code(host_ports),
        remedy="add a container",
    ),
    optional(
        "initContainers",
        items(
            CONTAINER,
            Unique("name", taken=lambda pod: pod.containers),
            together=(init_container,),
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
        struct(
            Type(
                "PodOS",
                "os of a pod",
                required("name", at_holder(enum("linux", "windows")), detail="cannot be empty"),
            )
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
