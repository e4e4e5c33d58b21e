"""The table of a pod's DNS policy, DNS configuration and host aliases."""

import ipaddress
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import each, items
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    always,
    code,
    form,
    held,
    optional,
)
from hyperjob_rules.validation.rules import INVALID, Report

MAX_SERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_LENGTH: Final = 2048

NO_CONFIG: Final = row("V8.PodSpec.dnsConfig.required")
NO_SERVERS: Final = row("V8.PodDNSConfig.nameservers.required")
OPTION: Final = row("V8.PodDNSConfigOption.name.required")
SEARCH_LENGTH: Final = row("V8.PodDNSConfig.searches.length")
ADDRESS: Final = row("V8.address.form")


def _is_no_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return True
    return "%" in value


ADDRESS_FORM: Final = held((ADDRESS, _is_no_address))


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
        report.add(OPTION, path)


def dns_policy(policy: str, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that a pod with dnsPolicy None names a server."""
    if policy == "None":
        config = spec.get("dnsConfig")
        if config is None:
            report.add(NO_CONFIG, path.child("dnsConfig"))
        elif not config.get("nameservers"):
            report.add(NO_SERVERS, path.child("dnsConfig", "nameservers"))


DNS_CONFIG: Final = Type(
    "PodDNSConfig",
    "a DNS configuration",
    optional("nameservers", at_most(MAX_SERVERS, "nameservers"), each(ADDRESS_FORM)),
    optional(
        "searches",
        at_most(MAX_SEARCHES, "search paths"),
        held((SEARCH_LENGTH, lambda names: len(" ".join(names)) > MAX_SEARCH_LENGTH)),
        each(code(_search)),
    ),
    optional("options", items(Type("PodDNSConfigOption", "a DNS option", together=(_option,)))),
)
HOST_ALIAS: Final = Type(
    "HostAlias",
    "a host alias",
    always("ip", ADDRESS_FORM),
    optional("hostnames", each(form(formats.dns1123_subdomain))),
)
