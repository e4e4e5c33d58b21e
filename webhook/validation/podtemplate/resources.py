"""Requests and limits: names of resources, amounts, and how the two go together."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from hyperjob.api.quantity import Quantity
from webhook.resourcenames import (
    COMPUTE,
    HUGE_PAGES,
    is_huge_pages,
    is_native,
    is_quota_only,
    is_unqualified,
    may_be_overcommitted,
)
from webhook.validation.amounts import parse, try_parse
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    WARNING,
    rule,
)
from webhook.validation.suggest import nearest

MAX_DEVICE: Final = 128
MAX_AMOUNT: Final = 31
MAX_NUMBER: Final = 2**63
RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")

QUANTITY = rule(
    "V8",
    INVALID,
    "{message}",
    "an amount is no quantity",
    "write amounts as 500m, 2, 16Gi; quote them if they are not whole",
)
NEGATIVE = rule(
    "V8",
    INVALID,
    "must be greater than or equal to 0",
    "an amount, a time or a count is negative",
    "use 0 or more",
)
NOT_WHOLE = rule(
    "V8",
    INVALID,
    "must be an integer",
    "a part of a device is requested",
    "request whole devices; shares of a device have resource names of their own",
)
NOT_OF_CONTAINERS = rule(
    "V8",
    INVALID,
    "must be a standard resource for containers",
    "a container requests something that only quotas count",
    "use cpu, memory, ephemeral-storage, or a device with its domain",
)
MISSPELT = rule(
    "V8",
    INVALID,
    'must be a standard resource type or fully qualified; did you mean "{match}"?',
    "the name of a resource is not known, and near to one that is",
    "correct it; the name of a device is its vendor's domain, a slash and the device",
)
UNQUALIFIED = rule(
    "V8",
    WARNING,
    "`{name}` has no domain; a usual API server takes only names such as example.com/{name}",
    "a device's resource has no domain; member clusters with a usual API server refuse the pods",
    "use the name that the device plugin registers, such as huawei.com/Ascend910",
)
EXTENDED_NAME = rule(
    "V8",
    INVALID,
    "doesn't follow extended resource name standard",
    "the name of a device's resource starts with `requests.` or is too long",
    "use the name that the device plugin registers",
)
HUGE_PAGES_SIZE = rule(
    "V8",
    INVALID,
    "{amount} is not positive integer multiple of {name}",
    "huge pages are requested that are no whole number of pages",
    "request a multiple of the page size",
)
HUGE_PAGES_ALONE = rule(
    "V8",
    FORBIDDEN,
    "HugePages require cpu or memory",
    "a container requests huge pages and neither cpu nor memory",
    "request cpu or memory as well",
)
NOT_EQUAL = rule(
    "V8",
    INVALID,
    "must be equal to {name} limit of {limit}",
    "request and limit of a device differ, and devices cannot be overcommitted",
    "make both the same, or leave one out",
)
ABOVE_LIMIT = rule(
    "V8",
    INVALID,
    "must be less than or equal to {name} limit of {limit}",
    "a container requests more than it may use",
    "raise the limit, or lower the request",
)
NO_LIMIT = rule(
    "V8",
    REQUIRED,
    "Limit must be set for non overcommitable resources",
    "a device is requested without a limit, and the mutating webhook was not asked",
    "set the limit to the request, or install the mutating webhook, which does it",
)
CLAIM_MISSING = rule(
    "V8",
    REQUIRED,
    "",
    "a container names no resource claim",
    "name one of the pod's resourceClaims",
)
CLAIM_TWICE = rule(
    "V8", DUPLICATE, "", "a container names a resource claim twice", "remove one of them"
)
CLAIM_UNKNOWN = rule(
    "V8",
    NOT_FOUND,
    "must be one of the names in pod.spec.resourceClaims{known}",
    "a container names a resource claim that the pod lacks",
    "add it to resourceClaims of the pod, or correct the name",
)
RESIZE_TWICE = rule(
    "V8", DUPLICATE, "", "two resize policies are for the same resource", "keep one of them"
)
RESIZE_ENUM = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a resize policy has a value that Kubernetes does not know",
    "use one of the values listed",
)
RESIZE_NEVER = rule(
    "V8",
    INVALID,
    "must be 'NotRequired' when `restartPolicy` is 'Never'",
    "a container that is never restarted is to be restarted for a resize",
    "use NotRequired, or another restartPolicy",
)
POD_CLAIMS = rule(
    "V8",
    FORBIDDEN,
    "claims cannot be set for Resources at pod-level",
    "the resources of a whole pod name claims",
    "move the claims to a container",
)
POD_RESOURCE = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the resources of a whole pod have one that only containers can have",
    "request it in a container",
)
BELOW_CONTAINERS = rule(
    "V8",
    INVALID,
    "must be greater than or equal to aggregate container requests of {amount}",
    "a pod as a whole requests less than its containers together",
    "raise the request of the pod",
)

Amounts = dict[str, Quantity]
_NONE: Final[Object] = {}
NameCheck = Callable[[str, str, Path, Report], None]


def validate_resources(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check the requests, limits and claims of one container."""
    resources, path = container["resources"], path.child("resources")
    _validate_requirements(resources, path, report, name_check=_validate_name)
    claims = resources.get("claims") or []
    for index in range(len(claims)):
        _validate_claim(claims, index, pod.claims, path.child("claims"), report)


