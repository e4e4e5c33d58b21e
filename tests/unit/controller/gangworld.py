"""Karmada, Volcano Global, members and a controller that may die, in one thread and in any order.

Every step is a method: tests choose the order. What the controller reads of bindings is as old as
the last delivery; what it is woken by is what the real one is woken by, and nothing else.
"""

import copy
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import jsonpatch

from hyperjob_controller.memory import SETTLE_SECONDS, Unplaced
from hyperjob_core.api.names import GATE, GATE_OPEN, binding_name
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.expansion.expand import demand_of
from hyperjob_engine.gang.gang import follows_opening, is_through, opens_gate
from hyperjob_engine.model.observed import Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.parse import parse_binding, parse_hyperjob
from hyperjob_engine.model.planned import Action, CreateChild, DeleteChild, OpenGate, Plan, Repin
from hyperjob_engine.model.subjobs import child_of, choosing
from hyperjob_engine.placement.capacity import less
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.confirm import BuiltinQueues, Confirmer, NoConfirmation, VolcanoGlobal
from hyperjob_engine.queueing.evict import next_change
from hyperjob_engine.queueing.messages import stale_messages
from hyperjob_engine.queueing.queues import parse_queue
from hyperjob_engine.queueing.quota import Charge, Charges, Forecast, forecast_dispatch
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.queueing.reserve import reserved
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import (
    QueueState,
    Settings,
    new_state,
    requeue,
    set_queues,
    update,
)
from hyperjob_engine.queueing.verdict import choice_in, is_contended, verdict_of
from hyperjob_engine.resources import Resources
from hyperjob_rules.stamp import stamp
from tests.unit.engine.builders import GPU, Object, binding, cluster, vcjob_status
from tests.unit.engine.world import World

LIMIT = timedelta(minutes=5)
LAG = timedelta(seconds=30)
RUNS = timedelta(minutes=2)
ENDED = ("Completed", "Failed")


