"""The tables of probes, lifecycle hooks, volume mounts and security contexts."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import one_of, struct
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    at_least,
    code,
    descending,
    enum,
    held,
    one_known,
    optional,
    pointer,
    required,
    row,
)
from hyperjob_rules.validation.rules import Report

PORT: Final = row("V8.Handler.port.range")
SUCCESS: Final = row("V8.Probe.successThreshold.one")
GRACE_OF_READINESS: Final = row("V8.Probe.terminationGracePeriodSeconds.readiness")


def _port(
    value: int | str, _o: object, path: Path, _p: Pod, report: Report, step: str = "port"
) -> None:
    if isinstance(value, str):
        check(formats.port_name, value, path, report, step)
    elif not 1 <= value <= 65535:
        report.add(PORT, path.child(step), value)


EXEC: Final = Type("ExecAction", "an exec probe or hook", required("command"))
HTTP: Final = Type(
    "HTTPGetAction",
    "an HTTP probe or hook",
    always("port", code(_port), default=0),
    optional("scheme", enum("HTTP", "HTTPS")),
)
TCP: Final = Type("TCPSocketAction", "a TCP probe or hook", always("port", code(_port), default=0))
GRPC: Final = Type("GRPCAction", "a gRPC probe", always("port", code(_port), default=0))

HANDLER: Final = one_of(
    "Handler",
    "a probe or hook",
    {
        "exec": struct(EXEC),
        "httpGet": struct(HTTP),
        "tcpSocket": struct(TCP),
        "grpc": struct(GRPC),
        "sleep": struct(Type("", "")),
    },
    none=("must specify a handler type", "add exec, httpGet, tcpSocket or grpc"),
    twice=("may not specify more than 1 handler type", "keep one of them"),
)
HOOK: Final = Type("LifecycleHandler", "a hook", across=(HANDLER,))
LIFECYCLE: Final = Type(
    "Lifecycle",
    "a lifecycle",
    pointer("postStart", struct(HOOK)),
    pointer("preStop", struct(HOOK)),
)
NOT_NEGATIVE: Final = at_least(0, text="must be greater than or equal to 0")
PROBE: Final = Type(
    "Probe",
    "a probe",
    optional("initialDelaySeconds", NOT_NEGATIVE),
    optional("timeoutSeconds", NOT_NEGATIVE),
    optional("periodSeconds", NOT_NEGATIVE),
    optional("successThreshold", NOT_NEGATIVE),
    optional("failureThreshold", NOT_NEGATIVE),
    pointer("terminationGracePeriodSeconds", at_least(1, text="must be greater than 0")),
    across=(HANDLER,),
)


ONCE: Final = Type(
    "Probe",
    "a liveness or startup probe",
    optional("successThreshold", held((SUCCESS, lambda number: number != 1))),
)
READINESS: Final = Type(
    "Probe",
    "a readiness probe",
    pointer("terminationGracePeriodSeconds", held((GRACE_OF_READINESS, lambda _: True))),
)
RUNNING: Final = Type(
    "Container",
    "a container",
    optional("lifecycle", struct(LIFECYCLE)),
    pointer("livenessProbe", struct(PROBE), struct(ONCE)),
    pointer("readinessProbe", struct(PROBE), struct(READINESS)),
    pointer("startupProbe", struct(PROBE), struct(ONCE)),
)
"""The fields of containers and sidecars, which init containers must not have."""


UNKNOWN: Final = row("V8.VolumeMount.name.unknown")
PATH_EXPR: Final = row("V8.VolumeMount.subPathExpr.exclusive")
OF_IMAGE: Final = row("V8.VolumeMount.subPath.image")
PRIVILEGED: Final = row("V8.VolumeMount.mountPropagation.privileged")


def mount_rules(mount: Object, container: Object, path: Path, pod: Pod, report: Report) -> None:
    """Compare a mount with its volume, its container, and its other fields."""
    part, expression = mount.get("subPath"), mount.get("subPathExpr")
    if (part or expression) and pod.volumes.get(mount.get("name") or "", {}).get("image"):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                report.add(OF_IMAGE, path.child(field), mount[field])
    if part and expression:
        report.add(PATH_EXPR, path.child("subPathExpr"), expression)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mount.get("mountPropagation") == "Bidirectional" and not privileged:
        report.add(PRIVILEGED, path.child("mountPropagation"))


KNOWN: Final = one_known(UNKNOWN, lambda pod: pod.volumes)
VOLUME_MOUNT: Final = Type(
    "VolumeMount",
    "a mount",
    required("name", KNOWN),
    required("mountPath"),
    optional("subPath", descending),
    optional("subPathExpr", descending),
    pointer("mountPropagation", enum("Bidirectional", "HostToContainer", "None")),
)
