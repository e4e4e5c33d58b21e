"""Resource vectors: exact amounts by resource name, as Kubernetes adds and compares them.

Amounts are integers in nano-units, which every Kubernetes quantity fits without rounding. A
malformed quantity reads as absent and never raises.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import DEVICES
from hyperjob_core.api.quantity import MAX, NANO, Format, Quantity
from hyperjob_core.api.wire import at
from hyperjob_engine.devices import (
    DEVICE_CLASS,
    NETWORK,
    is_companion,
    is_device,
    is_part,
    marked_devices,
    multiplier,
)

Resources: TypeAlias = Mapping[str, int]
"""Amounts in nano-units by the name of the resource."""

PODS: Final = "pods"
_BINARY: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_DECIMAL_UNITS: Final = (("n", 1), ("u", 1000), ("m", 1000**2), ("", NANO))
_BINARY_UNITS: Final = (
    *_DECIMAL_UNITS,
    *((f"{letter}i", 1024**power * NANO) for power, letter in enumerate("KMGTPE", start=1)),
)
_LETTERS: Final = 6
"""The longest amount in a message that is exact."""
_NATIVE: Final = _BINARY | {"cpu", PODS, DEVICE_CLASS}
_NATIVE_PREFIXES: Final = ("hugepages-", "attachable-volumes-")


_AMOUNTS: Final = frozenset({str, int, float})


def parse_resources(raw: object) -> dict[str, int]:
    """Parse a ResourceList into nano-units, at most MAX; skip malformed quantities."""
    if not isinstance(raw, Mapping):
        return {}
    amounts: dict[str, int] = {}
    for name, value in raw.items():
        if type(value) not in _AMOUNTS:
            continue
        try:
            amounts[str(name)] = _nano(value)
        except ValueError:
            continue
    return amounts


@lru_cache(maxsize=4096)
def _nano(value: str | float) -> int:
    """Return a quantity in nano-units; the pods of a fleet ask for few different ones."""
    return max(-MAX, min(Quantity.parse(value).nano, MAX))


def whole(number: int) -> int:
    """Return a count of pods or devices as an amount in nano-units."""
    return number * NANO


def total(vectors: Iterable[Resources]) -> dict[str, int]:
    """Add vectors up."""
    result: dict[str, int] = {}
    for vector in vectors:
        for name, amount in vector.items():
            result[name] = result.get(name, 0) + amount
    return result


def scale(vector: Resources, factor: int) -> dict[str, int]:
    """Multiply every amount."""
    return {name: amount * factor for name, amount in vector.items()}


def subtract(left: Resources, right: Resources) -> dict[str, int]:
    """Return left minus right over the names of both; an amount may be negative."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = result.get(name, 0) - amount
    return result


def largest(left: Resources, right: Resources) -> dict[str, int]:
    """Return the greater amount per name."""
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {*left, *right}}


def is_asked(name: str, free: Resources) -> bool:
    """Return whether a node or a cluster with `free` is asked for a resource.

    It is not for a part of a shared device that no node lists: that is absent here, or below zero
    once pods with such a part are counted. A device class is not known where none is listed.
    """
    if name.startswith(DEVICE_CLASS):
        return free.get(name, free.get(DEVICE_CLASS, -1)) >= 0
    return not is_companion(name) or free.get(name, -1) >= 0


def fits(demand: Resources, free: Resources) -> bool:
    """Return whether `free` has every resource of `demand` in full that is asked for."""
    for name, amount in demand.items():
        if amount > 0 and amount > free.get(name, 0) and is_asked(name, free):
            return False
    return True


def times(free: Resources, demand: Resources, *, default: int) -> int:
    """Return how often `free` has a demand, by the rule of `fits`; `default` if it asks nothing."""
    numbers = (
        free.get(name, 0) // amount
        for name, amount in demand.items()
        if amount > 0 and is_asked(name, free)
    )
    return max(0, min(numbers, default=default))


