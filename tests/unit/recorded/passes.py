"""Passes over generated HyperJobs, four in a row with all sorts of trouble between them."""

import copy
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.names import binding_name
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import (
    Cluster,
    Observed,
    QueueAdmission,
    QueueVerdict,
    Refusal,
)
from hyperjob_engine.model.planned import Action, CreateChild, OpenGate, Plan, Repin
from hyperjob_engine.model.training import JobTraining
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.detail import Quoted
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.reasons.hindrance import ClusterTrouble, Trouble
from hyperjob_engine.reasons.splitter import CallFailed, CallFault, NoneGiven, SplitAnswer
from hyperjob_engine.reasons.waiting import KeptRoom, Share, Wait, WaitCode
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.builders import GPU, NOW, Object, vcjob_status
from tests.unit.controller.world import World
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.plans import plan_lines
from tests.unit.recorded.recording import Case

PASSES = 5
STEPS = (0.0, 1.0, 9.0, 10.0, 11.0, 29.0, 30.0, 31.0, 59.0, 60.0, 61.0, 299.0, 300.0, 301.0,
         899.0, 900.0, 901.0, 3600.0)  # fmt: skip
PHASES = ("Pending", "Running", "Running", "Running", "Completed", "Failed", "Aborted",
          "Terminated", "Restarting", "Completing", "Unheard")  # fmt: skip
TAINT = Trouble(ClusterTrouble.TAINTED, "maintenance=true:NoSchedule")


class Passes(World):
    """A world in which anything may be broken between two passes."""

    def _apply(self, hyperjob: str, action: Action) -> None:
        match action:
            case CreateChild():
                for store, document in ((self.policies, action.policy), (self.jobs, action.job)):
                    if document is not None:
                        store[action.name] = self._stored(document)
            case Repin():
                self.policies[action.name]["spec"]["placement"] = action.placement
            case OpenGate():
                self.policies[action.name]["spec"].pop("suspension", None)
                target = self.bindings[action.binding]
                target["metadata"].setdefault("annotations", {})["training.volcano.sh/gate"] = (
                    "open"
                )
                target["spec"].get("suspension", {}).pop("dispatching", None)
            case _:
                super()._apply(hyperjob, action)


def cluster_of(rng: random.Random, name: str, now: datetime) -> Cluster:
    """Make a cluster in any state."""
    gpus = rng.choice((0, 1, 2, 4, 6, 8, 8, 12, 16, 24, 40))
    total = gpus + rng.choice((0, 0, 4, 16))
    trouble, since = None, None
    match rng.random():
        case chance if chance < 0.08:
            trouble = TAINT
        case chance if chance < 0.2:
            trouble = Trouble(ClusterTrouble.NOT_READY, "ClusterNotReachable")
            since = now - timedelta(seconds=rng.choice((0, 299, 300, 301, 4000)))
        case chance if chance < 0.24:
            trouble = Trouble(rng.choice(list(ClusterTrouble)))
    return Cluster(
        name=name,
        usable=trouble is None,
        trouble=trouble,
        free=parse_resources({GPU: str(gpus), "cpu": "1000", "memory": "1Ti", "pods": "1000"}),
        allocatable=parse_resources({GPU: str(total), "cpu": "1k", "pods": "1000"}),
        settling=parse_resources({GPU: "1"}) if some(rng, 0.1) else {},
        provider=rng.choice(("", "x")),
        region=rng.choice(("", "eu", "us")),
        zone=rng.choice(("", "1")),
        not_ready_since=since,
        reserved_pods=(PodGroup(parse_resources({GPU: "1"}), 1),) if some(rng, 0.1) else (),
        unscheduled=parse_resources({GPU: str(rng.choice((0, 1, 8)))}) if some(rng, 0.4) else None,
    )


def pass_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"HyperJob {seed}", list(_history(random.Random(f"passes {seed}")))


