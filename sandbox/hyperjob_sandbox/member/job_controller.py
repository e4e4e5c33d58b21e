"""Volcano's job controller: makes the pods of vcjobs, follows them, and writes the jobs' status.

It carries out what `jobstate.step` decides and decides nothing itself. Its own writes count at
once, before the informer has seen them, so that nothing is made twice.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType
from hyperjob.kube.errors import AlreadyExists
from hyperjob.kube.resources import CONFIG_MAPS, PODS, SERVICES, VCJOBS, key_of
from hyperjob_sandbox.controller import Controller, changed_in
from hyperjob_sandbox.member import jobpods, jobstate
from hyperjob_sandbox.member.jobpolicies import SYNC, Happening, action_for
from hyperjob_sandbox.member.watching import BY_JOB, MemberCaches, phase_of_pod
from hyperjob_sandbox.objects import annotations_of, controller_uid, is_going

_GATHER_SECONDS: Final = 0.1
"""Changes of pods that come this close together become one status write."""
_AT_ONCE: Final = 16


class JobController:
    """One controller over vcjobs, fed by jobs, pods and PodGroups."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self._kube = caches.kube
        self.controller = Controller("job-controller", self._sync, workers=4)
        self._happenings: dict[str, list[Happening]] = defaultdict(list)
        self._written: dict[str, Object] = {}
        self._made: dict[str, dict[str, Object]] = defaultdict(dict)
        self._killed: set[str] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        caches.jobs.add_handler(self._on_job)
        caches.pods.add_handler(self._on_pod)
        self.controller.watch(
            caches.groups, when=lambda old, new: changed_in(old, new, _phase), keys=_owner_keys
        )

    def _on_job(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if changed_in(old, new, lambda job: (job["spec"], jobstate.phase_of(job))):
            self.controller.add(key_of(new or old or {}))

    def _on_pod(self, event: EventType, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        meta: Object = pod["metadata"]
        job = annotations_of(pod).get(jobpods.JOB_NAME)
        if job is None:
            return
        key = f"{meta['namespace']}/{job}"
        made = self._made.get(key, {}).get(meta["name"])
        if made is not None and made["metadata"]["uid"] == meta["uid"]:
            del self._made[key][meta["name"]]
        happening = self._happening(key, old, new)
        if happening is not None:
            self._happenings[key].append(happening)
        self.controller.add(key, after=_GATHER_SECONDS)

    def _happening(self, key: str, old: Object | None, new: Object | None) -> Happening | None:
        pod = new or old
        assert pod is not None
        task = jobstate.task_of(pod)
        version = int(annotations_of(pod).get(jobpods.JOB_VERSION) or 0)
        if new is None:
            evicted = pod["metadata"]["uid"] not in self._killed
            self._killed.discard(pod["metadata"]["uid"])
            return Happening("PodEvicted", task, version=version) if evicted else None
        phase = phase_of_pod(new)
        if old is None or phase == phase_of_pod(old):
            return None
        if phase == "Failed":
            return Happening("PodFailed", task, _exit_code(new), version)
        job = self._caches.jobs.get(key)
        if phase != "Succeeded" or job is None:
            return None
        completed = jobstate.task_completed(job, self._pods(key, job), task)
        return Happening("TaskCompleted", task, version=version) if completed else None

    async def _sync(self, key: str) -> None:
        job = self._job(key)
        if job is None:
            await self._clean_up(key)
            return
        if is_going(job):
            return
        if not jobstate.phase_of(job):
            job = await self._begin(job)
        if jobstate.phase_of(job) not in jobstate.TERMINAL:
            await self._caches.ensure(jobpods.build_pod_group(job), _sync_group)
        asked = [action_for(job, happening) for happening in self._happenings.pop(key, [])]
        actions = dict.fromkeys(action for action in asked if action != SYNC)
        for action in actions or (SYNC,):
            job = await self._execute(key, job, action)

    async def _begin(self, job: Object) -> Object:
        status = jobstate.initial_status(job, now=datetime.now(UTC))
        begun = await self._write_status(job, status)
        for obj in jobpods.build_plugin_objects(begun):
            resource = SERVICES if obj["kind"] == SERVICES.kind else CONFIG_MAPS
            with suppress(AlreadyExists):
                await self._kube.create(resource, obj)
        return begun

    async def _execute(self, key: str, job: Object, action: str) -> Object:
        name = jobpods.pod_group_name(job)
        group = self._caches.groups.get(f"{job['metadata']['namespace']}/{name}")
        pods = self._pods(key, job)
        admitted = group is not None and _phase(group) not in ("", "Pending")
        now = datetime.now(UTC)
        step = jobstate.step(job, pods, action, admitted=admitted, now=now)
        if step.status is not None and not step.create and not step.delete:
            # the end of a finished job follows at once: one write for both
            ended = {**job, "status": step.status}
            if jobstate.phase_of(ended) in jobstate.TERMINAL:
                follow = jobstate.step(ended, pods, SYNC, admitted=admitted, now=now)
                step = replace(follow, status=follow.status or step.status)
        by_name = {str(pod["metadata"]["name"]): pod for pod in pods}
        await self._together(self._create_pod(key, pod) for pod in step.create)
        await self._together(self._delete_pod(by_name[name]) for name in step.delete)
        if step.status is not None:
            job = await self._write_status(job, step.status)
        if step.ends_group and group is not None:
            await self._caches.delete(group)
        return job

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        async def one(call: Coroutine[Any, Any, None]) -> None:
            async with self._slots:
                await call

        for result in await asyncio.gather(*map(one, calls), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _create_pod(self, key: str, pod: Object) -> None:
        with suppress(AlreadyExists):
            created = await self._kube.create(PODS, pod)
            if self._caches.pods.get(key_of(created)) is None:
                self._made[key][created["metadata"]["name"]] = created

    async def _delete_pod(self, pod: Object) -> None:
        self._killed.add(pod["metadata"]["uid"])
        await self._caches.delete(pod)

    async def _write_status(self, job: Object, status: Object) -> Object:
        written = await self._kube.replace(VCJOBS, {**job, "status": status}, subresource="status")
        self._written[key_of(written)] = written
        return written

    def _job(self, key: str) -> Object | None:
        """Return a vcjob as it was last written or seen, whichever is newer."""
        seen, written = self._caches.jobs.get(key), self._written.get(key)
        if (
            seen is None
            or written is None
            or written["metadata"]["uid"] != seen["metadata"]["uid"]
            or _version(written) <= _version(seen)
        ):
            self._written.pop(key, None)
            return seen
        return written

    def _pods(self, key: str, job: Object) -> list[Object]:
        seen = {pod["metadata"]["name"]: pod for pod in self._caches.pods.by_index(BY_JOB, key)}
        pods = {**self._made.get(key, {}), **seen}
        return [pod for pod in pods.values() if controller_uid(pod) == job["metadata"]["uid"]]

    async def _clean_up(self, key: str) -> None:
        """Delete what a deleted vcjob leaves: not every API server collects garbage."""
        self._made.pop(key, None)
        self._happenings.pop(key, None)
        pods = self._caches.pods.by_index(BY_JOB, key)
        await self._together(self._delete_pod(pod) for pod in pods if not is_going(pod))
        for group in self._caches.groups.items():
            if key in _owner_keys(group):
                await self._caches.delete(group)


def _sync_group(live: Object, desired: Object) -> Object:
    """Return a PodGroup with the size that its vcjob has now."""
    spec: Object = live["spec"]
    changed = any(spec.get(name) != value for name, value in desired["spec"].items())
    return {**live, "spec": desired["spec"]} if changed else live


def _owner_keys(group: Object) -> list[str]:
    """Return the key of the vcjob that a PodGroup belongs to."""
    meta: Object = group["metadata"]
    return [
        f"{meta['namespace']}/{reference['name']}"
        for reference in meta.get("ownerReferences") or ()
        if reference["kind"] == VCJOBS.kind
    ]


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _exit_code(pod: Object) -> int:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            return int(terminated["exitCode"])
    return 0
