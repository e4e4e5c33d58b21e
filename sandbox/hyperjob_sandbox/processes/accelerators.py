"""Accelerators as numbered slots of a node: a container gets the number that it requests."""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO, Quantity

VARIABLES: Final[Mapping[str, str]] = {
    "nvidia.com/gpu": "CUDA_VISIBLE_DEVICES",
    "amd.com/gpu": "ROCR_VISIBLE_DEVICES",
    "huawei.com/Ascend910": "ASCEND_VISIBLE_DEVICES",
}
"""The environment variable with a program's devices, by resource name."""


class Slots:
    """The slots in use on every node, by resource and pod."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, str], dict[int, str]] = {}

    def take(self, pod: Object, container: Object) -> dict[str, str]:
        """Allocate slots to a container; return the environment variables with their numbers."""
        node = str(pod["spec"].get("nodeName", ""))
        owner = f"{pod['metadata']['uid']}/{container['name']}"
        limits = (container.get("resources") or {}).get("limits") or {}
        found = {}
        for resource, variable in VARIABLES.items():
            number = Quantity.parse(limits.get(resource, 0)).nano // NANO
            if number <= 0:
                continue
            used = self._used.setdefault((node, resource), {})
            mine = [slot for slot, holder in used.items() if holder == owner]
            slot = 0
            while len(mine) < number:
                if slot not in used:
                    used[slot] = owner
                    mine.append(slot)
                slot += 1
            found[variable] = ",".join(map(str, sorted(mine)))
        return found

    def give_back(self, pod: Object) -> None:
        """Free the slots of a pod."""
        prefix = f"{pod['metadata']['uid']}/"
        for used in self._used.values():
            for slot in [slot for slot, owner in used.items() if owner.startswith(prefix)]:
                del used[slot]
