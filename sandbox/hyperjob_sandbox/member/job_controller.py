"""Volcano's job controller: makes the pods of vcjobs, follows them, and writes the jobs' status.

It carries out what `jobstate.step` decides and decides nothing itself. Its own writes count at
once, before the informer has seen them, so that nothing is made twice.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType
from hyperjob.kube.errors import AlreadyExists, NotFound
from hyperjob.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    PODGROUPS,
    PODS,
    SERVICES,
    VCJOBS,
    key_of,
    split_key,
)
from hyperjob_sandbox.controller import Awaited, Controller
from hyperjob_sandbox.member import jobpods, jobstate
from hyperjob_sandbox.member.jobpolicies import SYNC, Action, Happening, action_for
from hyperjob_sandbox.member.watching import BY_JOB, MemberCaches, job_key_of, phase_of_pod

_GATHER_SECONDS: Final = 0.1
"""Changes of pods that come this close together become one status write."""
_AT_ONCE: Final = 16


class JobController:
    """One controller over vcjobs, fed by jobs, pods, PodGroups and commands."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self._kube = caches.kube
        self.controller = Controller("job-controller", self._sync, workers=4)
        self.commands = Controller("command-controller", self._command, workers=1)
        self._happenings: dict[str, list[Happening]] = defaultdict(list)
        self._delayed: dict[str, list[tuple[float, Action]]] = defaultdict(list)
        self._written: dict[str, Object] = {}
        self._made: dict[str, dict[str, Object]] = defaultdict(dict)
        self._killed: set[str] = set()
        self._awaited = Awaited()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        caches.jobs.add_handler(self._on_job)
        caches.pods.add_handler(self._on_pod)
        caches.groups.add_handler(self._on_group)
        caches.commands.add_handler(self._on_command)

    def _on_job(self, event: EventType, old: Object | None, new: Object | None) -> None:
        job = new or old
        assert job is not None
        if (
            old is not None
            and new is not None
            and old["spec"] == new["spec"]
            and jobstate.phase_of(old) == jobstate.phase_of(new)
        ):
            return
        self.controller.add(key_of(job))

    def _on_pod(self, event: EventType, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        key = job_key_of(pod)
        if key is None:
            return
        made = self._made.get(key, {}).get(pod["metadata"]["name"])
        if made is not None and made["metadata"]["uid"] == pod["metadata"]["uid"]:
            del self._made[key][pod["metadata"]["name"]]
        happening = self._happening(key, old, new)
        if happening is not None:
            self._happenings[key].append(happening)
        self.controller.add(key, after=_GATHER_SECONDS)

    def _happening(self, key: str, old: Object | None, new: Object | None) -> Happening | None:
        pod = new or old
        assert pod is not None
        annotations: dict[str, str] = pod["metadata"]["annotations"]
        task, name = annotations[jobpods.TASK_SPEC], str(pod["metadata"]["name"])
        version = int(annotations.get(jobpods.JOB_VERSION) or 0)
        if new is None:
            uid = pod["metadata"]["uid"]
            if uid in self._killed:
                self._killed.discard(uid)
                return None
            return Happening("PodEvicted", task, name, version=version)
        if old is None:
            return Happening("PodPending", task, name, version=version)
        phase = phase_of_pod(new)
        if phase == phase_of_pod(old):
            return self._task_failed(key, new, task, version)
        if phase == "Failed":
            return Happening("PodFailed", task, name, _exit_code(new), version)
        if phase == "Succeeded":
            job = self._caches.jobs.get(key)
            if job is not None and jobstate.task_completed(job, self._pods(key, job), task):
                return Happening("TaskCompleted", task, name, version=version)
        return None

    def _task_failed(self, key: str, pod: Object, task: str, version: int) -> Happening | None:
        """Notice a task whose containers were restarted as often as it may retry."""
        restarts = _restarts(pod)
        job = self._caches.jobs.get(key)
        if not restarts or job is None:
            return None
        limits = {each["name"]: int(each.get("maxRetry") or 0) for each in job["spec"]["tasks"]}
        total = sum(
            _restarts(each)
            for each in self._pods(key, job)
            if each["metadata"]["annotations"][jobpods.TASK_SPEC] == task
        )
        limit = limits.get(task, 0)
        if limit <= 0 or total < limit:
            return None
        return Happening("TaskFailed", task, pod["metadata"]["name"], version=version)

    def _on_group(self, event: EventType, old: Object | None, new: Object | None) -> None:
        group = new or old
        assert group is not None
        self._awaited.seen(key_of(group))
        if old is not None and new is not None and _phase(old) == _phase(new):
            return
        for reference in group["metadata"].get("ownerReferences") or ():
            if reference["kind"] == VCJOBS.kind:
                self.controller.add(f"{group['metadata']['namespace']}/{reference['name']}")

    def _on_command(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.commands.add(key_of(new))

    async def _command(self, key: str) -> None:
        """Carry out a command exactly once: the client that deletes it does."""
        command = self._caches.commands.get(key)
        target = (command or {}).get("target") or {}
        if command is None or target.get("kind") != VCJOBS.kind:
            return
        meta: Object = command["metadata"]
        try:
            await self._kube.delete(COMMANDS, meta["name"], namespace=meta["namespace"])
        except NotFound:
            return
        job_key = f"{meta['namespace']}/{target['name']}"
        happening = Happening("CommandIssued", action=str(command.get("action", "")))
        self._happenings[job_key].append(happening)
        self.controller.add(job_key)

    async def _sync(self, key: str) -> None:
        job = self._job(key)
        happenings = self._happenings.pop(key, [])
        if job is None:
            await self._clean_up(key)
            return
        if job["metadata"].get("deletionTimestamp"):
            return
        if not jobstate.phase_of(job):
            job = await self._begin(job)
        if jobstate.phase_of(job) not in jobstate.TERMINAL:
            await self._ensure_group(job)
        for action in self._actions(key, job, happenings):
            job = await self._execute(key, job, action)

    def _actions(self, key: str, job: Object, happenings: list[Happening]) -> list[Action]:
        """Return the distinct actions asked for now; those with a delay come back later."""
        now = time.monotonic()
        actions: dict[Action, None] = {}
        for happening in happenings:
            action = action_for(job, happening)
            if action.delay:
                self._delayed[key].append((now + action.delay, action))
                self.controller.add(key, after=action.delay)
            elif action.name != SYNC:
                actions[action] = None
        due = [action for at, action in self._delayed.pop(key, []) if at <= now]
        for action in due:
            actions[action] = None
        return list(actions) or [Action()]

    async def _begin(self, job: Object) -> Object:
        status = jobstate.initial_status(job, now=datetime.now(UTC))
        begun = await self._write_status(job, status)
        for obj in jobpods.build_plugin_objects(begun):
            resource = SERVICES if obj["kind"] == SERVICES.kind else CONFIG_MAPS
            try:
                await self._kube.create(resource, obj)
            except AlreadyExists:
                continue
        return begun

    async def _ensure_group(self, job: Object) -> None:
        wanted = jobpods.build_pod_group(job)
        live = self._caches.groups.get(key_of(wanted))
        try:
            if live is None and key_of(wanted) not in self._awaited:
                await self._kube.create(PODGROUPS, wanted)
                self._awaited.add(key_of(wanted))
            elif live is None:
                return
            elif any(live["spec"].get(name) != value for name, value in wanted["spec"].items()):
                await self._kube.replace(PODGROUPS, {**live, "spec": wanted["spec"]})
        except AlreadyExists:
            return

    async def _execute(self, key: str, job: Object, action: Action) -> Object:
        group = self._caches.groups.get(
            f"{job['metadata']['namespace']}/{jobpods.pod_group_name(job)}"
        )
        pods = self._pods(key, job)
        admitted = group is not None and _phase(group) not in ("", "Pending")
        now = datetime.now(UTC)
        step = jobstate.step(job, pods, action, admitted=admitted, now=now)
        if step.status is not None and not step.create and not step.delete:
            # the end of a finished job follows at once: one write for both
            ended = {**job, "status": step.status}
            if jobstate.phase_of(ended) in jobstate.TERMINAL:
                follow = jobstate.step(ended, pods, Action(), admitted=admitted, now=now)
                step = replace(follow, status=follow.status or step.status)
        by_name = {str(pod["metadata"]["name"]): pod for pod in pods}
        await self._together(self._create_pod(key, pod) for pod in step.create)
        await self._together(self._delete_pod(by_name[name]) for name in step.delete)
        if step.status is not None:
            job = await self._write_status(job, step.status)
        if step.ends_group and group is not None:
            await self._delete(PODGROUPS.path(job["metadata"]["namespace"], _name(group)))
        return job

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        async def one(call: Coroutine[Any, Any, None]) -> None:
            async with self._slots:
                await call

        errors = [
            result
            for result in await asyncio.gather(*map(one, calls), return_exceptions=True)
            if isinstance(result, BaseException)
        ]
        if errors:
            raise errors[0]

    async def _create_pod(self, key: str, pod: Object) -> None:
        try:
            created = await self._kube.create(PODS, pod)
        except AlreadyExists:
            return
        if self._caches.pods.get(key_of(created)) is None:
            self._made[key][created["metadata"]["name"]] = created

    async def _delete_pod(self, pod: Object) -> None:
        self._killed.add(pod["metadata"]["uid"])
        await self._delete(PODS.path(pod["metadata"]["namespace"], _name(pod)))

    async def _delete(self, path: str) -> None:
        try:
            await self._kube.raw("DELETE", path)
        except NotFound:
            return

    async def _write_status(self, job: Object, status: Object) -> Object:
        written = await self._kube.replace(VCJOBS, {**job, "status": status}, subresource="status")
        self._written[key_of(written)] = written
        return written

    def _job(self, key: str) -> Object | None:
        """Return a vcjob as it was last written or seen, whichever is newer."""
        seen, written = self._caches.jobs.get(key), self._written.get(key)
        if seen is None:
            self._written.pop(key, None)
            return None
        if (
            written is not None
            and written["metadata"]["uid"] == seen["metadata"]["uid"]
            and _version(written) > _version(seen)
        ):
            return written
        return seen

    def _pods(self, key: str, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        seen = {
            str(pod["metadata"]["name"]): pod for pod in self._caches.pods.by_index(BY_JOB, key)
        }
        pods = {**self._made.get(key, {}), **seen}
        return [pod for pod in pods.values() if _owner_uid(pod) == uid]

    async def _clean_up(self, key: str) -> None:
        """Delete what a deleted vcjob leaves: not every API server collects garbage."""
        self._made.pop(key, None)
        self._delayed.pop(key, None)
        self._written.pop(key, None)
        pods = self._caches.pods.by_index(BY_JOB, key)
        await self._together(
            self._delete_pod(pod) for pod in pods if not pod["metadata"].get("deletionTimestamp")
        )
        namespace, name = split_key(key)
        for group in self._caches.groups.items():
            references = group["metadata"].get("ownerReferences") or ()
            if group["metadata"]["namespace"] == namespace and any(
                reference["kind"] == VCJOBS.kind and reference["name"] == name
                for reference in references
            ):
                await self._delete(PODGROUPS.path(namespace, _name(group)))


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _owner_uid(pod: Object) -> str | None:
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference["uid"])
    return None


def _exit_code(pod: Object) -> int:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            return int(terminated["exitCode"])
    return 0


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(int(status.get("restartCount") or 0) for status in statuses)
