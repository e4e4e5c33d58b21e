"""Arithmetic on resource lists: what a pod asks for, what is left of a node.

Pure functions over `{name: Quantity}`; a missing name means zero. It must never know
which resources exist: accelerators are names like any other.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from hyperjob.api.meta import Object
from hyperjob.api.quantity import Format, Quantity

Resources = dict[str, Quantity]

_ZERO = Quantity()
_BINARY_NAMES = ("memory", "ephemeral-storage", "hugepages-")


def parse(wire: Mapping[str, str | int | float] | None) -> Resources:
    """Read a wire resource list; raises ValueError on a malformed amount."""
    return {name: amount(str(text)) for name, text in (wire or {}).items()}


def wire(resources: Mapping[str, Quantity]) -> dict[str, str]:
    """Write a resource list, without zero amounts, names sorted."""
    return {name: str(amount) for name, amount in sorted(resources.items()) if amount}


def nano(resources: Mapping[str, Quantity]) -> dict[str, int]:
    """Return the amounts in nano-units."""
    return {name: amount.nano for name, amount in resources.items()}


def total(lists: Iterable[Mapping[str, Quantity]]) -> Resources:
    """Add up resource lists."""
    result: Resources = {}
    for each in lists:
        for name, amount in each.items():
            result[name] = result[name] + amount if name in result else amount
    return result


def subtract(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Resources:
    """Subtract a resource list; amounts may become negative."""
    return {**left, **{name: left.get(name, _ZERO) - amount for name, amount in right.items()}}


def times(resources: Mapping[str, Quantity], factor: int) -> Resources:
    """Multiply a resource list."""
    return {name: amount * factor for name, amount in resources.items()}


def allocatable(node: Object) -> Resources:
    """Return what a node can hold in all."""
    return parse((node.get("status") or {}).get("allocatable"))


def pod_requests(spec: Object) -> Resources:
    """Return what a pod asks for: its containers together, or its largest init container."""
    needed = total(map(_container_requests, spec.get("containers") or ()))
    for container in spec.get("initContainers") or ():
        for name, amount in _container_requests(container).items():
            needed[name] = max(amount, needed.get(name, _ZERO))
    return total([needed, parse(spec.get("overhead"))])


def normalise(resources: Mapping[str, Quantity]) -> Resources:
    """Write memory-like amounts in binary and all others in decimal notation, as totals are."""
    return {
        name: Quantity(
            amount.nano,
            Format.BINARY_SI if name.startswith(_BINARY_NAMES) else Format.DECIMAL_SI,
        )
        for name, amount in resources.items()
    }


@lru_cache(maxsize=4096)
def amount(text: str) -> Quantity:
    """Read one amount; the same few texts come again and again."""
    return Quantity.parse(text)


def _container_requests(container: Object) -> Resources:
    """Return what a container asks for; a limit without a request counts as the request."""
    declared: Object = container.get("resources") or {}
    return {**parse(declared.get("limits")), **parse(declared.get("requests"))}
