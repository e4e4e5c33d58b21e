"""Probes and lifecycle hooks of containers."""

import re
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.podtemplate.ports import validate_number, validate_number_or_name
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, rule

HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
SCHEMES: Final = ("HTTP", "HTTPS")
SECONDS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)

NO_HANDLER = rule(
    "V8",
    REQUIRED,
    "must specify a handler type",
    "a probe or hook does not say what it does",
    "add exec, httpGet, tcpSocket or grpc",
)
HANDLERS_TWICE = rule(
    "V8",
    FORBIDDEN,
    "may not specify more than 1 handler type",
    "a probe or hook does two things",
    "keep one of them",
)
INCOMPLETE = rule(
    "V8",
    REQUIRED,
    "",
    "a probe or hook lacks its command, path or port",
    "add the field named",
)
SCHEME = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the scheme of an HTTP probe is neither HTTP nor HTTPS",
    "write it in capitals",
)
HEADER = rule(
    "V8",
    INVALID,
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name',"
    " regex used for validation is '[-A-Za-z0-9]+')",
    "the name of a header of an HTTP probe is malformed",
    "use letters, digits and '-'",
)
NEGATIVE = rule(
    "V8",
    INVALID,
    "must be greater than or equal to 0",
    "a time or count of a probe is negative",
    "use 0 or more; 0 means the default",
)
SUCCESS = rule(
    "V8",
    INVALID,
    "must be 1",
    "a liveness or startup probe has another successThreshold",
    "set it to 1, or leave it out",
)
GRACE_NOT_POSITIVE = rule(
    "V8",
    INVALID,
    "must be greater than 0",
    "the grace period of a probe is not positive",
    "use 1 or more, or leave it out",
)
GRACE_OF_READINESS = rule(
    "V8",
    INVALID,
    "must not be set for readinessProbes",
    "a readiness probe, which kills nothing, has a grace period",
    "remove terminationGracePeriodSeconds from the probe",
)
SLEEP = rule(
    "V8",
    INVALID,
    "must be non-negative and less than terminationGracePeriodSeconds ({grace})",
    "a hook sleeps longer than the pod may take to end",
    "sleep for less, or raise terminationGracePeriodSeconds of the pod",
)

_HEADER_NAME: Final = re.compile("[-A-Za-z0-9]+")


def validate_probe(probe: Object, name: str, path: Path, report: Report) -> None:
    """Check one probe of a container; `name` is that of its field."""
    _validate_probe(probe, path, report)
    if name == "readinessProbe":
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None:
            report.add(GRACE_OF_READINESS, path.child("terminationGracePeriodSeconds"), grace)
    elif (probe.get("successThreshold") or 1) != 1:
        report.add(SUCCESS, path.child("successThreshold"), probe["successThreshold"])


def validate_lifecycle(lifecycle: Object, grace: int, path: Path, report: Report) -> None:
    """Check the hooks of a container; `grace` is the pod's, in seconds."""
    for name in ("postStart", "preStop"):
        hook = lifecycle.get(name)
        if hook is not None:
            _validate_handler(hook, path.child(name), report, grace=grace)


def _validate_probe(probe: Object, path: Path, report: Report) -> None:
    _validate_handler(probe, path, report)
    for name in SECONDS:
        value = probe.get(name)
        if value is not None and value < 0:
            report.add(NEGATIVE, path.child(name), value)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        report.add(GRACE_NOT_POSITIVE, path.child("terminationGracePeriodSeconds"), grace)


def _validate_handler(
    handler: Object, path: Path, report: Report, *, grace: int | None = None
) -> None:
    given = [name for name in HANDLERS if handler.get(name) is not None]
    if not given:
        report.add(NO_HANDLER, path)
        return
    for name in given[1:]:
        report.add(HANDLERS_TWICE, path.child(name))
    action, at = handler[given[0]], path.child(given[0])
    match given[0]:
        case "exec":
            if not action.get("command"):
                report.add(INCOMPLETE, at.child("command"))
        case "httpGet":
            _validate_http(action, at, report)
        case "tcpSocket":
            validate_number_or_name(action.get("port") or 0, at.child("port"), report)
        case "grpc":
            validate_number(action.get("port") or 0, at.child("port"), report)
        case _:
            seconds = action.get("seconds") or 0
            if grace is not None and not 0 <= seconds <= grace:
                report.add(SLEEP, at, seconds, grace=grace)


def _validate_http(action: Object, path: Path, report: Report) -> None:
    validate_number_or_name(action.get("port") or 0, path.child("port"), report)
    scheme = action.get("scheme")
    if scheme and scheme not in SCHEMES:
        report.unsupported(SCHEME, path.child("scheme"), scheme, SCHEMES)
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        if not _HEADER_NAME.fullmatch(name):
            report.add(HEADER, path.child("httpHeaders"), name)