def _history(rng: random.Random) -> Iterator[str]:
    admission = rng.choice((QueueAdmission.NONE, QueueAdmission.NONE, *QueueAdmission))
    names = "abcd"[: rng.randint(1, 4)]
    world = Passes({name: cluster_of(rng, name, NOW) for name in names}, admission=admission)
    raw = hyperjob_of(rng)
    world.hyperjobs["hj"] = raw
    yield f"{admission}: {_told(raw)}"
    for each in world.clusters.values():
        yield f"cluster {each.name}: {_shown(each)}"
    wait: timedelta | None = None
    for number in range(PASSES):
        before = world.now
        world.now += _step(rng, wait) if number else timedelta()
        did = [] if number == 0 else _trouble(rng, world)
        raw = world.hyperjobs.get("hj", {})
        if not raw:
            yield "it is deleted"
            return
        seen, extra = _extras(rng, world, world.observe("hj"))
        passed = (world.now - before).total_seconds()
        yield f"{number}. after {passed:g} s: {', '.join(did + extra)}"
        old = copy.deepcopy(raw["status"])
        templates = {each["name"]: each["templateSpec"] for each in raw["spec"]["replicatedJobs"]}
        decided = plan(seen)
        yield from plan_lines(old, templates, decided)
        wait = decided.requeue_after
        _carry_out(world, decided)


def _told(raw: Object) -> str:
    """Say what a HyperJob asks for, short."""
    spec = dict(raw["spec"])
    groups = []
    for each in spec.pop("replicatedJobs"):
        known = {key: value for key, value in each.items() if key != "templateSpec"}
        tasks = [
            f"{item['name']} {item['replicas']}x"
            f"{item['template']['spec']['containers'][0]['resources']['requests'].get(GPU, 0)}"
            + (f" min {item['minAvailable']}" if "minAvailable" in item else "")
            for item in each["templateSpec"]["tasks"]
        ]
        rest = {key: value for key, value in each["templateSpec"].items() if key != "tasks"}
        groups.append({**known, **rest, "tasks": ", ".join(tasks)})
    return str({"groups": groups, **spec}).replace("'", "")


