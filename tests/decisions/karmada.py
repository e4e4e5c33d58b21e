"""Karmada, Volcano Global's queue and the member clusters, as far as the controller sees them.

Each step takes its time. A member places all pods of a vcjob or none, and lets them end as their
fate says; without a fate they do nothing, and what a cluster reports is up to the case.
"""

import asyncio
import base64
import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import GPU
from tests.decisions.sites import Amounts, Site

Object = dict[str, Any]

BIND, SEND, REPORT, PERIOD = 0.5, 1.0, 1.0, 10.0
"""Seconds of a step, and between two summaries of a cluster."""
CONTROLLER = "system:serviceaccount:hyperjob-system:hyperjob-controller"
BINDING = {"group": "work.karmada.io", "version": "v1alpha2", "kind": "ResourceBinding"}


class Fate(NamedTuple):
    """How a vcjob ends: so many seconds after its start, in this phase."""

    seconds: float
    phase: str


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

    @property
    def ended(self) -> bool:
        return self.until is not None


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
        self.loads: list[tuple[float, str, int, int]] = []
        """At each arrival of a vcjob: time, cluster, what all there ask for, and what it has."""
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

    def log(self, site: str, pod: str, since: str) -> bytes | None:
        """Return the log of a pod from a time on; None without the pod.

        The first pod of a vcjob makes a step in two seconds and writes it after ten steps.
        """
        for pods in self.sent.values():
            names = [name for name, _ in pods.wanted]
            if pods.site.name == site and pod in names and (pods.on or pods.ended):
                rows = []
                end = self._loop.time() if pods.until is None else pods.until
                for count in range(1, int((end - pods.began) / 20) + 1):
                    stamp = self._stamp(pods.began + 20 * count)
                    told = {"step": 10 * count, "saved": count // 3 * 30, "steps": 2000}
                    if stamp >= since and pod == names[0]:
                        rows.append(f"{stamp} {json.dumps({'hyperjob': told})}\n")
                return "".join(rows).encode()
        return None

    def touch(self, site: Site) -> None:
        """Bring the summary of a cluster at the end of its period."""
        if site.name not in self._due:
            self._due.add(site.name)
            turn = (self._loop.time() // PERIOD + 1) * PERIOD
            self._loop.call_at(turn, self._collect, site)

    def lose(self, site: Site, *, down: bool) -> None:
        """Let a cluster be out of reach and lose its pods, or come back with failed ones."""
        site.down = down
        for key, pods in self.sent.items():
            if pods.site is site:
                self._free(pods)
                pods.until = self._loop.time()
                if not down:
                    self.report(key, "Failed", failed=1)
        self.touch(site)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        key = key_of(new or old or {})
        if kind == "Job" and old is None and new is not None:
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
        """Release one binding of each queue that has room for it, as Volcano Global does.

        It replaces the whole suspension of a binding.
        """
        used: dict[str, int] = {}
        first: dict[str, Object] = {}
        for each in self.api.items(self.entry.KINDS["ResourceBinding"]):
            job = self.get("Job", key_of(each).removesuffix("-job")) or {"spec": {}}
            queue = job["spec"].get("queue", "default")
            if (each["spec"].get("suspension") or {}).get("scheduling"):
                first.setdefault(queue, each)
            else:
                used[queue] = used.get(queue, 0) + asked(each)
        for name, old in first.items():
            limit = ((self.get("Queue", name) or {}).get("spec", {}).get("capability") or {}).get(
                GPU
            )
            if limit is None or used.get(name, 0) + asked(old) <= int(limit):
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
        self.sent[key] = Pods(job, site, pods_of(job))
        there = [each for each in self.sent.values() if each.site is site and not each.ended]
        load = sum(wanted.get(GPU, 0) for each in there for _, wanted in each.wanted)
        self.loads.append((self._loop.time(), site.name, load, site.accelerators))
        self._runs[key] = self._runs.get(key, 0) + 1
        if self._fate is not None:
            self.report(key, "Pending", pending=len(pods_of(job)))
        self._schedule(site)
        self.touch(site)

    def _schedule(self, site: Site) -> None:
        """Give the pods of each vcjob that waits their nodes, those of a vcjob all or none."""
        for key, pods in self.sent.items():
            if pods.site is site and not pods.on and not pods.ended and self._fits(pods):
                pods.began = self._loop.time()
                if self._fate is not None:
                    self.report(key, "Running", running=len(pods.on))
                    fate = self._fate(key, self._runs[key])
                    self._later(fate.seconds, key, self._end, pods, fate.phase)
            if pods.site is site and not pods.ended:
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

    def _free(self, pods: Pods) -> None:
        for index, (_, wanted) in zip(pods.on, pods.wanted, strict=False):
            for name, amount in wanted.items():
                pods.site.free[index][name] += amount
        pods.on = []

    def _end(self, key: str, pods: Pods, phase: str) -> None:
        if self.sent.get(key) is not pods or pods.ended or not pods.on:
            return
        count = len(pods.on)
        self._free(pods)
        pods.until = self._loop.time()
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
        self._free(pods)
        for name, _ in pods.wanted:
            namespace = pods.job["metadata"]["namespace"]
            self.members[pods.site.name].remove(self.entry.KINDS["Pod"], f"{namespace}/{name}")
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
            member.put(self.entry.KINDS["Pod"], pod)

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


def asked(binding: Object) -> int:
    """Return the accelerators that a binding asks of its queue."""
    requests = (binding["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
    return binding["spec"]["replicas"] * int(requests.get(GPU, 0))


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
