"""Validation of requests and limits: names of resources, quantities, and their relation."""

from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import (
    COMPUTE,
    HUGE_PAGES,
    MAX,
    NANO,
    Quantity,
    is_huge_pages,
    is_native,
    is_quota_only,
    is_unqualified,
    may_be_overcommitted,
)
from hyperjob_core.text import nearest
from hyperjob_rules.validation.forms import check, parse_amount, try_parse_amount
from hyperjob_rules.validation.podtemplate.table import Pod, Type, code, optional
from hyperjob_rules.validation.rules import Report, bounded

MAX_PREFIX: Final = 253 - len("requests.")
MAX_NAME: Final = 253 + 1 + 63
MAX_NAMED: Final = 64
MAIN: Final = frozenset({"cpu", "memory"})


bounded("X19.amount", most=MAX // NANO)

Amounts = dict[str, Quantity]


def _requirements(resources: Object, path: Path, report: Report, *, of_pod: bool) -> None:
    """Validate limits, requests and their relation; `of_pod`: pod-level resources.

    Equal limits and requests are validated once.
    """
    given, asked = resources.get("limits"), resources.get("requests")
    known = report.count
    limits = _amounts(given, path, "limits", report, of_pod=of_pod)
    if asked == given and report.count == known:
        requests = limits  # defaulting makes most of them equal: what holds for one holds for both
    else:
        requests = _amounts(asked, path, "requests", report, of_pod=of_pod)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is request or limit == request:
            continue
        overcommit = may_be_overcommitted(name)
        if limit is None:
            if not overcommit and (not given or given.get(name) is None):
                report.add("V8.ResourceRequirements.limits.required", path.child("limits"))
        elif not overcommit:
            report.add(
                "V8.ResourceRequirements.requests.equal",
                path.child("requests"),
                str(request),
                name=name,
                limit=limit,
            )
        elif request > limit:
            report.add(
                "V8.ResourceRequirements.requests.limit",
                path.child("requests"),
                str(request),
                name=name,
                limit=limit,
            )
    names = limits.keys() | requests.keys()
    if names.isdisjoint(MAIN) and any(map(is_huge_pages, names)):
        report.add("V8.ResourceRequirements.hugepages", path)


def _amounts(
    given: Object | None, path: Path, field: str, report: Report, *, of_pod: bool
) -> Amounts:
    """Validate names and quantities one by one; return the valid quantities."""
    amounts: Amounts = {}
    if not given:
        return amounts
    listed = path.child(field)
    for name in sorted(given):
        value = given[name]
        if value is None:
            continue
        judged = name_of(name)
        if of_pod:
            _name_in_pod(name, listed, report)
        elif judged.wrong:
            _report_name(name, judged, listed, report)
        try:
            amount = amounts[name] = parse_amount(value)
        except ValueError as error:
            report.add("V8.ResourceList.quantity", listed.key(name), value, message=error)
            continue
        if amount.nano < 0:
            report.add("V8.ResourceList.negative", listed.key(name), str(amount))
        elif amount.nano > MAX:
            report.add("X19.amount", listed.key(name), str(value))
        if judged.whole:
            if not amount.is_integer:
                report.add("V8.ResourceList.integer", listed.key(name), str(amount))
            if is_huge_pages(name):
                _huge_pages(name, amount, listed.key(name), report)
    return amounts


class Name(NamedTuple):
    """The facts about a resource's name: whether its quantities are whole, the id of its error."""

    whole: bool
    wrong: str = ""
    match: str = ""


def name_of(name: str) -> Name:
    """Return the facts about a resource's name, from a memo: few names occur often."""
    return _judged(name) if len(name) <= MAX_NAME else _judge(name)


def _judge(name: str) -> Name:
    """Return the facts about a name: the first rule that it breaks."""
    whole = name not in COMPUTE and not may_be_overcommitted(name)
    if formats.qualified_name(name):
        return Name(whole, "V8.ResourceList.name.form")
    if is_quota_only(name):
        return Name(whole, "V8.ResourceList.name.quota")
    if is_unqualified(name):
        match = nearest(name, COMPUTE) or ""
        return Name(
            whole,
            "V8.ResourceList.name.standard" if match else "V8.ResourceList.name.unqualified",
            match,
        )
    # A ResourceQuota counts the device as requests.<name>, which must be a qualified name too.
    too_long = len(name.partition("/")[0]) > MAX_PREFIX
    if not is_native(name) and (name.startswith("requests.") or too_long):
        return Name(whole, "V8.ResourceList.name.extended")
    return Name(whole)


_judged: Final = lru_cache(maxsize=512)(_judge)


def _report_name(name: str, judged: Name, listed: Path, report: Report) -> None:
    if judged.wrong == "V8.ResourceList.name.form":
        for message in formats.qualified_name(name):
            report.add("V8.ResourceList.name.form", listed.key(name), name, message=message)
    elif judged.wrong == "V8.ResourceList.name.unqualified":
        report.warn("V8.ResourceList.name.unqualified", listed.parent or listed, name=name)
    elif judged.wrong:
        report.add(judged.wrong, listed.key(name), name, match=judged.match)


def _name_in_pod(name: str, listed: Path, report: Report) -> None:
    if name not in {"cpu", "memory"} and not is_huge_pages(name):
        report.unsupported(
            "V8.PodSpec.resources.enum", listed.key(name), name, ("cpu", HUGE_PAGES, "memory")
        )


def _huge_pages(name: str, amount: Quantity, path: Path, report: Report) -> None:
    try:
        size = parse_amount(name.removeprefix(HUGE_PAGES))
    except ValueError:
        size = Quantity()
    if size.nano <= 0 or amount.nano < 0 or amount.nano % size.nano:
        report.add("V8.ResourceList.hugepages.size", path, str(amount), amount=amount, name=name)


def _of_container(resources: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    _requirements(resources, path, report, of_pod=False)


def _claims(claims: list[Object], _o: object, path: Path, pod: Pod, report: Report) -> None:
    """Validate the claims of a container: each names a claim of the pod, and none twice."""
    listed = path.child("claims")
    seen: dict[str, set[str]] = {}
    known = ""
    for index, claim in enumerate(claims):
        at = listed.index(index)
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            report.add("V8.ResourceClaim.name.required", at)
            continue
        if request:
            check(formats.dns1123_label, request, at, report, "request")
        earlier = seen.setdefault(name, set())
        # A claim without a request means all of its requests.
        if earlier and (not request or request in earlier or "" in earlier):
            report.add("V8.ResourceClaim.unique", at, f"{name}/{request}" if request else name)
        earlier.add(request)
        if name not in pod.claims:
            known = known or _listed(pod.claims)
            report.add("V8.ResourceClaim.name.unknown", at, name, known=known)


def _listed(names: Collection[str]) -> str:
    if not names:
        return " which is empty"
    more = ", ..." if len(names) > MAX_NAMED else ""
    return f": {', '.join(sorted(names)[:MAX_NAMED])}{more}"


def overhead(amounts: Object, _o: object, path: Path, _p: Pod, report: Report) -> None:
    """Validate the overhead of a pod, which Kubernetes validates as limits."""
    _amounts(amounts, path.child("overhead"), "limits", report, of_pod=False)


def pod_resources(resources: Object, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    """Validate the pod-level resources against those of the containers."""
    path = path.child("resources")
    if resources.get("claims"):
        report.add("V8.PodSpec.resources.claims", path.child("claims"))
    _requirements(resources, path, report, of_pod=True)
    requests = resources.get("requests") or {}
    for name in sorted(requests):
        given = try_parse_amount(requests[name] or "0")
        needed = _of_containers(spec, name)
        if needed > given:
            at = path.child("requests").key(name)
            report.add("V8.PodSpec.resources.requests.containers", at, str(given), amount=needed)


def _of_containers(spec: Object, name: str) -> Quantity:
    """Return what the containers of a pod request across, as the Kubernetes scheduler counts.

    It is the larger of the sum over containers and sidecars and of the largest init container,
    which runs beside the sidecars before it.
    """
    running = sidecars = peak = Quantity()
    for container in spec.get("containers") or ():
        running = running + _requested(container, name)
    for container in spec.get("initContainers") or ():
        step = sidecars + _requested(container, name)
        peak = max(peak, step)
        if container.get("restartPolicy") == "Always":
            sidecars = step
    return max(running + sidecars, peak)


def _requested(container: Object, name: str) -> Quantity:
    """Return what a container requests of a resource; its limit is the API server's default."""
    resources = container.get("resources") or {}
    value = (resources.get("requests") or {}).get(name)
    if value is None:
        value = (resources.get("limits") or {}).get(name)
    return Quantity() if value is None else try_parse_amount(value)


REQUIREMENTS: Final = Type(
    "ResourceRequirements",
    "the resources of a container",
    optional("claims", code(_claims)),
    across=(_of_container,),
)
