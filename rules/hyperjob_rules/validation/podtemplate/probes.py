"""The table of probes and lifecycle hooks."""

import re
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import one_of, struct
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    at_least,
    code,
    enum,
    held,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

PORT: Final = row("V8.Handler.port.range")
HEADER: Final = row("V8.HTTPHeader.name.form")
SLEEP: Final = row("V8.SleepAction.seconds.range")
SUCCESS: Final = row("V8.Probe.successThreshold.one")
GRACE_OF_READINESS: Final = row("V8.Probe.terminationGracePeriodSeconds.readiness")
_HEADER_NAME: Final = re.compile("[-A-Za-z0-9]+")


def _port(
    value: int | str, _o: object, path: Path, _p: Pod, report: Report, step: str = "port"
) -> None:
    if isinstance(value, str):
        check(formats.port_name, value, path, report, step)
    elif not 1 <= value <= 65535:
        report.add(PORT, path.child(step), value)


def _headers(headers: list[Object], _o: object, path: Path, _p: Pod, report: Report) -> None:
    for header in headers:
        name = header.get("name") or ""
        if not _HEADER_NAME.fullmatch(name):
            report.add(HEADER, path.child("httpHeaders"), name)


def _sleep(action: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    seconds = action.get("seconds") or 0
    if not 0 <= seconds <= pod.grace:
        report.add(SLEEP, path, seconds, grace=pod.grace)


EXEC: Final = Type("ExecAction", "an exec probe or hook", required("command"))
HTTP: Final = Type(
    "HTTPGetAction",
    "an HTTP probe or hook",
    always("port", code(_port), default=0),
    optional("scheme", enum("HTTP", "HTTPS")),
    optional("httpHeaders", code(_headers)),
)
TCP: Final = Type("TCPSocketAction", "a TCP probe or hook", always("port", code(_port), default=0))
GRPC: Final = Type("GRPCAction", "a gRPC probe", always("port", code(_port), default=0))
SLEEP_ACTION: Final = Type("SleepAction", "a hook that sleeps", together=(_sleep,))

HANDLER: Final = one_of(
    "Handler",
    "a probe or hook",
    {
        "exec": struct(EXEC),
        "httpGet": struct(HTTP),
        "tcpSocket": struct(TCP),
        "grpc": struct(GRPC),
        "sleep": struct(SLEEP_ACTION),
    },
    none=("must specify a handler type", "add exec, httpGet, tcpSocket or grpc"),
    twice=("may not specify more than 1 handler type", "keep one of them"),
)
HOOK: Final = Type("LifecycleHandler", "a hook", together=(HANDLER,))
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
    together=(HANDLER,),
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
