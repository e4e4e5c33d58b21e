"""Devices that a member publishes in ResourceSlices, counted by device class, and their claims.

A device class is the resource `deviceclass/NAME`, as in Volcano's Queues: a node has as many as its
slices have devices of the class. Of the CEL of a class the conditions on the driver and on equal
attributes, joined by &&, are decided; any other counts as met, and the selectors of a request too.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, mapping, objects, string
from hyperjob_core.kube.resources import key_of
from hyperjob_engine.model.wants import REPELLING
from hyperjob_engine.resources import DEVICE_CLASS, Resources, whole

NOT_KNOWN: Final = -1
"""The amount of a class of which no one can say on which nodes its devices are."""
_DEVICES: Final = 128
"""The most devices of a ResourceSlice and of a request, as in Kubernetes."""
_ATTRIBUTES: Final = 32
"""The most attributes of a device, as in Kubernetes."""
_TEXT: Final = 64
"""The longest text that is kept: a driver, or the value of an attribute, as in Kubernetes."""
_REQUESTS: Final = 32
_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*["']([^"'\\]+)["']""")
_EQUAL: Final = re.compile(
    r"""device\.attributes\[["']([^"'\\]+)["']\]\.(\w+)\s*==\s*(["'][^"'\\]*["']|\w+)"""
)

Attributes = frozenset[tuple[str, str | None]]
"""The texts of attributes by full name, and of "" the driver; None: it differs by device."""


@dataclass(frozen=True, slots=True)
class SliceFact:
    """A ResourceSlice: how many devices of equal attributes it has on each node, "" if on many."""

    key: str
    pool: tuple[str, str]
    generation: int
    devices: tuple[tuple[str, Attributes, int], ...]


@dataclass(frozen=True, slots=True)
class ClassFact:
    """A DeviceClass: the conditions on its devices that are decided; "" is that on the driver."""

    key: str
    conditions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """A ResourceClaim: the pod that holds its devices, as namespace/name, and amounts by class."""

    key: str
    pod: str
    held: Resources


def slice_fact(raw: Object) -> SliceFact:
    """Return what the fold keeps of a ResourceSlice; devices with a repelling taint are left out.

    What differs between all devices of a slice, such as a serial number, selects no class.
    """
    spec = mapping(raw.get("spec"))
    driver = string(spec.get("driver"))[:_TEXT]
    found = [
        (string(spec.get("nodeName") or each.get("nodeName")), _attributes(each, driver))
        for each in objects(spec.get("devices"))[:_DEVICES]
        if not any(
            string(taint.get("effect")) in REPELLING for taint in objects(each.get("taints"))
        )
    ]
    values: dict[str, set[str]] = {}
    for _, attributes in found:
        for name, value in attributes.items():
            values.setdefault(name, set()).add(value)
    single = {name for name, each in values.items() if 1 < len(each) == len(found)}
    counts = Counter(
        (node, frozenset((n, None if n in single else v) for n, v in attributes.items()))
        for node, attributes in found
    )
    return SliceFact(
        key=string(at(raw, "metadata", "name")),
        pool=(driver, string(at(spec, "pool", "name"))),
        generation=count(at(spec, "pool", "generation")),
        devices=tuple((node, each, number) for (node, each), number in counts.items()),
    )


def _attributes(device: Object, driver: str) -> dict[str, str]:
    """Return the text of each attribute by its full name, DOMAIN/NAME, and of "" the driver.

    An attribute without a domain is the driver's own. A value is written as CEL writes it: true.
    """
    found = {"": driver}
    for name, value in list(mapping(device.get("attributes")).items())[:_ATTRIBUTES]:
        text = next((each for each in mapping(value).values()), None)
        full = name if "/" in name else f"{driver}/{name}"
        if isinstance(text, str | int) and len(full) <= 2 * _TEXT:
            found[full] = (str(text).lower() if isinstance(text, bool) else str(text))[:_TEXT]
    return found