@dataclass
class GangWorld(World):
    """`sizes` in accelerators by cluster, `quotas` by queue; `foreign` is what others use."""

    sizes: dict[str, int] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=dict)
    foreign: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    seen: dict[str, Object] = field(default_factory=dict)
    due: dict[str, None] = field(default_factory=dict)
    timers: dict[str, datetime] = field(default_factory=dict)
    waiting: Unplaced = field(init=False)
    state: QueueState = field(init=False)
    verdict: QueueVerdict = field(default_factory=QueueVerdict)
    woken: bool = True
    urgency: Counter[str] = field(default_factory=Counter)  # priorities of HyperJobs
    ends: dict[str, datetime] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    given_back: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(
        cls,
        sizes: list[int],
        quotas: list[int],
        *,
        admission: QueueAdmission = QueueAdmission.VOLCANO_GLOBAL,
    ) -> "GangWorld":
        """Make an empty world."""
        world = cls(
            clusters={},
            admission=admission,
            sizes={f"c{i}": size for i, size in enumerate(sizes)},
            quotas={f"q{i}": quota for i, quota in enumerate(quotas)},
        )
        world.clusters_change()
        return world

    def __post_init__(self) -> None:
        """Begin with nobody who waits."""
        self._forget()

    # what the controller sees and does

    def observe(self, name: str) -> Observed:
        """Look with the controller's eyes."""
        found, key = super().observe(name), f"default/{name}"
        choice = choice_in(self.state, key)
        found = replace(found, hyperjob=choosing(found.hyperjob, choice))
        bindings = [parse_binding(self.seen[key]) for key in self._keys(name) if key in self.seen]
        promised, forecast = reserved(self.state, but=key), self._forecast()
        found = replace(
            found,
            bindings={item.name: item for item in bindings},
            gang_timeout=LIMIT,
            priority=self.urgency[name],
            contended=is_contended(self.state, key),
            clusters=tuple(less(each, promised.get(each.name, ())) for each in found.clusters),
            passed_over=frozenset(each.partition("/")[2] for each in forecast.passed_over),
        )
        self.woken |= update(self.state, key, unit_of(found), now=self.now)
        self.verdict = verdict_of(self.state, key)
        return replace(found, verdict=self.verdict)

    def submit(self, raw: Object) -> None:
        """Create a HyperJob."""
        self.hyperjobs[raw["metadata"]["name"]] = raw
        self.due[raw["metadata"]["name"]] = None

    def work(self, name: str, *, dies_after: int | None = None) -> Plan:
        """Make a pass; a controller that dies carries out some actions and writes no status."""
        self.due.pop(name, None)
        observed = self.observe(name)
        decided = plan(observed)
        assert decided == plan(observed), "equal inputs give equal outputs"
        self._check(observed, decided)
        before = self.free()
        pins = {job: policy.clusters[0] for job, policy in observed.policies.items()}
        for action in decided.actions[:dies_after]:
            before_it = copy.deepcopy(self.policies.get(action.name))
            self._apply(name, action)
            if not (isinstance(action, OpenGate) and self._only_opens(before_it, action)):
                self.due[name] = None
        if dies_after is not None:
            self.restart()
            return decided
        self._check_room(before, pins, decided)
        if decided.status is not None:
            old = parse_hyperjob(self.hyperjobs[name]).gang
            self.hyperjobs[name]["status"] = copy.deepcopy(decided.status)
            new = parse_hyperjob(self.hyperjobs[name]).gang
            if new is not None and new.attempts > (old.attempts if old is not None else 0):
                self.given_back[name] += 1
        self.timers.pop(name, None)
        if decided.requeue_after is not None:
            self.timers[name] = self.now + max(decided.requeue_after, timedelta(milliseconds=1))
        if decided.waits_for_capacity:
            self.waiting.put(name, needs=decided.needs)
        else:
            self.waiting.drop(name)
        self._wake(before)
        self._passed(name)
        return decided

    def _passed(self, name: str) -> None:
        """Take back what was granted before a pass and was not made by it."""
        key, verdict = f"default/{name}", self.verdict
        entry = self.state.entries.get(key)
        if entry is None or not entry.granted & verdict.admitted:
            return
        self.observe(name)
        rest = requeue(self.state, key, verdict.admitted, now=self.now)
        if rest is not None:
            self.woken = True
            self.timers[name] = min(self.timers.get(name, self.now + rest), self.now + rest)

    def round(self) -> list[str]:
        """Play a round of the queue engine, if anything woke it; return who was granted."""
        wait = next_change(self.state, now=self.now)
        if not self.woken and wait != timedelta():
            return []
        self.woken = False
        room = self.free()
        clusters = [replace(each, free=room[each.name]) for each in self.clusters.values()]
        granted = schedule(self.state, clusters, now=self.now).keys
        for key in [*granted, *(stale.key for stale in stale_messages(self.state, now=self.now))]:
            self.due[key.partition("/")[2]] = None
        for key in self._forecast().passed_over:
            self.due[key.partition("/")[2].rsplit("-", 2)[0]] = None
        return granted

    def restart(self) -> None:
        """Start the controller anew: it remembers nothing and looks at all."""
        self.timers.clear()
        self._forget()
        for name in self.hyperjobs:
            self.due[name] = None
            self.observe(name)

    def queues_arrive(self) -> None:
        """Let the controller see the queues as they are now."""
        spec = {name: {"capability": {GPU: str(most)}} for name, most in self.quotas.items()}
        queues = [
            parse_queue({"metadata": {"name": name}, "spec": each, "status": {"state": "Open"}})
            for name, each in spec.items()
        ]
        set_queues(self.state, queues)
        self.woken = True

    def deliver(self, name: str) -> None:
        """Let the controller see how the bindings of a HyperJob are now."""
        for key in self._keys(name):
            now, was = self.bindings.get(key), self.seen.get(key)
            if now != was and not self._follows(key, was, now):
                self.due[name] = None
            if now is None:
                self.seen.pop(key, None)
            else:
                self.seen[key] = copy.deepcopy(now)

    def _only_opens(self, before: Object | None, action: OpenGate) -> bool:
        """Tell whether no pass follows an opening: no binding was written, only the policy."""
        return action.binding_uid is None and opens_gate(before, self.policies.get(action.name))

    def _follows(self, key: str, was: Object | None, now: Object | None) -> bool:
        """Tell whether a binding does nothing but follow its policy's open gate."""
        if was is None or now is None:
            return False
        policy = self.policies.get(key.removesuffix("-job"))
        if not follows_opening(was, now, policy=policy, binding=parse_binding(now)):
            return False
        bare = [{**each, "spec": {**each["spec"], "suspension": {}}} for each in (was, now)]
        return bare[0] == bare[1]

    def time_is_up(self) -> None:
        """Have the controller look again at those it wanted to by now."""
        for name in [name for name, at in self.timers.items() if at <= self.now]:
            del self.timers[name]
            self.due[name] = None

    # what others do

    def bind(self) -> None:
        """Let Karmada's detector make bindings, and bring policies into those that are there."""
        for name, raw in self.jobs.items():
            where = self.policies.get(name)
            if where is None:
                continue
            key, uid = binding_name(name), raw["metadata"]["uid"]
            known = self.bindings.get(key)
            created = known is None or known["metadata"]["ownerReferences"][0]["uid"] != uid
            if known is None or created:
                known = binding(name)
                known["metadata"]["ownerReferences"][0]["uid"] = uid
                self.order[key] = len(self.order)
            held = where["spec"].get("suspension", {}).get("dispatching")
            suspension = known["spec"].setdefault("suspension", {})
            suspension |= {"dispatching": True} if held else {}
            if not held:
                suspension.pop("dispatching", None)
            known["spec"]["placement"] = where["spec"]["placement"]
            self._admit(key, known, "CREATE" if created else "UPDATE")
        for key in [key for key in self.bindings if key.removesuffix("-job") not in self.jobs]:
            del self.bindings[key]

    def release(self, *, at_most: int = 99, in_turn: bool = False) -> None:
        """Let the engine grant, and Volcano Global release by age and quota, or in turn."""
        self.round()
        if self.admission is not QueueAdmission.VOLCANO_GLOBAL:
            return
        used: Counter[str] = Counter()
        suspended = []
        for key in sorted(self.bindings, key=lambda key: self._turn(key, in_turn=in_turn)):
            job = self.jobs.get(key.removesuffix("-job"))
            if job is None:
                continue
            if self.bindings[key]["spec"]["suspension"].get("scheduling"):
                suspended.append((key, job))
            elif phase_of(job) not in ENDED:
                used[job["spec"]["queue"]] += gpus_of(demand_of(job["spec"]))
        for key, job in suspended:
            queue, gpus = job["spec"]["queue"], gpus_of(demand_of(job["spec"]))
            if at_most > 0 and used[queue] + gpus <= self.quotas[queue]:
                used[queue] += gpus
                at_most -= 1
                self.bindings[key]["spec"]["suspension"] = {"scheduling": False}
                self._admit(key, self.bindings[key], "UPDATE")
                self.woken = True

    def release_again(self, key: str) -> None:
        """Let a release that was sent before arrive a second time."""
        if not self.bindings[key]["spec"]["suspension"].get("scheduling"):
            self.bindings[key]["spec"]["suspension"] = {"scheduling": False}
            self._admit(key, self.bindings[key], "UPDATE")

    def schedule(self) -> None:
        """Let Karmada's scheduler read the pins."""
        for known in self.bindings.values():
            if known["spec"]["suspension"].get("scheduling"):
                continue
            pin = known["spec"]["placement"]["clusterAffinities"][0]["clusterNames"][0]
            status = known.setdefault("status", {})
            if pin in self.lost:
                known["spec"].pop("clusters", None)
                condition = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}
                status["conditions"] = [condition]
            else:
                known["spec"]["clusters"] = [{"name": pin}]
                status["conditions"] = [{"type": "Scheduled", "status": "True"}]

    def dispatch(self) -> None:
        """Let members take what is not suspended, and start what they have the room for."""
        for name, raw in self.jobs.items():
            known = self.bindings.get(binding_name(name))
            if known is None or not known["spec"].get("clusters"):
                continue
            if known["metadata"]["ownerReferences"][0]["uid"] != raw["metadata"]["uid"]:
                continue
            where, uid = known["spec"]["clusters"][0]["name"], raw["metadata"]["uid"]
            if where in self.lost or known["spec"]["suspension"].get("dispatching"):
                continue
            if not raw.get("status"):
                raw["status"] = vcjob_status("Pending")
                self._touch(name)
            if phase_of(raw) == "Pending" and self._starts(raw, where):
                raw["status"] = vcjob_status("Running")
                self.ends[uid] = self.now + RUNS
                self._touch(name)

    def finish_jobs(self) -> None:
        """End what has run its time."""
        before = self.free()
        for name, raw in self.jobs.items():
            if phase_of(raw) != "Running":
                continue
            if self.now >= self.ends[raw["metadata"]["uid"]]:
                raw["status"] = vcjob_status("Completed")
                self._touch(name)
        self._wake(before)

    def clusters_change(self) -> None:
        """Make the clusters what sizes, loss and foreign use say."""
        before = self.free() if self.clusters else {}
        lost = {name for name, item in self.clusters.items() if not item.usable}
        for name, size in self.sizes.items():
            reason = "is not Ready" if name in self.lost else ""
            self.clusters[name] = cluster(
                name, size - self.foreign[name], total=size, unusable=reason
            )
        self._wake(before, back=lost - self.lost)
        self.woken = True

    def heal(self) -> None:
        """Bring all clusters back, empty but for ours."""
        self.foreign.clear()
        self.lost.clear()
        self.clusters_change()

    def next_moments(self) -> list[datetime]:
        """List the times at which something happens by itself."""
        wait = next_change(self.state, now=self.now)
        looks = [self.now + wait] if wait is not None else []
        ends = (at for at in self.ends.values() if at > self.now)
        return [*self.timers.values(), *ends, *looks]

    def delete_ended(self) -> None:
        """Let users take away what has ended."""
        for name in [name for name in self.hyperjobs if self.phase(name) in ENDED]:
            del self.hyperjobs[name]
            for store in (self.jobs, self.policies):
                for child in [each for each in store if each.startswith(f"{name}-")]:
                    del store[child]
            self.due.pop(name, None)
            self.timers.pop(name, None)
            self.waiting.drop(name)
            update(self.state, f"default/{name}", None, now=self.now)
            self.woken = True

    # looking

    def phase(self, name: str) -> str:
        """Give the phase of a HyperJob."""
        state = self.hyperjobs[name]["status"].get("state", {})
        return str(state.get("phase", ""))

    def _keys(self, name: str) -> Iterator[str]:
        known = {*self.bindings, *self.seen}
        return (key for key in sorted(known) if key.startswith(f"{name}-"))

    def _turn(self, key: str, *, in_turn: bool) -> tuple[int, int]:
        position = list(self._keys(key.rsplit("-", 3)[0])).index(key)
        return (position if in_turn else 0), self.order[key]

    def _starts(self, raw: Object, where: str) -> bool:
        used = self.foreign[where]
        for name, other in self.jobs.items():
            if phase_of(other) == "Running" and self._cluster_of(name) == where:
                used += gpus_of(demand_of(other["spec"]))
        return used + gpus_of(demand_of(raw["spec"])) <= self.sizes[where]

    def _touch(self, child: str) -> None:
        self.due[child.rsplit("-", 2)[0]] = None

    def _wake(self, before: dict[str, Resources], *, back: Collection[str] = ()) -> None:
        """Wake as the controller does: by the room of the clusters that have more of it."""
        now = self.free()
        for name, free in before.items():
            if self.clusters[name].usable and (name in back or now[name][GPU] > free[GPU]):
                self.waiting.wake(now[name])
                self.woken = True

    def _forget(self) -> None:
        self.waiting = Unplaced(self._wakes)
        confirmers: dict[QueueAdmission, Confirmer] = {
            QueueAdmission.NONE: NoConfirmation(),
            QueueAdmission.BUILTIN: BuiltinQueues(),
            QueueAdmission.VOLCANO_GLOBAL: VolcanoGlobal(
                lambda holds: self._charges().beside(holds)
            ),
        }
        self.state = new_state(Settings(lag=LAG, counts=self._counts), confirmers[self.admission])
        self.queues_arrive()

    def _charges(self) -> Charges:
        """Give Volcano Global's account; what has ended asks for nothing."""
        charges = Charges()
        for key, known in self.bindings.items():
            job = self.jobs.get(key.removesuffix("-job"))
            if job is None:
                continue
            demand = {} if phase_of(job) in ENDED else demand_of(job["spec"])
            waits = bool(known["spec"].get("suspension", {}).get("scheduling"))
            charge = Charge(
                queue=job["spec"].get("queue", "default"),
                request={name: amount for name, amount in demand.items() if name == GPU},
                waits=waits,
                sub_job=f"default/{job['metadata']['name']}",
                created=f"{self.order[key]:04}",
            )
            charges.put(key, charge)
        return charges

    def _forecast(self) -> Forecast:
        if self.admission is not QueueAdmission.VOLCANO_GLOBAL:
            return Forecast()
        return forecast_dispatch(self._charges(), self.state.shares.queues, lambda _key: 0)

    def _counts(self, key: str) -> bool:
        return key.partition("/")[2] in self.jobs

    def _wakes(self, key: str, delay: float) -> None:
        if delay <= SETTLE_SECONDS:  # what comes later would only tell other words
            self.due[key] = None

    def _admit(self, key: str, obj: Object, operation: str) -> None:
        if operation == "CREATE":
            obj = jsonpatch.apply_patch(obj, list(stamp(obj, operation="CREATE")))
            if self.admission is QueueAdmission.VOLCANO_GLOBAL:
                obj["spec"]["suspension"] = {"scheduling": True}  # by its webhook
        obj = jsonpatch.apply_patch(obj, list(stamp(obj, operation=operation)))
        self.bindings[key] = obj

    def _check(self, observed: Observed, decided: Plan) -> None:
        """Assert that a gang is opened whole and where there is room."""
        opened = {action.name for action in decided.actions if isinstance(action, OpenGate)}
        deleted = {action.name for action in decided.actions if isinstance(action, DeleteChild)}
        assert not opened & deleted
        if not opened:
            return
        children = [child_of(observed, name) for name in observed.jobs]
        through = {child.name for child in children if is_through(child)}
        hyperjob = observed.hyperjob
        total = sum(group.replicas for group in hyperjob.replicated_jobs)
        least = min(hyperjob.min_available or total, total)
        assert len(opened | through) >= least, "a gang in parts"
        if not 0 < len(through) < least:
            free = {item.name: item.free for item in observed.clusters if item.usable}
            for child in children:
                if child.name in opened:
                    assert child.cluster in free
            for name, room in free.items():
                own = [c.name for c in children if c.name in opened and c.cluster == name]
                held = sum(gpus_of(demand_of(self.jobs[each]["spec"])) for each in own)
                others = [
                    child.name
                    for child in children
                    if child.cluster == name and child.name not in opened | through
                ]
                mine = sum(gpus_of(demand_of(self.jobs[each]["spec"])) for each in others)
                assert not own or room.get(GPU, 0) // NANO + held + mine >= held, "no room"

    def _check_room(
        self, before: dict[str, Resources], pins: dict[str, str], decided: Plan
    ) -> None:
        """Assert that what was created or moved fits in what was free, or its own HyperJob's."""
        taken: Counter[str] = Counter()
        for action in decided.actions:
            if (isinstance(action, CreateChild) and action.job is not None) or isinstance(
                action, Repin
            ):
                taken[action.cluster] += gpus_of(action.demand)
        for name, gpus in taken.items():
            own = [job for job, pin in pins.items() if pin == name and job in self.jobs]
            held = sum(gpus_of(demand_of(self.jobs[job]["spec"])) for job in own)
            assert gpus <= before[name][GPU] // NANO + held, "beyond what is free"

    def _apply(self, hyperjob: str, action: Action) -> None:
        match action:
            case Repin():
                self.policies[action.name]["spec"]["placement"] = action.placement
            case OpenGate():
                opened = {GATE: GATE_OPEN}
                if action.policy_uid is not None:
                    lifted = self.policies[action.name]
                    lifted["spec"].get("suspension", {}).pop("dispatching", None)
                    lifted["metadata"]["annotations"] = opened
                if action.binding_uid is not None:
                    target = self.bindings[action.binding]
                    target["metadata"].setdefault("annotations", {}).update(opened)
                    target["spec"]["suspension"].pop("dispatching", None)
                    self.seen[action.binding] = copy.deepcopy(target)
            case CreateChild() if action.job is None:
                assert action.policy is not None
                self.policies[action.name] = self._stored(action.policy)
            case _:
                super()._apply(hyperjob, action)


def phase_of(job: Object) -> str:
    """Give the phase of a vcjob, empty while it has none."""
    return str((job.get("status") or {}).get("state", {}).get("phase", ""))


def gpus_of(demand: Resources) -> int:
    """Give the accelerators of a demand."""
    return demand.get(GPU, 0) // NANO


def feasible(raw: Object, sizes: list[int], quotas: list[int]) -> bool:
    """Tell whether a HyperJob would run if it were alone."""
    world = GangWorld.of(sizes, quotas)
    world.submit(copy.deepcopy(raw))
    seen = world.observe(raw["metadata"]["name"])
    made = plan(replace(seen, verdict=None)).actions
    wanted = sum(group["replicas"] for group in raw["spec"]["replicatedJobs"])
    if len(made) != wanted:
        return False
    used: Counter[str] = Counter()
    for action in made:
        assert isinstance(action, CreateChild)
        assert action.job is not None
        used[action.job["spec"]["queue"]] += gpus_of(action.demand)
    return all(used[name] <= quota for name, quota in world.quotas.items())
