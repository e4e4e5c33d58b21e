"""Gangs behind our own queues: Karmada, members and a controller that may die, in any order.

What the controller knows of queues is as old as their last message. What it admits is counted
here anew, from objects, records and its word, never from its cache.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import jsonpatch

from hyperjob_engine.expansion.expand import demand_of
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.queueing.queues import parse_queue
from hyperjob_engine.queueing.state import admitted, set_queues
from hyperjob_rules.stamp import stamp
from tests.unit.controller.gangworld import ENDED, GangWorld, gpus_of, phase_of
from tests.unit.engine.builders import GPU, Object


@dataclass
class QueuedGangs(GangWorld):
    """`quotas` are the capabilities of the queues; `allowed` is what they may have come to hold."""

    closed: set[str] = field(default_factory=set)
    lending: set[str] = field(default_factory=set)
    specs: dict[str, Object] = field(default_factory=dict)  # what else Queues say: order, parent
    heard: dict[str, Object] = field(default_factory=dict)
    allowed: Counter[str] = field(default_factory=Counter)
    refused: set[str] = field(default_factory=set)  # clusters that Karmada schedules nothing on
    unschedulable: set[str] = field(default_factory=set)  # HyperJobs that it schedules nowhere
    granted_first: dict[str, int] = field(default_factory=dict)
    heals: bool = True

    @classmethod
    def of(
        cls,
        sizes: list[int],
        quotas: list[int],
        *,
        admission: QueueAdmission = QueueAdmission.BUILTIN,
    ) -> "QueuedGangs":
        """Make an empty world whose queues are known."""
        world = cls(
            clusters={},
            admission=admission,
            sizes={f"c{i}": size for i, size in enumerate(sizes)},
            quotas={f"q{i}": quota for i, quota in enumerate(quotas)},
        )
        world.granted_first = dict(world.quotas)
        world.restart()
        world.clusters_change()
        return world

    # what the controller sees and does

    def work(self, name: str, *, dies_after: int | None = None) -> Plan:
        """Make a pass, and see that no queue holds too much after it."""
        decided = super().work(name, dies_after=dies_after)
        self.check_limits()
        return decided

    def queues_arrive(self) -> None:
        """Let the controller see the queues as they are now."""
        self.heard = {
            name: {
                "metadata": {"name": name},
                "spec": {
                    "capability": {GPU: str(quota)},
                    "reclaimable": name in self.lending,
                    **self.specs.get(name, {}),
                },
                "status": {"state": "Closed" if name in self.closed else "Open"},
            }
            for name, quota in self.quotas.items()
        }
        self.allowed = self.holding()
        set_queues(self.state, map(parse_queue, self.heard.values()))
        self.woken = True

    # what others do

    def release(self, *, at_most: int = 99, in_turn: bool = False) -> None:
        """Play a round in which only this controller releases."""
        before = {key: admitted(self.state, key) for key in self.state.entries}
        for key in self.round():
            for part in self.state.entries[key].unit.parts:
                if part.name in admitted(self.state, key) - before[key]:
                    assert not self.closed_by(part.queue, self.heard), "started by a closed queue"
        self.check_limits()

    def heal(self) -> None:
        """Bring all clusters back, and queues too unless they are to stay as they are."""
        super().heal()
        self.refused.clear()
        if self.heals:
            self.unschedulable.clear()
            self.quotas |= self.granted_first
            self.closed.clear()
        self.queues_arrive()

    def schedule(self) -> None:
        """Let Karmada's scheduler read the pins, those that it can follow."""
        lost = set(self.lost)
        self.lost |= self.refused
        super().schedule()
        self.lost = lost
        for key, known in self.bindings.items():
            if key.rsplit("-", 3)[0] in self.unschedulable:
                known["spec"].pop("clusters", None)
                condition = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}
                known.setdefault("status", {})["conditions"] = [condition]

    # looking

    def holding(self) -> Counter[str]:
        """Count what each queue holds: what exists, is recorded as admitted, or was granted."""
        held: Counter[str] = Counter()
        for name, raw in self.hyperjobs.items():
            if self.phase(name) in ENDED:
                continue
            hyperjob = parse_hyperjob(raw)
            record_ = hyperjob.gang
            gave = record_ is not None and record_.retry_time is not None
            gave = gave and self.now < record_.retry_time
            granted = admitted(self.state, f"default/{name}")
            for group in hyperjob.replicated_jobs:
                gpus = gpus_of(demand_of(group.template))
                for index in range(group.replicas):
                    child = f"{name}-{group.name}-{index}"
                    job, record = self.jobs.get(child), hyperjob.records.get(child)
                    if job is not None and phase_of(job) in ENDED:
                        continue
                    recorded = record is not None and record.admitted and not gave
                    if job is not None or child in granted or recorded:
                        for queue in path_of(str(group.template["queue"]), self.heard):
                            held[queue] += gpus
        return held

    def check_limits(self) -> None:
        """Assert that no queue holds more than its capability, or than when that was lowered."""
        held = self.holding()
        for name, raw in self.heard.items():
            most = max(int(raw["spec"]["capability"][GPU]), self.allowed[name])
            assert held[name] <= most, f"queue {name} holds {held[name]}, may hold {most}"
            self.allowed[name] = held[name]

    def waits_in_vain(self, name: str) -> bool:
        """Tell whether open queues and their capabilities would let a HyperJob go, were it alone.

        The smallest sub-jobs come first, so that no choice is overlooked.
        """
        if name in self.unschedulable:
            return False
        hyperjob = parse_hyperjob(self.hyperjobs[name])
        left: list[tuple[int, str]] = []
        ended = 0
        for group in hyperjob.replicated_jobs:
            for index in range(group.replicas):
                job = self.jobs.get(f"{name}-{group.name}-{index}")
                if job is not None and phase_of(job) in ENDED:
                    ended += 1
                else:
                    left.append((gpus_of(demand_of(group.template)), str(group.template["queue"])))
        if any(self.closed_by(queue, self.heard) for _, queue in left):
            return False
        used: Counter[str] = Counter()
        allowed = 0
        for gpus, queue in sorted(left):
            path = path_of(queue, self.heard)
            if all(used[each] + gpus <= self.quotas[each] for each in path):
                used.update(dict.fromkeys(path, gpus))
                allowed += 1
        total_ = len(left) + ended
        least = min(hyperjob.min_available or total_, total_)
        return allowed >= max(1, least - ended)

    @staticmethod
    def closed_by(queue: str, queues: Mapping[str, Object]) -> bool:
        """Tell whether a queue, or one above it, is closed."""
        return any(queues[each]["status"]["state"] == "Closed" for each in path_of(queue, queues))

    def _admit(self, key: str, obj: Object, operation: str) -> None:
        self.bindings[key] = jsonpatch.apply_patch(obj, list(stamp(obj, operation=operation)))


def path_of(queue: str, queues: Mapping[str, Object]) -> list[str]:
    """Return a queue and those above it but root."""
    parent = queues[queue]["spec"].get("parent", "root")
    return [queue, *(path_of(parent, queues) if parent != "root" else ())]
