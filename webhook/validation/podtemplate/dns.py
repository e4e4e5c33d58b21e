"""How pods resolve names."""

import ipaddress
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, NOT_SUPPORTED, REQUIRED, rule

POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
MAX_SERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_LENGTH: Final = 2048

POLICY = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the DNS policy of a pod is not one that Kubernetes knows",
    "use one of the values listed",
)
NO_CONFIG = rule(
    "V8",
    REQUIRED,
    "must provide `dnsConfig` when `dnsPolicy` is None",
    "a pod uses no DNS of the cluster and names no other",
    "add dnsConfig with nameservers, or remove dnsPolicy",
)
NO_SERVERS = rule(
    "V8",
    REQUIRED,
    "must provide at least one DNS nameserver when `dnsPolicy` is None",
    "a pod uses no DNS of the cluster and names no server",
    "add nameservers to dnsConfig",
)
SERVERS = rule(
    "V8",
    INVALID,
    f"must not have more than {MAX_SERVERS} nameservers",
    "a pod names more DNS servers than a resolver asks",
    "remove some",
)
SEARCHES = rule(
    "V8",
    INVALID,
    f"must not have more than {MAX_SEARCHES} search paths",
    "a pod has too many search domains",
    "remove some",
)
SEARCH_LENGTH = rule(
    "V8",
    INVALID,
    f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list",
    "the search domains of a pod are too long together",
    "remove some",
)
OPTION = rule("V8", REQUIRED, "must not be empty", "a DNS option has no name", "name it")
ADDRESS = rule(
    "V8",
    INVALID,
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    "a DNS server or host alias has no address",
    "use an IP address, not a name",
)


def validate_dns_policy(spec: Object, path: Path, report: Report) -> None:
    """Check whose DNS a pod uses, and that it is named where it is nobody's."""
    policy, config = spec["dnsPolicy"], spec.get("dnsConfig")
    if policy and policy not in POLICIES:
        report.unsupported(POLICY, path.child("dnsPolicy"), policy, POLICIES)
    if policy == "None":
        if config is None:
            report.add(NO_CONFIG, path.child("dnsConfig"))
        elif not config.get("nameservers"):
            report.add(NO_SERVERS, path.child("dnsConfig", "nameservers"))


def validate_dns_config(spec: Object, path: Path, report: Report) -> None:
    """Check the DNS servers and search domains of a pod."""
    config, path = spec["dnsConfig"], path.child("dnsConfig")
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > MAX_SERVERS:
        report.add(SERVERS, path.child("nameservers"), servers)
    for index, server in enumerate(servers):
        validate_address(server, path.child("nameservers").index(index), report)
    at = path.child("searches")
    if len(searches) > MAX_SEARCHES:
        report.add(SEARCHES, at, searches)
    if len(" ".join(searches)) > MAX_SEARCH_LENGTH:
        report.add(SEARCH_LENGTH, at, searches)
    for index, search in enumerate(searches):
        # Unlike names of objects, domains that are searched may have underscores anywhere.
        if search != "." and formats.dns1123_subdomain(search.removesuffix(".").replace("_", "a")):
            check(formats.dns1123_subdomain, search.removesuffix("."), at, report, index)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            report.add(OPTION, path.child("options").index(index))


def validate_host_aliases(spec: Object, path: Path, report: Report) -> None:
    """Check the names that a pod knows by itself."""
    for index, alias in enumerate(spec["hostAliases"]):
        at = path.child("hostAliases").index(index)
        validate_address(alias.get("ip") or "", at.child("ip"), report)
        for position, name in enumerate(alias.get("hostnames") or ()):
            check(formats.dns1123_subdomain, name, at, report, "hostnames", position)


def validate_address(value: str, path: Path, report: Report) -> None:
    """Check an IP address."""
    try:
        ipaddress.ip_address(value)
        valid = "%" not in value
    except ValueError:
        valid = False
    if not valid:
        report.add(ADDRESS, path, value)
