"""A store of objects that carries plans out as an API server would, for property tests."""

import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hyperjob_core.api.names import binding_name
from hyperjob_engine.expansion.expand import demand_of
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.parse import (
    parse_binding,
    parse_hyperjob,
    parse_job,
    parse_policy,
    parse_report,
)
from hyperjob_engine.model.planned import (
    Action,
    Adopt,
    CreateChild,
    DeleteChild,
    DeleteHyperJob,
    OpenGate,
    Plan,
    ReleaseQuota,
    ReleaseScheduling,
    Repin,
    Resize,
)
from hyperjob_engine.placement.capacity import reservation
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import Resources, fits, subtract, total
from tests.unit.engine.builders import NOW, Object, binding

LAG = timedelta(seconds=30)


@dataclass
class World:
    """HyperJobs, their children and clusters; the summaries of clusters never show anything."""

    clusters: dict[str, Cluster]
    admission: QueueAdmission = QueueAdmission.NONE
    now: datetime = NOW
    hyperjobs: dict[str, Object] = field(default_factory=dict)
    jobs: dict[str, Object] = field(default_factory=dict)
    policies: dict[str, Object] = field(default_factory=dict)
    bindings: dict[str, Object] = field(default_factory=dict)
    serial: int = 0
    phases: list[str] = field(default_factory=list)  # of all HyperJobs, as they were written
    lingering: bool = False  # whether what is deleted stays until `garbage_goes`

    def observe(self, name: str) -> Observed:
        raw = self.hyperjobs[name]
        owner = parse_hyperjob(raw)
        mine = [item for item in self.jobs.values() if self._concerns(item, name)]
        policies = [item for item in self.policies.values() if self._concerns(item, name)]
        bindings = [parse_binding(item) for item in self.bindings.values()]
        free = self.free()
        return Observed(
            hyperjob=owner,
            jobs={item["metadata"]["name"]: parse_job(item, owner=owner) for item in mine},
            policies={
                item["metadata"]["name"]: parse_policy(item, owner=owner) for item in policies
            },
            bindings={item.name: item for item in bindings},
            clusters=tuple(
                Cluster(
                    name=item.name,
                    usable=item.usable,
                    trouble=item.trouble,
                    free=free[item.name],
                    allocatable=item.allocatable,
                    not_ready_since=item.not_ready_since,
                )
                for item in self.clusters.values()
            ),
            refusals={},
            admission=self.admission,
            now=self.now,
        )

    def free(self) -> dict[str, Resources]:
        entries = []
        for name, raw in self.jobs.items():
            if "deletionTimestamp" in raw["metadata"]:
                continue
            cluster = self._cluster_of(name)
            entry = reservation(
                cluster=cluster,
                demand=demand_of(raw["spec"]),
                report=parse_report(raw.get("status")),
                complete_since=None,
                lag=timedelta(days=1),
            )
            if entry is not None and cluster and entry.holds(self.now):
                entries.append(entry)
        held = {
            name: total(each.demand for each in entries if each.cluster == name)
            for name in self.clusters
        }
        return {name: subtract(item.free, held[name]) for name, item in self.clusters.items()}

    def _cluster_of(self, name: str) -> str:
        """Where the reservations counts a sub-job."""
        known = self.bindings.get(binding_name(name), {}).get("spec", {}).get("clusters") or [{}]
        placed = str(known[0].get("name", ""))
        where = self.policies.get(name)
        pin = ""
        if where is not None:
            pin = where["spec"]["placement"]["clusterAffinities"][0]["clusterNames"][0]
        reports = bool(self.jobs[name].get("status"))
        return placed or pin if reports else pin or placed

    def reconcile(self, name: str, *, dies_after: int | None = None) -> Plan:
        """Plan, carry out, write the status; or die after so many actions."""
        decided = plan(self.observe(name))
        for action in decided.actions[:dies_after]:
            self._apply(name, action)
        if dies_after is not None:
            return decided
        if decided.status is not None and name in self.hyperjobs:
            self.hyperjobs[name]["status"] = copy.deepcopy(decided.status)
            self.phases.append(decided.status["state"]["phase"])
        return decided

    def settle(self) -> None:
        """Reconcile and let Karmada work until nothing changes; fail if that never comes."""
        for _ in range(12):
            before = copy.deepcopy((self.hyperjobs, self.jobs, self.policies, self.bindings))
            for name in sorted(self.hyperjobs):
                self.reconcile(name)
            self.garbage_goes()
            self.karmada()
            if before == (self.hyperjobs, self.jobs, self.policies, self.bindings):
                return
        raise AssertionError("it never comes to rest")

    def garbage_goes(self) -> None:
        """Let go of what is deleted, or owned by a HyperJob that is."""
        owners = {raw["metadata"]["uid"] for raw in self.hyperjobs.values()}
        for store in (self.jobs, self.policies):
            for name, raw in list(store.items()):
                references = raw["metadata"].get("ownerReferences") or [{}]
                orphaned = references[0].get("uid", "").startswith("hj-uid") and (
                    references[0]["uid"] not in owners
                )
                if "deletionTimestamp" in raw["metadata"] or orphaned:
                    del store[name]

    def karmada(self) -> None:
        """Make the bindings that are missing, release them from the queue, place them."""
        for name, raw in self.jobs.items():
            where = self.policies.get(name)
            if where is None:
                continue
            key = binding_name(name)
            known = self.bindings.get(key)
            uid = raw["metadata"]["uid"]
            if known is None or known["metadata"]["ownerReferences"][0]["uid"] != uid:
                gated = "suspension" in where["spec"]
                known = binding(name, gate="held" if gated else "")
                known["metadata"]["ownerReferences"][0]["uid"] = uid
                if gated:
                    known["spec"]["suspension"] = {"dispatching": True, "scheduling": True}
                self.bindings[key] = known
            elif known["spec"].get("suspension", {}).get("scheduling"):
                known["spec"]["suspension"]["scheduling"] = False
            else:
                pins = where["spec"]["placement"]["clusterAffinities"][0]["clusterNames"]
                known["spec"]["clusters"] = [{"name": pins[0]}]
        for key in [key for key in self.bindings if key.removesuffix("-job") not in self.jobs]:
            del self.bindings[key]

    def _concerns(self, item: Object, name: str) -> bool:
        metadata = item["metadata"]
        owners = {reference["name"] for reference in metadata.get("ownerReferences", [])}
        labelled = metadata.get("labels", {}).get("volcano.sh/hyperjob-name") == name
        return name in owners or labelled or metadata["name"].startswith(f"{name}-")

    def _apply(self, hyperjob: str, action: Action) -> None:
        uid = self.hyperjobs[hyperjob]["metadata"]["uid"]
        match action:
            case CreateChild():
                if action.policy is not None:
                    assert action.name not in self.policies
                    self.policies[action.name] = self._stored(action.policy)
                if action.job is not None:
                    assert action.name not in self.jobs
                    assert fits(action.demand, self.free()[action.cluster]), "over-committed"
                    self.jobs[action.name] = self._stored(action.job)
            case DeleteChild():
                for store, wanted in (
                    (self.jobs, action.job_uid),
                    (self.policies, action.policy_uid),
                ):
                    if wanted is None:
                        continue
                    metadata = store[action.name]["metadata"]
                    assert metadata["uid"] == wanted
                    assert metadata["ownerReferences"][0]["uid"] == uid, "a stranger's"
                    if self.lingering:
                        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
                    else:
                        del store[action.name]
            case DeleteHyperJob():
                assert action.uid == uid
                del self.hyperjobs[action.name]
            case Repin():
                assert fits(action.demand, self.free()[action.cluster]), "over-committed"
                self.policies[action.name]["spec"]["placement"] = action.placement
            case Adopt():
                store = self.jobs if action.kind == "Job" else self.policies
                patch = action.patch["metadata"]
                metadata = store[action.name]["metadata"]
                assert metadata["uid"] == patch["uid"]
                metadata["labels"] = metadata.get("labels", {}) | patch["labels"]
                if "ownerReferences" in patch:
                    metadata["ownerReferences"] = patch["ownerReferences"]
            case Resize():
                self._resize(self.jobs[action.name]["spec"], action)
            case OpenGate():
                opened = {"training.volcano.sh/gate": "open"}
                target = self.bindings[action.binding]
                if action.policy_uid is not None:
                    lifted = self.policies[action.name]
                    lifted["spec"].pop("suspension", None)
                    lifted["metadata"]["annotations"] = opened
                if action.binding_uid is not None:
                    target["metadata"]["annotations"] |= opened
                target["spec"]["suspension"].pop("dispatching", None)
            case ReleaseQuota():
                self.bindings[action.binding]["spec"]["replicaRequirements"] = {}
            case ReleaseScheduling():
                self.bindings[action.binding]["spec"]["suspension"]["scheduling"] = False

    def _stored(self, document: Object) -> Object:
        self.serial += 1
        stored = copy.deepcopy(document)
        stored["metadata"] |= {"uid": f"uid-{self.serial}", "resourceVersion": str(self.serial)}
        return stored

    @staticmethod
    def _resize(spec: Object, action: Resize) -> None:
        for operation in action.operations:
            *path, last = operation["path"].split("/")[2:]
            target = spec
            for step in path:
                target = target[int(step)] if isinstance(target, list) else target[step]
            if operation["op"] == "test":
                assert target[last] == operation["value"]
            else:
                target[last] = operation["value"]