def lacking(demand: Resources, free: Resources) -> dict[str, int]:
    """Return the missing amount per resource; empty exactly if the demand fits."""
    missing: dict[str, int] = {}
    for name, amount in demand.items():
        gap = amount - max(free.get(name, 0), 0)
        if gap > 0 and is_asked(name, free):
            missing[name] = gap
    return missing


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource of a device plugin, not a native one."""
    return name not in _NATIVE and not name.startswith(_NATIVE_PREFIXES)


def is_counted(name: str) -> bool:
    """Return whether use is shown of a resource: extended, no part of a device, no interface."""
    return is_extended(name) and not is_companion(name) and NETWORK.fullmatch(name) is None


def accelerator_of(demand: Resources) -> str | None:
    """Return the name of a demand's accelerator, else of its largest extended resource.

    The memory or the cores of a shared device count only without any other. Network interfaces
    are no accelerators.
    """
    extended = [
        name
        for name, amount in demand.items()
        if is_extended(name) and amount > 0 and NETWORK.fullmatch(name) is None
    ]
    known = [name for name in extended if is_device(name)]
    extended = [name for name in extended if not is_part(name)] or extended
    return min(known or extended, key=lambda name: (-demand[name], name), default=None)


def devices_in(request: Resources) -> int:
    """Return how many accelerators one pod has; a part of a device alone is of one device."""
    name = accelerator_of(request)
    if name is None:
        return 0
    return 1 if is_part(name) else request[name] // NANO


def measure_of(demand: Resources) -> str:
    """Return the name of the resource that compares demands: `accelerator_of`, else `cpu`."""
    return accelerator_of(demand) or "cpu"


def order_of(name: str) -> tuple[int, str]:
    """Return a sort key: accelerators, other extended resources, native resources, pods."""
    if name == PODS:
        return 3, name
    if not is_extended(name):
        return 2, name
    return (0 if is_device(name) else 1), name


def amount_text(name: str, amount: int) -> str:
    """Return an amount of nano-units with its resource, for people: `64 nvidia.com/gpu`."""
    return f"{amount_only(name, amount)} {name}"


def amount_only(name: str, amount: int) -> str:
    """Return an amount for people: a long one is rounded to three digits, 99500m is 99.5."""
    if is_extended(name) and amount % NANO == 0:
        return str(amount // NANO)  # a whole number of devices has no suffix such as k
    exact = _canonical(name, amount)
    is_short = len(exact) <= _LETTERS and not (exact.endswith("m") and abs(amount) >= 10 * NANO)
    return exact if is_short else _rounded(name, amount)


def _rounded(name: str, amount: int) -> str:
    """Return an amount with three digits, in the unit in which people write it."""
    units = _BINARY_UNITS if _is_binary(name) else _DECIMAL_UNITS
    unit, size = [(unit, size) for unit, size in units if size <= abs(amount)][-1]
    number = Decimal(amount) / size  # a float has no room for an amount that a user may write
    if number.adjusted() > _LETTERS:
        return f"{number:.2E}{unit}"
    text = f"{number:.{max(0, 2 - number.adjusted())}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + unit


def quantities(vector: Resources) -> dict[str, str]:
    """Return amounts as a ResourceList, in Kubernetes' canonical form."""
    return {name: _canonical(name, amount) for name, amount in sorted(vector.items())}


def _is_binary(name: str) -> bool:
    return name in _BINARY or name.startswith("hugepages-")


def _canonical(name: str, amount: int) -> str:
    form = Format.BINARY_SI if _is_binary(name) else Format.DECIMAL_SI
    return Quantity(amount, form).canonical


def accumulate(sums: dict[str, int], demand: Resources, sign: int) -> None:
    """Add `sign` times a demand to `sums` in place; remove a resource whose sum becomes 0."""
    for name, amount in demand.items():
        left = sums.get(name, 0) + sign * amount
        if left:
            sums[name] = left
        else:
            sums.pop(name, None)


def pod_request(pod_spec: Object) -> dict[str, int]:
    """Return the request of one pod, in nano-units, as the Kubernetes scheduler computes it.

    It is the larger of the sum over containers and sidecars and of the largest init container.
    A limit replaces an absent request, pod-level requests override the sum, and the pod's
    overhead is added.
    """
    running = total(map(_container_request, _containers(pod_spec, "containers")))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in _containers(pod_spec, "initContainers"):
        step = total((sidecars, _container_request(container)))
        peak = largest(peak, step)
        if container.get("restartPolicy") == "Always":
            sidecars = step
    result = largest(total((running, sidecars)), peak)
    resources = pod_spec.get("resources")
    if isinstance(resources, Mapping):
        result.update(parse_resources(resources.get("requests")))
    return total((_times_devices(result), parse_resources(pod_spec.get("overhead"))))


def devices_of(metadata: object) -> dict[str, int]:
    """Return the devices of resource claims that the metadata of a pod has, in nano-units."""
    mark = at(metadata, "annotations", DEVICES)
    found = marked_devices(mark) if isinstance(mark, str) else {}
    return {name: whole(number) for name, number in found.items()}


def _times_devices(request: dict[str, int]) -> dict[str, int]:
    """Return a request whose amounts for each device are those of all its devices."""
    for name in [name for name in request if multiplier(name)]:
        request[name] *= max(1, request.get(multiplier(name), 0) // NANO)
    return request


def _containers(pod_spec: Object, field: str) -> list[Object]:
    containers = pod_spec.get(field)
    if not isinstance(containers, list):
        return []
    return [container for container in containers if isinstance(container, dict)]


def _container_request(container: Object) -> dict[str, int]:
    resources = container.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    limits, requests = (parse_resources(resources.get(key)) for key in ("limits", "requests"))
    return {**limits, **requests}
