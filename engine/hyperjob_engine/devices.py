"""The table of devices: which extended resources count accelerators, and which describe a part.

A device that several pods share has companions: its memory, its cores, a share in per cent. They
say how much of each counted device a pod gets, and are no devices themselves. A companion that a
node does not list is Volcano's to judge: some devices make its scheduler ignore it, and else its
PodGroup says that the gang finds no nodes. The rows are those of the device plugins of Volcano,
HAMi, NVIDIA and Ascend. A resource in no row counts as what it is: amounts of something.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hyperjob_core.api.formats import qualified_name


@dataclass(frozen=True, slots=True)
class Row:
    """One family of resources: the names of counted devices, and of their companions.

    The patterns match whole names. `each` is the counted device for each of which an amount of a
    companion is meant: a pod of several devices takes it as often. Empty: the amount is the pod's.
    """

    counted: str
    companions: str = ""
    each: str = ""


DEVICES: Final = (
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
_TABLE.use(DEVICES)


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
    _TABLE.use((*rows, *DEVICES))
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
    return next(row.each for row in DEVICES if row.each.startswith(f"{vendor}/"))