def _shown(each: Cluster) -> str:
    gpus, total = (amounts.get(GPU, 0) // 10**9 for amounts in (each.free, each.allocatable))
    text = f"{gpus} of {total}"
    if each.trouble is not None:
        text += f", {each.trouble.code} {each.trouble.detail}"
    if each.not_ready_since is not None:
        text += f" since {each.not_ready_since:%H:%M:%S}"
    return text


def _step(rng: random.Random, wait: timedelta | None) -> timedelta:
    """Come back at any time, best just before, at, or after the time that was asked for."""
    if wait is not None and some(rng, 0.6):
        return max(timedelta(), wait + timedelta(seconds=rng.choice((-1, 0, 0, 1))))
    return timedelta(seconds=rng.choice(STEPS))


def _carry_out(world: Passes, decided: Plan) -> None:
    for action in decided.actions:
        if type(action).__name__ not in ("AskAgain", "Look"):
            world._apply("hj", action)
    if decided.status is not None and "hj" in world.hyperjobs:
        world.hyperjobs["hj"]["status"] = copy.deepcopy(decided.status)


def _trouble(rng: random.Random, world: Passes) -> list[str]:
    """Let Karmada, the members and users do something."""
    did = []
    if some(rng, 0.8):
        world.karmada()
    if some(rng, 0.7):
        world.karmada()
        did.append("karmada")
    if some(rng, 0.75):
        did.extend(_reports(rng, world))
    for chance, change in ((0.45, _broken), (0.35, _edited), (0.35, _clusters)):
        if some(rng, chance):
            did.extend(change(rng, world))
    return did


def _stamp(world: World, back: float) -> str:
    return (world.now - timedelta(seconds=back)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reports(rng: random.Random, world: Passes) -> Iterator[str]:
    same = rng.choice(PHASES) if some(rng, 0.5) else ""
    for name, raw in world.jobs.items():
        phase = same or rng.choice(PHASES)
        if phase == "Unheard" or some(rng, 0.15):
            continue
        size = sum(each.get("replicas", 0) for each in raw["spec"]["tasks"])
        pods = {
            "Pending": rng.choice(({}, {"pending": size}, {"pending": 1})),
            "Running": rng.choice(({"running": size}, {"running": size}, {"running": 1})),
            "Completed": {"succeeded": size},
            "Failed": {"failed": 1, "running": size - 1},
        }.get(phase, {})
        since = _stamp(world, rng.choice((0.0, 5.0, 100.0, 899.0, 900.0, 901.0)))
        status = vcjob_status(phase, pods, since=since)
        if phase not in ("Running", "Pending") and some(rng, 0.5):
            status["state"] |= {"reason": "JobFailed", "message": "pod failed"}
        if phase == "Pending" and some(rng, 0.3):
            status["conditions"] = [{"status": "Pending", "lastTransitionTime": since}]
        if phase != "Pending" and some(rng, 0.3):
            status["conditions"] = [{"status": "Running", "lastTransitionTime": since}]
        raw["status"] = status
        bound = world.bindings.get(binding_name(name))
        if bound is not None and bound["spec"].get("clusters") and some(rng, 0.9):
            where = bound["spec"]["clusters"][0]["name"]
            item = {"clusterName": where, "applied": True, "status": status}
            whole = {"type": "FullyApplied", "status": "True", "lastTransitionTime": since}
            bound["status"] = {"conditions": [whole], "aggregatedStatus": [item]}
        yield f"{name} {phase} {pods} since {since[11:19]}".replace("'", "")


def _pick(rng: random.Random, store: dict[str, Object]) -> tuple[str, Object] | None:
    return rng.choice(list(store.items())) if store else None


def _broken(rng: random.Random, world: Passes) -> Iterator[str]:
    job, policy, bound = (_pick(rng, each) for each in (world.jobs, world.policies, world.bindings))
    match rng.randrange(13):
        case 0 if job:
            job[1]["metadata"]["deletionTimestamp"] = _stamp(world, 0)
            yield f"vcjob {job[0]} is being deleted"
        case 1 if job:
            del world.jobs[job[0]]
            yield f"vcjob {job[0]} is gone"
        case 2 if job:
            job[1]["metadata"]["ownerReferences"] = [
                {"kind": "CronJob", "name": "other", "uid": "u", "controller": True}
            ]
            yield f"vcjob {job[0]} is another's"
        case 3 if job:
            job[1]["metadata"].pop("ownerReferences", None)
            yield f"vcjob {job[0]} is an orphan"
        case 4 if job:
            job[1]["metadata"]["labels"].pop("volcano.sh/hyperjob-name", None)
            yield f"vcjob {job[0]} lost its label"
        case 5 if policy:
            del world.policies[policy[0]]
            yield f"policy {policy[0]} is gone"
        case 6 if policy:
            policy[1]["metadata"].pop("ownerReferences", None)
            policy[1]["metadata"]["deletionTimestamp"] = _stamp(world, 0)
            yield f"policy {policy[0]} is an orphan on its way out"
        case 7 | 8 | 9 if bound:
            reason = rng.choice(("NoClusterFit", "Unschedulable", "SchedulerError", "Other"))
            pins = world.policies.get(bound[0].removesuffix("-job"), {}).get("spec", {})
            bound[1]["spec"]["placement"] = pins.get("placement", {})
            bound[1]["spec"].pop("clusters", None)
            bound[1]["status"] = {"conditions": [
                {"type": "Scheduled", "status": "False", "reason": reason, "message": "0/1 fit"}
            ]}  # fmt: skip
            yield f"binding {bound[0]} {reason}"
        case 10 if bound and bound[1]["spec"].get("clusters"):
            where = bound[1]["spec"]["clusters"][0]["name"]
            bound[1]["status"] = {"aggregatedStatus": [
                {"clusterName": where, "appliedMessage": "admission webhook denied the request"}
            ]}  # fmt: skip
            yield f"binding {bound[0]} is not applied"
        case 11 if bound and bound[1]["spec"].get("clusters"):
            where = bound[1]["spec"]["clusters"][0]["name"]
            since = _stamp(world, rng.choice((29, 30, 31, 59, 60, 61, 500)))
            whole = {"type": "FullyApplied", "status": "True", "lastTransitionTime": since}
            item = {"clusterName": where, "applied": True}
            bound[1]["status"] = {"conditions": [whole], "aggregatedStatus": [item]}
            world.jobs.get(bound[0].removesuffix("-job"), {}).pop("status", None)
            yield f"binding {bound[0]} is applied since {since[11:19]}, without a word"
        case 12 if bound:
            bound[1]["spec"]["resource"]["kind"] = "Deployment"
            bound[1]["metadata"]["ownerReferences"][0]["uid"] = "another"
            yield f"binding {bound[0]} is of a Deployment"


def _edited(rng: random.Random, world: Passes) -> Iterator[str]:
    raw = world.hyperjobs.get("hj")
    if raw is None:
        return
    raw["spec"] = copy.deepcopy(raw["spec"])  # as in the caches, which never change an object
    spec, metadata = raw["spec"], raw["metadata"]
    group = rng.choice(spec["replicatedJobs"])
    children = [each["name"] for each in raw["status"].get("jobs", [])] or ["none"]
    match rng.randrange(8):
        case 0 | 1:
            spec["suspend"] = not spec.get("suspend")
            yield f"suspend {spec['suspend']}"
        case 2 if "replicas" in group:
            group["replicas"] = max(1, group["replicas"] + rng.choice((-1, 1, 2)))
            yield f"{group['name']} replicas {group['replicas']}"
        case 3:
            work = group["templateSpec"]["tasks"][-1]
            work["replicas"] = max(1, work["replicas"] + rng.choice((-1, 1)))
            yield f"{group['name']} {work['replicas']} workers"
        case 4:
            spec["minAvailable"] = rng.randint(1, 4)
            yield f"minAvailable {spec['minAvailable']}"
        case 5 | 6:
            kind = rng.choice(("restart", "migrate"))
            words = " ".join([f"t{rng.randrange(3)}", *rng.sample(children, rng.randint(0, 1))])
            metadata.setdefault("annotations", {})[f"training.volcano.sh/{kind}"] = words
            yield f"{kind} {words}"
        case 7:
            metadata["generation"] += 1
            group["templateSpec"]["queue"] = "q2"
            yield f"{group['name']} in q2"


def _clusters(rng: random.Random, world: Passes) -> Iterator[str]:
    name = rng.choice(list(world.clusters))
    if some(rng, 0.1) and len(world.clusters) > 1:
        del world.clusters[name]
        yield f"cluster {name} is removed"
        return
    world.clusters[name] = cluster_of(rng, name, world.now)
    yield f"cluster {name} {_shown(world.clusters[name])}"


def _extras(rng: random.Random, world: World, seen: Observed) -> tuple[Observed, list[str]]:
    """Add what does not come from objects: verdicts, refusals, logs, answers, causes."""
    fields: dict[str, Any] = {
        "clusters": tuple(
            replace(known, free=each.free)
            for known, each in zip(world.clusters.values(), seen.clusters, strict=True)
        )
    }
    told = []
    names = sorted({*seen.jobs, *seen.hyperjob.records})
    for chance, what in ((0.25, _refused), (0.2, _trained), (0.3, _caused), (0.3, _split)):
        if names and some(rng, chance):
            field, found = what(rng, world, seen, names)
            fields[field] = found
            told.append(field)
    if seen.admission is not QueueAdmission.NONE and some(rng, 0.85):
        fields["verdict"] = _verdict(rng, world, seen)
        told.append("verdict")
    if seen.admission is QueueAdmission.VOLCANO_GLOBAL and names:
        for field in ("passed_over", "unanswered", "forgotten"):
            if some(rng, 0.25):
                fields[field] = frozenset(rng.sample(names, 1))
                told.append(field)
    if some(rng, 0.3):
        fields["queues"] = {"q0": "Open", "default": rng.choice(("Open", "Closed")), "q1": "Open"}
    if some(rng, 0.2):
        fields["contended"] = True
    if some(rng, 0.2):
        fields["capacity_changes_in"] = timedelta(seconds=rng.choice((1, 12)))
    if names and some(rng, 0.15):
        fields["followers"] = (seen.jobs[names[0]].uid,) if names[0] in seen.jobs else ()
    if some(rng, 0.1):
        fields["stopped_by"] = rng.choice(list(TimeUse))
    if some(rng, 0.1):
        fields["start_timeout"] = timedelta()
    return replace(seen, **fields), told


Extra = Callable[[random.Random, World, Observed, list[str]], tuple[str, Any]]


def _refused(
    rng: random.Random, world: World, seen: Observed, names: list[str]
) -> tuple[str, object]:
    first = f"{seen.hyperjob.name}-{seen.hyperjob.replicated_jobs[0].name}-0"
    until = world.now + timedelta(seconds=rng.choice((-1, 0, 1, 40)))
    refusal = Refusal(
        reason=rng.choice(("Invalid", "Forbidden", "AlreadyExists")),
        message="exceeded quota: gpus",
        retry_at=until,
    )
    return "refusals", {rng.choice([first, *names]): refusal}


def _trained(
    rng: random.Random, world: World, seen: Observed, names: list[str]
) -> tuple[str, object]:
    found = {}
    for name in names:
        if some(rng, 0.3):
            continue
        step, back = rng.choice((0, 10, 500)), rng.choice((0.0, 30.0, 600.0))
        began = world.now - timedelta(seconds=back + 60)
        saves = some(rng, 0.6)
        job = seen.jobs.get(name)
        found[name] = JobTraining(
            step=step + 40,
            updated=world.now - timedelta(seconds=back),
            start_step=step,
            started=began,
            saved_step=step + rng.choice((0, 20)) if saves else None,
            saved=began + timedelta(seconds=20) if saves else None,
            attempt=job.attempt if job is not None else 0,
            uid=job.uid if job is not None else "",
            steps=rng.choice((None, 1000)),
            steps_per_second=rng.choice((None, 0.5, 2.0)),
            metrics={"loss": "0.25"} if some(rng, 0.3) else {},
            ended=some(rng, 0.3),
            reported=some(rng, 0.9),
        )
    return "trainings", found


def _caused(
    rng: random.Random, world: World, seen: Observed, names: list[str]
) -> tuple[str, object]:
    found: dict[str, ContainerFailure | None] = {}
    for name in names:
        job = seen.jobs.get(name)
        if job is None or some(rng, 0.2):
            continue
        found[job.uid] = None if some(rng, 0.2) else ContainerFailure(
            pod=f"{name}-worker-0",
            task="worker",
            container="main",
            exit_code=rng.choice((None, 1, 137)),
            reason=rng.choice(("Error", "OOMKilled", "Evicted")),
            message=rng.choice(("", "CUDA error\nat rank 3")),
            time=_stamp(world, 3),
        )  # fmt: skip
    return "causes", found


def _split(
    rng: random.Random, world: World, seen: Observed, names: list[str]
) -> tuple[str, object]:
    group = seen.hyperjob.replicated_jobs[0]
    occasion = rng.choice(("", "0"))
    asked = [item for item in plan(replace(seen, split_answers={})).questions if item.group]
    digest = asked[0].digest if asked else "digest"
    occasion = asked[0].occasion if asked else occasion
    wanted = group.split.accelerators if group.split is not None and group.split.accelerators else 4
    shares = rng.choice(((("a", wanted),), (("a", wanted // 2), ("b", wanted - wanted // 2)), ()))
    trouble = None
    if not shares:
        trouble = rng.choice((NoneGiven("full"), CallFailed(CallFault.HTTP_STATUS, "no", 503)))
    until = world.now + timedelta(seconds=rng.choice((-1, 0, 1, 30)))
    answer = SplitAnswer(
        digest=digest, occasion=occasion, shares=shares, trouble=trouble, retry_at=until
    )
    return "split_answers", {group.name: answer} if some(rng, 0.8) else {}


def _verdict(rng: random.Random, world: World, seen: Observed) -> QueueVerdict:
    names = [
        f"hj-{group.name}-{index}"
        for group in seen.hyperjob.replicated_jobs
        for index in range(group.replicas)
    ]
    match rng.randrange(6):
        case 0:
            return QueueVerdict(undecided=some(rng, 0.3), reason="QueuesUnknown")
        case 1:
            wait = Wait(
                queue="q0",
                place=rng.choice((1, 9, 10, 11, 104)),
                length=120,
                code=WaitCode.CAPACITY,
                share=Share(GPU, 4 * 10**9, 8 * 10**9),
                room=KeptRoom(heads=[("other", "q0")]),
            )
            detail = {names[0]: Quoted("no room")} if some(rng, 0.5) else {}
            return QueueVerdict(reason="QueueWaiting", wait=wait, unplaced=detail)
        case 2:
            wait = Wait(queue="", place=2, length=2, code=WaitCode.BEHIND, behind="other")
            return QueueVerdict(reason="QueueWaiting", wait=wait)
        case 3:
            admitted = frozenset(rng.sample(names, max(1, len(names) - 1)))
            return QueueVerdict(
                admitted=admitted,
                reclaimed_for=rng.choice(("", "default/other")),
                preempted=some(rng, 0.5),
            )
    return QueueVerdict(admitted=frozenset(names))
