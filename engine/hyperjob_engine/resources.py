"""Resource vectors: exact amounts by resource name, and which of them count accelerators.

Amounts are integers in nano-units, as Kubernetes adds and compares them, which every quantity fits
without rounding. A malformed quantity reads as absent and never raises.

A device that several pods share has companions: its memory, its cores, a share in per cent. They
say how much of each counted device a pod gets, and are no devices themselves. A companion that a
node does not list is Volcano's to judge: some devices make its scheduler ignore it, and else its
PodGroup says that the gang finds no nodes. The rows of the table of devices are those of the device
plugins of Volcano, HAMi, NVIDIA and Ascend. A resource in no row counts as amounts of something.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

from hyperjob_core.api.formats import qualified_name
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import DEVICES
from hyperjob_core.api.quantity import MAX, NANO, Format, Quantity
from hyperjob_core.api.wire import at


@dataclass(frozen=True, slots=True)
class Row:
    """One family of resources: the names of counted devices, and of their companions.

    The patterns match whole names. `each` is the counted device for each of which an amount of a
    companion is meant: a pod of several devices takes it as often. Empty: the amount is the pod's.
    """

    counted: str
    companions: str = ""
    each: str = ""


_ROWS: Final = (
    Row(
        r"volcano\.sh/vgpu-number",
        r"volcano\.sh/vgpu-(memory|cores|memory-percentage)",
        each="volcano.sh/vgpu-number",
    ),
    Row(r"volcano\.sh/gpu-number", r"volcano\.sh/gpu-memory"),
    Row(r"nvidia\.com/gpu(\.shared)?", r"nvidia\.com/(gpumem|gpumem-percentage|gpucores|priority)"),
    Row(r"nvidia\.com/mig-[0-9a-z.+-]+"),
    Row(r"(huawei|ascend)\.com/Ascend[0-9A-Za-z.-]*?", r"huawei\.com/Ascend.*-(memory|core|cores)"),
    Row(r"huawei\.com/npu", r"huawei\.com/npu-(core|memory)"),
    Row(r"hygon\.com/dcu(num)?", r"hygon\.com/dcu(mem|cores)"),
    Row(r"cambricon\.com/v?mlu[0-9]*", r"cambricon\.com/mlu(mem|.*\.smlu\.(vmemory|vcore))"),
    Row(
        r"iluvatar\.(ai|com)/v?gpu", r"iluvatar\.(ai|com)/(vcuda-core|vcuda-memory|.*\.v(Core|Mem))"
    ),
    Row(r"metax-tech\.com/s?gpu", r"metax-tech\.com/(vcore|vmemory)"),
    Row(
        r"enflame\.com/(v|shared-|drs-)?gcu(-count)?",
        r"enflame\.com/(vgcu-percentage|gcu-(core|memory))",
    ),
    Row(r"kunlunxin\.com/v?xpu", r"kunlunxin\.com/vxpu-memory"),
    Row(r"mthreads\.com/[sv]?gpu", r"mthreads\.com/sgpu-(core|memory)"),
    Row(r"aws\.amazon\.com/neuron(core|device)?"),
    Row(r"(amd|intel|gpu\.intel)\.com/(gpu|i915|xe)|habana\.ai/gaudi|google\.com/tpu"),
)
DEVICE_CLASS: Final = "deviceclass/"
"""What the resource of a device class of Kubernetes begins with, as in Volcano's Queues.

A node that has an amount of this name alone, 0, lists all of its device classes.
"""
_PARTS: Final = 64
_COUNT: Final = re.compile(r"([a-z0-9.-]{1,253})=([1-9][0-9]{0,3})")
NETWORK: Final = re.compile(
    r"(rdma|openshift\.io|mellanox\.com|vpc\.amazonaws\.com|intel\.com/sriov[^/]*)/.*"
    r"|nvidia\.com/(hostdev|rdma|sriov).*|.*/(hca|roce|ib|e?rdma|efa|(gpu-)?nic)[0-9a-z_.-]*",
    re.IGNORECASE,
)
"""Network interfaces, which a pod has beside its accelerators."""

_LONGEST: Final = 4096
_SPOKEN: Final = re.compile(r"gpu|npu|ascend|gaudi|tpu|neuron|mlu|dcu|accelerator", re.IGNORECASE)
_PART: Final = re.compile(
    r"(memory(\.max|-ratio)?|mem|cores?|percentage|tiles|monitoring)$", re.IGNORECASE
)


class _Table:
    """The rows that count, as one pattern for each question."""

    def use(self, rows: Iterable[Row]) -> None:
        rows = tuple(rows)
        self.counted = re.compile("|".join(row.counted for row in rows))
        self.companion = re.compile("|".join(row.companions for row in rows if row.companions))
        self.for_each = re.compile("|".join(row.companions for row in rows if row.each))


_TABLE: Final = _Table()
_TABLE.use(_ROWS)


def parse_rows(text: str) -> tuple[Row, ...]:
    """Return rows of names, such as `example.com/npu:example.com/npu-memory+example.com/npu-cores`.

    Commas separate rows; the companions are optional. Raises ValueError for another text, and
    beyond 4,096 characters.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"at most {_LONGEST} characters")
    rows = []
    for each in filter(None, text.split(",")):
        counted, _, companions = each.partition(":")
        names = [counted, *filter(None, companions.split("+"))]
        for name in names:
            if qualified_name(name) or "/" not in name:
                raise ValueError(f"{name!r} is no name of an extended resource, as example.com/npu")
        rows.append(Row(re.escape(counted), "|".join(map(re.escape, names[1:]))))
    return tuple(rows)


def add_rows(rows: Iterable[Row]) -> None:
    """Let an administrator's rows count beside the table, in this process, before any decision."""
    _TABLE.use((*rows, *_ROWS))
    for each in (is_companion, is_device, multiplier):
        each.cache_clear()


@lru_cache(maxsize=1024)
def is_companion(name: str) -> bool:
    """Return whether a resource describes a part of a counted device."""
    return _TABLE.companion.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def is_device(name: str) -> bool:
    """Return whether a resource counts accelerators: by its row, or by its own word for one."""
    if is_part(name):
        return False
    if _TABLE.counted.fullmatch(name) is not None:
        return True
    return NETWORK.fullmatch(name) is None and _SPOKEN.search(name) is not None


def is_part(name: str) -> bool:
    """Return whether a resource is the memory, the cores or a share of devices, not their number.

    Other than companions, those in no row may well be listed by nodes alone, without a device.
    """
    if is_companion(name):
        return True
    return _PART.search(name) is not None and _TABLE.counted.fullmatch(name) is None


def marked_devices(mark: str) -> dict[str, int]:
    """Return the numbers of devices by resource in the annotation DEVICES of a pod: `a=2,b=1`."""
    found = (_COUNT.fullmatch(each) for each in mark.split(",", _PARTS)[:_PARTS])
    return {f"{DEVICE_CLASS}{each[1]}": int(each[2]) for each in found if each}


def device_mark(numbers: Mapping[str, int]) -> str:
    """Return the annotation DEVICES of a pod with these devices."""
    pairs = sorted((name.removeprefix(DEVICE_CLASS), each) for name, each in numbers.items())
    return ",".join(f"{name}={each}" for name, each in pairs)


@lru_cache(maxsize=1024)
def multiplier(name: str) -> str:
    """Return the counted resource by whose number an amount is multiplied; empty: none."""
    if _TABLE.for_each.fullmatch(name) is None:
        return ""
    vendor = name.partition("/")[0]
    return next(row.each for row in _ROWS if row.each.startswith(f"{vendor}/"))


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