def are_unremarkable(resources: Object) -> bool:
    """Tell whether requests and limits, of the right types and no great length, break no rule."""
    limits = resources.get("limits", _NONE)
    for name, value in limits.items():
        if _known(name, value) is None:
            return False
    requests = resources.get("requests", _NONE)
    if requests == limits:
        return True
    for name, value in requests.items():
        request = _known(name, value)
        limit = _known(name, limits[name]) if name in limits else None
        if request is None or (request is not limit and not _fits(name, request, limit)):
            return False
    return True


def _fits(name: str, request: Quantity, limit: Quantity | None) -> bool:
    if may_be_overcommitted(name):
        return limit is None or request <= limit
    return request == limit


def _validate_requirements(
    resources: Object, path: Path, report: Report, *, name_check: NameCheck
) -> None:
    given = resources.get("limits")
    limits = _amounts(given, "limits", path, report, name_check)
    requests = _amounts(resources.get("requests"), "requests", path, report, name_check)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is not None and request == limit:
            continue
        overcommit = may_be_overcommitted(name)
        if limit is None:
            if not overcommit and (not given or given.get(name) is None):
                report.add(NO_LIMIT, path.child("limits"))
        elif not overcommit:
            report.add(NOT_EQUAL, path.child("requests"), str(request), name=name, limit=limit)
        elif request > limit:
            report.add(ABOVE_LIMIT, path.child("requests"), str(request), name=name, limit=limit)
    names = limits.keys() | requests.keys()
    if names.isdisjoint({"cpu", "memory"}) and any(map(is_huge_pages, names)):
        report.add(HUGE_PAGES_ALONE, path)


def _amounts(
    given: Object | None, field: str, path: Path, report: Report, name_check: NameCheck
) -> Amounts:
    """Check names and amounts one by one, and return the amounts that are any."""
    amounts: Amounts = {}
    if not given:
        return amounts
    for name in sorted(given):
        value = given[name]
        if value is None:
            continue
        sound = _sound(name, value)
        if sound is not None and name_check is _validate_name:
            amounts[name] = sound
            continue
        whole = name not in COMPUTE and not may_be_overcommitted(name)
        name_check(name, field, path, report)
        try:
            amount = parse(value)
        except ValueError as error:
            report.add(QUANTITY, path.child(field).key(name), value, message=error)
            continue
        amounts[name] = amount
        if amount.nano < 0:
            report.add(NEGATIVE, path.child(field).key(name), str(amount))
        if whole and not amount.is_integer:
            report.add(NOT_WHOLE, path.child(field).key(name), str(amount))
        if whole and is_huge_pages(name):
            _validate_huge_pages(name, amount, path.child(field).key(name), report)
    return amounts


def _validate_name(name: str, field: str, resources: Path, report: Report) -> None:
    path = resources.child(field).key(name)
    if name in COMPUTE or not check(formats.qualified_name, name, path, report):
        return
    if is_quota_only(name):
        report.add(NOT_OF_CONTAINERS, path, name)
    elif is_unqualified(name):
        match = nearest(name, COMPUTE)
        if match:
            report.add(MISSPELT, path, name, match=match)
        else:
            report.warn(UNQUALIFIED, resources, name=name)
    elif not is_native(name):
        too_long = bool(formats.qualified_name(f"requests.{name}"))
        if name.startswith("requests.") or too_long:
            report.add(EXTENDED_NAME, path, name)


