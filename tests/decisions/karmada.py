"""Karmada, Volcano Global's queue and the member clusters, as far as the controller sees them.

Each step takes its time. A member places all pods of a vcjob or none, and lets them end as their
fate says; without a fate they do nothing, and what a cluster reports is up to the case. The pods of
a deleted vcjob may stop slowly.
"""

import asyncio
import base64
import contextlib
import copy
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import GPU
from tests.decisions.sites import Amounts, Site

Object = dict[str, Any]

BIND, SEND, REPORT, PERIOD, BEAT = 0.5, 1.0, 1.0, 10.0, 3.0
"""Seconds of a step, between two summaries of a cluster, and two heartbeats of its nodes."""
STOPPED = re.compile(r"(?:makes way for|is preempted by) default/(\w+)")
LINE = 20.0
"""Seconds between two lines of a log: ten steps."""
CONTROLLER = "system:serviceaccount:hyperjob-system:hyperjob-controller"
ENDED = ("Completed", "Failed")
BINDING = {"group": "work.karmada.io", "version": "v1alpha2", "kind": "ResourceBinding"}


class Fate(NamedTuple):
    """How a vcjob ends: so many seconds after its start, in this phase.

    Its pods are gone `stops` seconds after its deletion, and may save a last step then.
    """

    seconds: float
    phase: str
    stops: float = 0.0
    saves: bool = False


class Load(NamedTuple):
    """What a cluster holds when a vcjob arrives: of others and vcjobs, and of deleted ones."""

    at: float
    cluster: str
    asked: int
    ending: int
    accelerators: int


class Stopped(NamedTuple):
    """A HyperJob that makes way for another one: `room` is the most of a cluster without it.

    That is beside all vcjobs that have not ended, as Karmada reports them.
    """

    at: float
    head: str
    room: int


class Began(NamedTuple):
    """The creation of a vcjob of which there were pods: when, and after which end of these.

    `given` is the step that the vcjob got, `saved` the last one that the HyperJob has printed.
    """

    key: str
    at: float
    ended: float
    site: str
    given: int | None
    saved: int


