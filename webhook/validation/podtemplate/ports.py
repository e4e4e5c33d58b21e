"""Ports of containers, and ports of the host that two containers cannot both have."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED, rule

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

NAME_TWICE = rule(
    "V8", DUPLICATE, "", "two ports of a container have the same name", "rename one of them"
)
NUMBER_MISSING = rule(
    "V8", REQUIRED, "", "a port has no containerPort, or 0", "say which port the container opens"
)
NUMBER = rule(
    "V8",
    INVALID,
    "must be between 1 and 65535, inclusive",
    "a port number is out of range",
    "use a number from 1 to 65535",
)
PROTOCOL = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a port has a protocol that Kubernetes does not know",
    "use TCP, UDP or SCTP, in capitals",
)
HOST_TWICE = rule(
    "V8",
    DUPLICATE,
    "",
    "two containers of a pod want the same port of the host",
    "give them different hostPorts, or none",
)
HOST_DIFFERS = rule(
    "V8",
    INVALID,
    "must match `containerPort` when `hostNetwork` is true",
    "a pod in the host's network maps a port, which cannot be done there",
    "make hostPort the same as containerPort, or leave it out",
)


def validate_ports(container: Object, _: Pod, path: Path, report: Report) -> None:
    """Check the ports of one container."""
    names: set[str] = set()
    path = path.child("ports")
    for index, port in enumerate(container["ports"]):
        at = path.index(index)
        name = port.get("name")
        if name and check(formats.port_name, name, at, report, "name"):
            if name in names:
                report.add(NAME_TWICE, at.child("name"), name)
            names.add(name)
        number = port.get("containerPort")
        if not number:
            report.add(NUMBER_MISSING, at.child("containerPort"))
        else:
            validate_number(number, at.child("containerPort"), report)
        if port.get("hostPort"):
            validate_number(port["hostPort"], at.child("hostPort"), report)
        protocol = port.get("protocol")
        if protocol and protocol not in PROTOCOLS:
            report.unsupported(PROTOCOL, at.child("protocol"), protocol, PROTOCOLS)


def validate_number(number: int, path: Path, report: Report) -> None:
    """Check a port number."""
    if not 1 <= number <= 65535:
        report.add(NUMBER, path, number)


def validate_number_or_name(port: int | str, path: Path, report: Report) -> None:
    """Check a port that may be given by number or by name."""
    if isinstance(port, str):
        check(formats.port_name, port, path, report)
    else:
        validate_number(port, path, report)


def validate_host_ports(
    containers: list[Object], path: Path, report: Report, *, host_network: bool
) -> None:
    """Check the ports of the host that containers of one pod take."""
    taken: set[str] = set()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort")
            if not host:
                continue
            at = path.index(number).child("ports").index(index).child("hostPort")
            what = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{host}"
            if what in taken:
                report.add(HOST_TWICE, at, what)
            taken.add(what)
            if host_network and host != port.get("containerPort"):
                report.add(HOST_DIFFERS, at, host)