def _sound(name: str, value: object) -> Quantity | None:
    """Return an amount about which there is nothing to say, if it is one and of usual length."""
    if isinstance(value, str):
        short = len(value) <= MAX_AMOUNT
    elif isinstance(value, int) and not isinstance(value, bool):
        short = abs(value) <= MAX_NUMBER
    else:
        return None
    return _known(name, value) if short and len(name) < MAX_DEVICE else None


@lru_cache(maxsize=4096)
def _known(name: str, value: str | int) -> Quantity | None:
    """Judge an amount once: there are few, written often."""
    try:
        amount = parse(value)
    except ValueError:
        return None
    if name in COMPUTE:
        return amount if amount.nano >= 0 else None
    if is_native(name) or name.startswith("requests."):
        return None
    plain = not formats.qualified_name(f"requests.{name}")
    return amount if plain and amount.nano >= 0 and amount.is_integer else None


def _validate_huge_pages(name: str, amount: Quantity, path: Path, report: Report) -> None:
    try:
        size = parse(name.removeprefix(HUGE_PAGES))
    except ValueError:
        size = Quantity()
    if size.nano <= 0 or amount.nano < 0 or amount.nano % size.nano:
        report.add(HUGE_PAGES_SIZE, path, str(amount), amount=amount, name=name)


def _validate_claim(
    claims: list[Object], index: int, known: frozenset[str], path: Path, report: Report
) -> None:
    claim, at = claims[index], path.index(index)
    name, request = claim.get("name") or "", claim.get("request") or ""
    if not name:
        report.add(CLAIM_MISSING, at)
        return
    if request:
        check(formats.dns1123_label, request, at, report, "request")
    for earlier in claims[:index]:
        other = earlier.get("request") or ""
        if earlier.get("name") == name and (other == request or not other or not request):
            report.add(CLAIM_TWICE, at, f"{name}/{request}" if request else name)
            break
    if name not in known:
        names = f": {', '.join(sorted(known))}" if known else " which is empty"
        report.add(CLAIM_UNKNOWN, at, name, known=names)


def validate_resize(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check how a container is resized while it runs."""
    seen: set[str] = set()
    path = path.child("resizePolicy")
    for index, policy in enumerate(container["resizePolicy"]):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            report.add(RESIZE_TWICE, path.index(index), name)
        seen.add(name)
        if name not in {"cpu", "memory"}:
            report.unsupported(RESIZE_ENUM, path, name, ("cpu", "memory"))
        if restart not in RESIZE_POLICIES:
            report.unsupported(RESIZE_ENUM, path, restart, RESIZE_POLICIES)
        elif pod.restart_policy == "Never" and restart != "NotRequired":
            report.add(RESIZE_NEVER, path, restart)


def validate_overhead(spec: Object, path: Path, report: Report) -> None:
    """Check what a pod costs on top of its containers."""
    _amounts(spec["overhead"], "limits", path.child("overhead"), report, _validate_name)


def validate_pod_resources(spec: Object, path: Path, report: Report) -> None:
    """Check the resources of a pod as a whole against those of its containers."""
    resources, path = spec["resources"], path.child("resources")
    if resources.get("claims"):
        report.add(POD_CLAIMS, path.child("claims"))
    _validate_requirements(resources, path, report, name_check=_validate_pod_resource)
    totals: Amounts = {}
    for container in spec.get("containers") or ():
        requests = (container.get("resources") or {}).get("requests") or {}
        for name, value in requests.items():
            amount = try_parse(value)
            totals[name] = totals.get(name, Quantity()) + amount
    requests = resources.get("requests") or {}
    for name in sorted(totals):
        given = try_parse(requests.get(name) or "0")
        if name in requests and totals[name] > given:
            at = path.child("requests").key(name)
            report.add(BELOW_CONTAINERS, at, str(given), amount=totals[name])


def _validate_pod_resource(name: str, field: str, path: Path, report: Report) -> None:
    path = path.child(field).key(name)
    if name not in {"cpu", "memory"} and not is_huge_pages(name):
        report.unsupported(POD_RESOURCE, path, name, ("cpu", "hugepages-", "memory"))