def class_fact(raw: Object) -> ClassFact:
    """Return what the fold keeps of a DeviceClass."""
    conditions: list[tuple[str, str]] = []
    for each in objects(at(raw, "spec", "selectors"))[:_REQUESTS]:
        expression = string(at(each, "cel", "expression"))
        if len(expression) > 32 * _TEXT or re.search(r"\|\||[?!]", expression):
            continue
        for term in expression.split("&&"):
            if driver := _DRIVER.fullmatch(term.strip(" ()\n")):
                conditions.append(("", driver[1][:_TEXT]))
            elif equal := _EQUAL.fullmatch(term.strip(" ()\n")):
                conditions.append((f"{equal[1]}/{equal[2]}", equal[3].strip("\"'")[:_TEXT]))
    return ClassFact(string(at(raw, "metadata", "name")), tuple(conditions))


def claim_fact(raw: Object) -> ClaimFact:
    """Return what the fold keeps of a ResourceClaim.

    Of several pods that share the claim one holds its devices, so that they count once.
    """
    requests = _requests(raw.get("spec"))
    classes = {name: _class_of(each) for some in requests for name, each in some}
    held: Counter[str] = Counter()
    for each in objects(at(raw, "status", "allocation", "devices", "results"))[: 2 * _DEVICES]:
        name = classes.get(string(each.get("request")))
        if name and each.get("adminAccess") is not True:
            held[name] += whole(1)
    user = next(iter(objects(at(raw, "status", "reservedFor"))), {})
    namespace = string(at(raw, "metadata", "namespace"))
    return ClaimFact(key_of(raw), f"{namespace}/{string(user.get('name'))}", dict(held))


def _requests(spec: object) -> Iterable[Sequence[tuple[str, Object]]]:
    """Yield the alternatives of each request of a claim, by name: of several, as REQUEST/NAME."""
    for each in objects(at(spec, "devices", "requests"))[:_REQUESTS]:
        name, several = string(each.get("name")), objects(each.get("firstAvailable"))[:_REQUESTS]
        named = [(f"{name}/{string(sub.get('name'))}", sub) for sub in several]
        yield named or [(name, mapping(each.get("exactly")))]


def _class_of(request: Object) -> str:
    """Return the device class of a request as a resource; empty without one."""
    name = string(request.get("deviceClassName"))
    return f"{DEVICE_CLASS}{name}" if name else ""


def devices_of_template(raw: Object) -> Resources:
    """Return the devices by class that each pod of a ResourceClaimTemplate gets, in nano-units."""
    found: Counter[str] = Counter()
    for (_, first), *_ in _requests(at(raw, "spec", "spec")):
        name = _class_of(first)
        if name and first.get("adminAccess") is not True:
            found[name] += whole(min(count(first.get("count")) or 1, _DEVICES))
    return dict(found)


def published(
    slices: Collection[SliceFact], classes: Iterable[ClassFact]
) -> Mapping[str, Resources]:
    """Return the devices of each node by class, and under "" what any other node has.

    A node has no device of a class that is not listed for it. An older generation of a pool does
    not count. Of a class without a driver, or with devices of several nodes, nothing is known.
    """
    latest: dict[tuple[str, str], int] = {}
    for each in slices:
        latest[each.pool] = max(latest.get(each.pool, 0), each.generation)
    by_sort: dict[Attributes, Counter[str]] = {}
    for each in slices:
        for node, attributes, number in (
            each.devices if each.generation == latest[each.pool] else ()
        ):
            by_sort.setdefault(attributes, Counter())[node] += whole(number)
    common: dict[str, int] = {DEVICE_CLASS: 0}
    found: dict[str, Counter[str]] = {}
    for one in classes:
        name = f"{DEVICE_CLASS}{one.key}"
        if not any(condition == "" for condition, _ in one.conditions):
            common[name] = NOT_KNOWN
        for attributes, nodes in by_sort.items():
            if not _matches(dict(attributes), one):
                continue
            if "" in nodes:
                common[name] = NOT_KNOWN
            for node, amount in nodes.items():
                found.setdefault(node, Counter())[name] += amount
    unknown = {name: amount for name, amount in common.items() if amount == NOT_KNOWN}
    nodes_found = {node: {DEVICE_CLASS: 0, **held, **unknown} for node, held in found.items()}
    return {**nodes_found, "": common}


def _matches(attributes: Mapping[str, str | None], one: ClassFact) -> bool:
    return all(attributes.get(name, "") in (value, None) for name, value in one.conditions)