@dataclass
class Pods:
    """The pods of a vcjob in a member: what they ask for, and the nodes that they have."""

    job: Object
    site: Site
    wanted: list[tuple[str, Amounts]]
    on: list[int] = field(default_factory=list)
    began: float = 0.0
    until: float | None = None
    status: Object | None = None
    deleted: bool = False
    saves: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.until is not None

    @property
    def accelerators(self) -> int:
        return sum(wanted.get(GPU, 0) for _, wanted in self.wanted)

    def lines(self, now: float) -> list[tuple[float, Object]]:
        """Return what the first pod has printed by now, if it is of the first sub-job."""
        if not self.began or not self.job["metadata"]["name"].endswith("-0"):
            return []
        end, first = now if self.until is None else self.until, resumed(self.job) or 0
        found = []
        for count in range(1, int((end - self.began) / LINE) + 1):
            told = {"step": first + 10 * count, "saved": first + count // 3 * 30, "steps": 2000}
            found.append((self.began + LINE * count, told))
        if self.ended and self.saves:
            step = first + int((end - self.began) / 2)
            found.append((end, {"step": step, "saved": step, "steps": 2000}))
        return found


class Karmada:
    """All that works on the objects of HyperJobs beside the controller."""

    def __init__(
        self,
        entry: Any,
        api: Any,
        sites: Sequence[Site],
        *,
        fate: Callable[[str, int], Fate] | None,
        global_queue: bool,
    ) -> None:
        self.entry, self.api = entry, api
        self.sites = {each.name: each for each in sites}
        self.members = {each.name: entry.server() for each in sites}
        self.sent: dict[str, Pods] = {}
        self.stopping: dict[str, Pods] = {}
        self.loads: list[Load] = []
        self.met: list[str] = []
        """Vcjobs that arrived in a member while pods of the attempt before still ran."""
        self.begun: list[Began] = []
        self.stopped: list[Stopped] = []
        self.wrong: list[str] = []
        """Gangs of which a part has started, and HyperJobs with too few or too many sub-jobs."""
        self.beyond: list[str] = []
        """Vcjobs that were created beyond the capability of their queue."""
        self._left: dict[str, Began] = {}
        self._saved: dict[str, int] = {}
        self._fate, self._global = fate, global_queue
        self._runs: dict[str, int] = {}
        self._due: set[str] = set()
        self._loop = asyncio.get_running_loop()
        for each in sites:
            api.create(entry.KINDS["Cluster"], each.cluster())
            for node in each.nodes():
                self.members[each.name].create(entry.KINDS["Node"], node)
        api.listen(self._changed)
        if global_queue:
            self._loop.call_later(1.0, self._release)

    def get(self, kind: str, key: str) -> Object | None:
        return self.api.get(self.entry.KINDS[kind], key)

    def stamp(self, binding: Object, old: Object | None) -> Object:
        """Return a binding as the webhook lets it be stored."""
        request = {
            "uid": "u",
            "kind": BINDING,
            "operation": "CREATE" if old is None else "UPDATE",
            "namespace": binding["metadata"]["namespace"],
            "userInfo": {"username": "system:admin"},
            "object": binding,
            "oldObject": old,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = orjson.dumps({**review, "request": request})
        _, answer = self.entry.review("stamp", body, (), controllers=[CONTROLLER])
        return patched_by(binding, orjson.loads(answer)["response"])

    def report(self, key: str, phase: str, **pods: int) -> None:
        """Bring the status of a vcjob after a while."""
        status = {"state": {"phase": phase, "lastTransitionTime": self._stamp()}, **pods}
        if sent := self.sent.get(key):
            sent.status = status
            self._later(REPORT, key, self._bring, sent, status)

    def _later(self, seconds: float, key: str, step: Callable[..., None], *more: Any) -> None:
        """Take a step about an object; of two objects the order is always that of their keys.

        It does not depend on the order in which the controller has written them.
        """
        self._loop.call_later(seconds + Draw(key).share("turn") / 100, step, key, *more)

    def _stamp(self, seconds: float | None = None) -> str:
        ago = 0.0 if seconds is None else self._loop.time() - seconds
        moment = self.entry.now() - timedelta(seconds=ago)
        return str(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def log(
        self, site: str, pod: str, params: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the log of a pod."""
        for pods in [*self.stopping.values(), *self.sent.values()]:
            names = [name for name, _ in pods.wanted]
            if pods.site.name == site and pod in names and (pods.on or pods.ended):
                break
        else:
            raise self.entry.error(404, "NotFound", f"pod {pod} not found")
        told, since = 0, params.get("sinceTime", "")
        while True:
            rows = pods.lines(self._loop.time())
            for at, line in rows[told:]:
                stamp = self._stamp(at)
                if stamp >= since and pod == names[0]:
                    yield f"{stamp} {json.dumps({'hyperjob': line})}\n".encode()
            told = len(rows)
            if "follow" not in params or pods.ended:
                return
            with contextlib.suppress(TimeoutError):
                next_at = pods.began + LINE * int((self._loop.time() - pods.began) / LINE + 1)
                async with asyncio.timeout_at(next_at + 0.001):
                    await pods.over.wait()

    def touch(self, site: Site) -> None:
        """Bring the summary of a cluster at the end of its period."""
        if site.name not in self._due:
            self._due.add(site.name)
            turn = (self._loop.time() // PERIOD + 1) * PERIOD
            self._loop.call_at(turn, self._collect, site)

    def promised(self, site: Site) -> int:
        """Return what others and all vcjobs that have not ended hold of a cluster, or will."""
        held = site.held
        for job in self.api.items(self.entry.KINDS["Job"]):
            policy = self.get("PropagationPolicy", key_of(job))
            phase = (job.get("status") or {}).get("state", {}).get("phase")
            if policy is None or phase in ENDED:
                continue
            if policy["spec"]["placement"]["clusterAffinities"][0]["clusterNames"] == [site.name]:
                held += accelerators_of(job)
        return held

    def _count(self, new: Object) -> None:
        """Note a vcjob that takes more than a queue above it may have."""
        held: dict[str, int] = {}
        for job in self.api.items(self.entry.KINDS["Job"]):
            if (job.get("status") or {}).get("state", {}).get("phase") not in ENDED:
                for name in self._path(job):
                    held[name] = held.get(name, 0) + accelerators_of(job)
        for name in self._path(new):
            capability = (self.get("Queue", name) or {"spec": {}})["spec"].get("capability") or {}
            if held[name] > int(capability.get(GPU, held[name])):
                self.beyond.append(f"{key_of(new)}: queue {name} holds {held[name]}")

    def _look_at_size(self, hyperjob: Object) -> None:
        """Note a HyperJob with fewer or more sub-jobs than its bounds allow."""
        jobs = (hyperjob.get("status") or {}).get("jobs") or ()
        for group in hyperjob["spec"]["replicatedJobs"]:
            count = sum(each["replicatedJob"] == group["name"] for each in jobs)
            most = max(group.get("maxReplicas", 0), group.get("replicas", count))
            if "minReplicas" in group and jobs and not group["minReplicas"] <= count <= most:
                self.wrong.append(f"{key_of(hyperjob)}: {count} sub-jobs of {group['name']}")

    def _path(self, job: Object) -> list[str]:
        """Return the queue of a vcjob and those above it."""
        path = [job["spec"].get("queue", "default")]
        while parent := (self.get("Queue", path[-1]) or {"spec": {}})["spec"].get("parent"):
            path.append(parent)
        return path

    def _look_at_gang(self, key: str) -> None:
        """Note a vcjob that arrives in a member before its gang may go."""
        owner = self.get("HyperJob", owner_of(key))
        groups = owner["spec"]["replicatedJobs"] if owner is not None else []
        if owner is None or any("minReplicas" in each or "splitPolicy" in each for each in groups):
            return
        total = sum(each.get("replicas", 1) for each in groups)
        policies = self.api.items(self.entry.KINDS["PropagationPolicy"])
        mine = (each for each in policies if owner_of(key_of(each)) == owner_of(key))
        go = sum(not (each["spec"].get("suspension") or {}).get("dispatching") for each in mine)
        if go < min(owner["spec"].get("minAvailable", total), total):
            self.wrong.append(f"{key}: only {go} of its gang may go")

    def use(self, site: Site, accelerators: int) -> None:
        """Let a pod of others hold accelerators of the first node that no vcjob needs."""
        most = site.accelerators - self.promised(site) + site.held
        held = max(0, min(accelerators, most, site.free[0].get(GPU, 0) + site.held))
        if not held and not site.held:
            return
        site.free[0][GPU] += site.held - held
        site.held = held
        requests = {"requests": {GPU: str(held)}}
        pod = {
            "metadata": {"name": "other", "namespace": "elsewhere"},
            "spec": {
                "nodeName": f"{site.name}-0",
                "containers": [{"name": "main", "resources": requests}],
            },
            "status": {"phase": "Running"},
        }
        self._in(site, "put", "Pod", pod)
        self._schedule(site)
        self.touch(site)

    def lose(self, site: Site, *, down: bool) -> None:
        """Let a cluster be out of reach and lose its pods, or come back with failed ones."""
        site.down = down
        for key, pods in self.sent.items():
            if pods.site is site:
                self._stop(pods)
                if not down:
                    self.report(key, "Failed", failed=1)
        self.touch(site)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        key = key_of(new or old or {})
        if kind == "HyperJob" and old is not None and new is not None:
            self._look_at_size(new)
            for head in heads_of(new) - heads_of(old):
                room = max(each.accelerators - self.promised(each) for each in self.sites.values())
                self.stopped.append(Stopped(self._loop.time(), head, room))
        if kind == "Job" and old is None and new is not None:
            self._count(new)
            if left := self._left.pop(key, None):
                saved = self._saved.get(owner_of(key), 0)
                began = left._replace(at=self._loop.time(), given=resumed(new), saved=saved)
                self.begun.append(began)
            self._later(BIND, key, self._bind, new["metadata"]["uid"])
        elif kind == "Job" and new is None:
            self._forget(key)
        elif kind == "PropagationPolicy" and old and new and old["spec"] != new["spec"]:
            self._later(BIND, key, self._sync)
        elif kind == "ResourceBinding" and new is not None:
            self._later(SEND, key, self._send)

    def _bind(self, key: str, uid: str) -> None:
        job, policy = self.get("Job", key), self.get("PropagationPolicy", key)
        if job is None or policy is None or job["metadata"]["uid"] != uid:
            return
        if self.get("ResourceBinding", f"{key}-job") is not None:
            return
        about = {"apiVersion": job["apiVersion"], "kind": "Job", "name": job["metadata"]["name"]}
        wanted = pods_of(job)
        spec = {
            "resource": {**about, "namespace": job["metadata"]["namespace"], "uid": uid},
            "replicas": len(wanted),
            "replicaRequirements": {
                "resourceRequest": {name: str(each) for name, each in wanted[0][1].items()}
            },
            **self._of_policy(policy),
        }
        binding = {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": f"{job['metadata']['name']}-job",
                "namespace": job["metadata"]["namespace"],
                "ownerReferences": [{**about, "uid": uid, "controller": True}],
            },
            "spec": spec,
            "status": {"conditions": [self._scheduled(spec)]},
        }
        if self._global:
            spec["suspension"] = {
                "scheduling": True
            }  # Volcano Global's webhook takes the rest away
        self.api.create(self.entry.KINDS["ResourceBinding"], self.stamp(binding, None))

    def _of_policy(self, policy: Object) -> Object:
        placement = policy["spec"]["placement"]
        names = placement["clusterAffinities"][0]["clusterNames"]
        spec = {
            "placement": placement,
            "clusters": [{"name": each} for each in names[:1] if each in self.sites],
        }
        if "suspension" in policy["spec"]:
            spec["suspension"] = policy["spec"]["suspension"]
        return spec

    def _scheduled(self, spec: Object) -> Object:
        if spec["clusters"]:
            return {"type": "Scheduled", "status": "True", "reason": "Success"}
        words = {"reason": "NoClusterFit", "message": "0 clusters fit"}
        return {"type": "Scheduled", "status": "False", **words}

    def _sync(self, key: str) -> None:
        policy, old = self.get("PropagationPolicy", key), self.get("ResourceBinding", f"{key}-job")
        if policy is None or old is None:
            return
        spec = {**old["spec"], **self._of_policy(policy)}
        suspension = dict(old["spec"].get("suspension") or {})
        suspension.pop("dispatching", None)
        spec["suspension"] = {**suspension, **(policy["spec"].get("suspension") or {})}
        self._store({**old, "spec": spec}, old)

    def _store(self, new: Object, old: Object) -> None:
        self.api.replace(self.entry.KINDS["ResourceBinding"], key_of(old), self.stamp(new, old))

    def _release(self) -> None:
        """Release what each queue has room for, the oldest first, as Volcano Global does.

        It replaces the whole suspension of a binding.
        """
        used: dict[str, int] = {}
        waiting: list[tuple[str, Object]] = []
        for each in self.api.items(self.entry.KINDS["ResourceBinding"]):
            job = self.get("Job", key_of(each).removesuffix("-job")) or {"spec": {}}
            queue = job["spec"].get("queue", "default")
            if (each["spec"].get("suspension") or {}).get("scheduling"):
                waiting.append((queue, each))
            else:
                used[queue] = used.get(queue, 0) + queued(each)
        for name, old in sorted(waiting, key=lambda each: each[1]["metadata"]["creationTimestamp"]):
            limit = ((self.get("Queue", name) or {}).get("spec", {}).get("capability") or {}).get(
                GPU
            )
            if limit is None or used.get(name, 0) + queued(old) <= int(limit):
                used[name] = used.get(name, 0) + queued(old)
                spec = {**old["spec"], "suspension": {"scheduling": False}}
                self._store({**old, "spec": spec}, old)
        self._loop.call_later(1.0, self._release)

    def _send(self, name: str) -> None:
        binding, key = self.get("ResourceBinding", name), name.removesuffix("-job")
        job = self.get("Job", key)
        suspension = (binding or {}).get("spec", {}).get("suspension") or {}
        held = suspension.get("dispatching") or suspension.get("scheduling")
        if binding is None or job is None or held or not binding["spec"]["clusters"]:
            return
        site = self.sites[binding["spec"]["clusters"][0]["name"]]
        known = self.sent.get(key)
        if known is not None and known.site is not site:
            self._forget(key)
        elif known is not None:
            return
        if site.down:
            self._later(PERIOD, name, self._send)
            return
        if key in self.stopping:
            self.met.append(f"{key} at {self._loop.time():g} s")
        self._look_at_gang(key)
        self.sent[key] = Pods(job, site, pods_of(job))
        asked, ending = (
            sum(each.accelerators for each in all_.values() if each.site is site and not each.ended)
            for all_ in (self.sent, self.stopping)
        )
        load = Load(self._loop.time(), site.name, site.held + asked, ending, site.accelerators)
        self.loads.append(load)
        self._runs[key] = self._runs.get(key, 0) + 1
        if self._fate is not None:
            self.report(key, "Pending", pending=len(pods_of(job)))
        self._schedule(site)
        self.touch(site)

    def _schedule(self, site: Site) -> None:
        """Give the pods of each vcjob that waits their nodes, those of a vcjob all or none."""
        for key, pods in self.sent.items():
            if pods.site is not site or key in self.stopping:
                continue
            if not pods.on and not pods.ended and self._fits(pods):
                pods.began = self._loop.time()
                if self._fate is not None:
                    self.report(key, "Running", running=len(pods.on))
                    fate = self._fate(key, self._runs[key])
                    self._later(fate.seconds, key, self._end, pods, fate.phase)
            if not pods.ended:
                self._show(pods, "Running" if pods.on else "Pending")

    def _fits(self, pods: Pods) -> bool:
        free = copy.deepcopy(pods.site.free)
        if pods.site.down:
            return False
        on = []
        for _, wanted in pods.wanted:
            fitting = (
                index
                for index, node in enumerate(free)
                if all(node.get(name, 0) >= amount for name, amount in wanted.items())
            )
            index = next(fitting, None)
            if index is None:
                return False
            for name, amount in wanted.items():
                free[index][name] -= amount
            on.append(index)
        pods.site.free, pods.on = free, on
        return True

    def _stop(self, pods: Pods) -> None:
        """End the processes of pods, unless they have ended."""
        if not pods.ended:
            pods.until = self._loop.time()
        pods.over.set()
        for index, (_, wanted) in zip(pods.on, pods.wanted, strict=False):
            for name, amount in wanted.items():
                pods.site.free[index][name] += amount
        pods.on = []

    def _end(self, key: str, pods: Pods, phase: str) -> None:
        if self.sent.get(key) is not pods or pods.ended or not pods.on:
            return
        count = len(pods.on)
        self._stop(pods)
        if phase == "Completed":
            self.report(key, phase, succeeded=count)
        else:
            self.report(key, phase, failed=1, terminated=count - 1)
        self._show(pods, "Succeeded" if phase == "Completed" else "Failed")
        self._schedule(pods.site)
        self.touch(pods.site)

    def _forget(self, key: str) -> None:
        """Delete a vcjob in its member."""
        pods = self.sent.pop(key, None)
        if pods is None:
            return
        fate = self._fate(key, self._runs[key]) if self._fate is not None else Fate(0.0, "")
        if not fate.stops or not pods.on:
            self._vanish(key, pods)
            return
        pods.deleted, pods.saves = True, fate.saves
        self.stopping[key] = pods
        self._show(pods, "Running")
        self._later(fate.stops, key, self._vanish, pods)

    def _vanish(self, key: str, pods: Pods) -> None:
        """Remove the pods of a vcjob that was deleted."""
        self._stop(pods)
        if self.stopping.get(key) is pods:
            del self.stopping[key]
        for _, line in pods.lines(self._loop.time())[-1:]:
            self._saved[owner_of(key)] = line["saved"]
        assert pods.until is not None
        self._left[key] = Began(key, 0.0, pods.until, pods.site.name, None, 0)
        for name, _ in pods.wanted:
            namespace = pods.job["metadata"]["namespace"]
            self._in(pods.site, "remove", "Pod", f"{namespace}/{name}")
        self._schedule(pods.site)
        self.touch(pods.site)

    def _show(self, pods: Pods, phase: str) -> None:
        """Let the API server of the member have the pods in this phase."""
        metadata, member = pods.job["metadata"], self.members[pods.site.name]
        for index, (name, wanted) in enumerate(pods.wanted):
            requests = {each: str(amount) for each, amount in wanted.items() if each != "pods"}
            spec: Object = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
            if pods.on:
                spec["nodeName"] = f"{pods.site.name}-{pods.on[index]}"
            known = member.get(self.entry.KINDS["Pod"], f"{metadata['namespace']}/{name}") or {}
            owner = {"kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
            status: Object = {"phase": phase}
            if phase == "Failed":
                state = {"exitCode": 137 if index else 1, "reason": "Error"}
                finished = {"terminated": {**state, "finishedAt": self._stamp()}}
                status["containerStatuses"] = [{"name": "main", "state": finished}]
            pod = {
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": {"volcano.sh/job-name": metadata["name"]},
                    "ownerReferences": [{**owner, "controller": True}],
                },
                "spec": {**spec, **known.get("spec", {})} if phase != "Running" else spec,
                "status": status,
            }
            if pods.deleted:
                pod["metadata"]["deletionTimestamp"] = self._stamp()
            self._in(pods.site, "put", "Pod", pod)

    def beat(self) -> None:
        """Let the nodes report themselves, again and again."""
        for site in self.sites.values():
            for node in site.nodes(beat=self._stamp()):
                self._in(site, "put", "Node", node)
        self._loop.call_later(BEAT, self.beat)

    def _in(self, site: Site, do: str, kind: str, what: Any) -> None:
        """Change the API server of a member, when the member shows its changes."""
        change = getattr(self.members[site.name], do)
        if site.late:
            self._loop.call_later(site.late, change, self.entry.KINDS[kind], what)
        else:
            change(self.entry.KINDS[kind], what)

    def _bring(self, key: str, pods: Pods, status: Object) -> None:
        """Write what the member reports of a vcjob to its binding and to the vcjob."""
        job = self.get("Job", key)
        if job is None or self.sent.get(key) is not pods or pods.status is not status:
            return
        if pods.site.down:
            self._later(PERIOD, key, self._bring, pods, status)
            return
        since = status["state"]["lastTransitionTime"]
        whole = {"type": "FullyApplied", "status": "True", "lastTransitionTime": since}
        scheduled = {"type": "Scheduled", "status": "True", "reason": "Success"}
        item = {"clusterName": pods.site.name, "applied": True, "status": status}
        report = {"conditions": [scheduled, whole], "aggregatedStatus": [item]}
        kinds = self.entry.KINDS
        self.api.change(kinds["ResourceBinding"], f"{key}-job", {"status": report}, status=True)
        self.api.replace(kinds["Job"], key, {**job, "status": status})

    def _collect(self, site: Site) -> None:
        self._due.discard(site.name)
        old = self.get("Cluster", site.name)
        if old is None:
            return
        waiting: Amounts = {}
        for pods in self.sent.values():
            if pods.site is site and not pods.on and not pods.ended:
                for _, wanted in pods.wanted:
                    for name, amount in wanted.items():
                        waiting[name] = waiting.get(name, 0) + amount
        status = {**old["status"]}
        ready = old["status"]["conditions"][0]
        if (ready["status"] == "True") is site.down:
            status["conditions"] = [
                {
                    "type": "Ready",
                    "status": "False" if site.down else "True",
                    "reason": "ClusterNotReachable" if site.down else "ClusterReady",
                    "lastTransitionTime": self._stamp(),
                }
            ]
        if not site.down:
            status["resourceSummary"] = site.summary(waiting=waiting)
        self.api.replace(self.entry.KINDS["Cluster"], site.name, {**old, "status": status})


def key_of(obj: Object) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def patched_by(obj: Object, response: Object) -> Object:
    """Return an object after the JSON patch of an admission response."""
    if "patch" not in response:
        return obj
    made = copy.deepcopy(obj)
    for each in orjson.loads(base64.b64decode(response["patch"])):
        *path, last = (
            step.replace("~1", "/").replace("~0", "~") for step in each["path"].split("/")[1:]
        )
        node: Any = made
        for step in path:
            node = node[int(step)] if isinstance(node, list) else node[step]
        key: Any = int(last) if isinstance(node, list) and last != "-" else last
        if each["op"] == "remove":
            del node[key]
        elif isinstance(node, list) and each["op"] == "add":
            node.insert(len(node) if key == "-" else key, each["value"])
        else:
            node[key] = each["value"]
    return made


def heads_of(raw: Object) -> set[str]:
    """Return the HyperJobs for which sub-jobs of this one make way."""
    jobs = (raw.get("status") or {}).get("jobs") or ()
    found = (STOPPED.search(each.get("message", "")) for each in jobs)
    return {each[1] for each in found if each is not None}


def owner_of(key: str) -> str:
    """Return the key of a HyperJob by that of its vcjob."""
    return key.rsplit("-", 2)[0]


def resumed(job: Object) -> int | None:
    """Return the step that a vcjob was told to go on from."""
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    found = [each for each in container.get("env", ()) if each["name"] == "HYPERJOB_RESUME_STEP"]
    return int(found[0]["value"]) if found else None


def queued(binding: Object) -> int:
    """Return the accelerators that a binding asks of its queue."""
    requests = (binding["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
    return binding["spec"]["replicas"] * int(requests.get(GPU, 0))


def accelerators_of(job: Object) -> int:
    """Return the accelerators of all pods of a vcjob."""
    return sum(wanted.get(GPU, 0) for _, wanted in pods_of(job))


def pods_of(job: Object) -> list[tuple[str, Amounts]]:
    """Return the name of each pod of a vcjob, and what it asks for."""
    found = []
    for task in job["spec"]["tasks"]:
        wanted: Amounts = {"pods": 1}
        for container in task["template"]["spec"]["containers"]:
            for name, amount in container.get("resources", {}).get("requests", {}).items():
                wanted[name] = wanted.get(name, 0) + int(amount)
        name = f"{job['metadata']['name']}-{task['name']}"
        found += [(f"{name}-{index}", wanted) for index in range(task["replicas"])]
    return found
