"""Volcano's job controller: carries out what `jobstate.step` decides."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.errors import Forbidden
from hyperjob_core.kube.resources import CORE_EVENTS, VCJOBS, key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import Controller, change_of, together
from hyperjob_sandbox.member import jobpods, jobstate
from hyperjob_sandbox.member.caches import BY_JOB, ENDED, MemberCaches, job_keys
from hyperjob_sandbox.member.jobstate import SYNC, Happening, action_for
from hyperjob_sandbox.objects import annotations_of, controller_uid, is_going, phase_of

_GATHER_SECONDS: Final = 0.1
"""Changes of pods that come this close together become one status write."""
_TRIES: Final = 15
"""Volcano terminates a vcjob whose pods it could not create so many times."""


class JobController:
    """One controller over vcjobs, fed by jobs, pods and PodGroups."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self.controller = Controller("job-controller", self._sync, workers=4)
        self._happenings: dict[str, list[Happening]] = defaultdict(list)
        self._killed: set[str] = set()
        self._tries: Counter[str] = Counter()
        self.controller.watch(
            caches.jobs, when=change_of(lambda job: (job["spec"], jobstate.job_phase(job)))
        )
        self.controller.watch(caches.groups, when=change_of(phase_of), keys=_owner_keys)
        caches.pods.add_handler(self._on_pod)

    def _on_pod(self, _: EventType, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        for key in job_keys(pod):
            job, uid = self._caches.jobs.get(key), controller_uid(pod) or ""
            if job is not None and job["metadata"]["uid"] == uid:
                self._happenings[uid] += self._happening(job, pod, old, new)
            self.controller.add(key, after=_GATHER_SECONDS)

    def _happening(
        self, job: Object, pod: Object, old: Object | None, new: Object | None
    ) -> list[Happening]:
        task = jobstate.task_of(pod)
        version = int(annotations_of(pod).get(jobpods.JOB_VERSION) or 0)
        if new is None:
            evicted = pod["metadata"]["uid"] not in self._killed
            self._killed.discard(pod["metadata"]["uid"])
            return [Happening("PodEvicted", task, version=version)] if evicted else []
        phase = phase_of(new)
        if phase not in ENDED and jobstate.task_failed(job, self._pods(job), task):
            return [Happening("TaskFailed", task, version=version)]
        if old is None or phase == phase_of(old):
            return []
        if phase == "Failed":
            return [Happening("PodFailed", task, _exit_code(new), version)]
        completed = phase == "Succeeded" and jobstate.task_completed(job, self._pods(job), task)
        return [Happening("TaskCompleted", task, version=version)] if completed else []

    async def _sync(self, key: str) -> None:
        job = self._caches.jobs.get(key)
        if job is None or is_going(job):
            return  # the garbage collection ends its pods
        if not jobstate.job_phase(job):
            await self._caches.set_status(job, jobstate.initial_status(job, now=datetime.now(UTC)))
            return
        if jobstate.job_phase(job) not in jobstate.TERMINAL:
            await self._caches.ensure(jobpods.build_pod_group(job), _sync_group)
        happenings = self._happenings.pop(job["metadata"]["uid"], [])
        actions = dict.fromkeys(action_for(job, happening) for happening in happenings)
        actions.pop(SYNC, None)
        for action in actions or (SYNC,):
            await self._execute(self._caches.jobs.get(key) or job, action)

    async def _execute(self, job: Object, action: str) -> None:
        name = jobpods.pod_group_name(job)
        group = self._caches.groups.get(f"{job['metadata']['namespace']}/{name}")
        pods = self._pods(job)
        admitted = group is not None and phase_of(group) != "Pending"
        now = datetime.now(UTC)
        step = jobstate.step(job, pods, action, admitted=admitted, now=now)
        if step.status is not None and not step.create and not step.delete:
            # the end of a finished job follows at once: one write for both
            ended = {**job, "status": step.status}
            if jobstate.job_phase(ended) in jobstate.TERMINAL:
                follow = jobstate.step(ended, pods, SYNC, admitted=admitted, now=now)
                step = replace(follow, status=follow.status or step.status)
        by_name = {str(pod["metadata"]["name"]): pod for pod in pods}
        try:
            await together(map(self._caches.create, step.create))
        except Forbidden as error:
            await self._refused(job, error)
            return
        await together(self._delete_pod(by_name[name]) for name in step.delete)
        if step.status is not None:
            await self._caches.set_status(job, step.status)
        if step.ends_group and group is not None:
            await self._caches.delete(group)

    async def _refused(self, job: Object, error: Forbidden) -> None:
        """Record that the API server refuses a pod; terminate the vcjob after some tries."""
        uid = job["metadata"]["uid"]
        self._tries[uid] += 1
        await self._caches.kube.create(CORE_EVENTS, _failed_create(job, error))
        if self._tries[uid] < _TRIES:
            raise error
        del self._tries[uid]
        await self._execute(job, "TerminateJob")

    async def _delete_pod(self, pod: Object) -> None:
        self._killed.add(pod["metadata"]["uid"])
        await self._caches.delete(pod)

    def _pods(self, job: Object) -> list[Object]:
        pods = self._caches.pods.by_index(BY_JOB, key_of(job))
        return [pod for pod in pods if controller_uid(pod) == job["metadata"]["uid"]]


def _failed_create(job: Object, error: Forbidden) -> Object:
    """Return the Event that Volcano writes about refused pods, whose text prints Go structs."""
    meta, now = job["metadata"], wire_now()
    status = f'v1.Status{{Status:"Failure", Message:{json.dumps(error.message)}, Code:403}}'
    return {
        **CORE_EVENTS.head,
        "metadata": {"generateName": f"{meta['name']}-", "namespace": meta["namespace"]},
        "involvedObject": {
            **VCJOBS.head,
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating pods: [failed to create pod, err: &{status}]",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "vc-controller-manager"},
    }


def _sync_group(live: Object, desired: Object) -> Object:
    """Return a PodGroup with the size that its vcjob has now."""
    return {**live, "spec": {**live["spec"], **desired["spec"]}}


def _owner_keys(group: Object) -> list[str]:
    """Return the key of the vcjob that a PodGroup belongs to."""
    meta: Object = group["metadata"]
    return [
        f"{meta['namespace']}/{reference['name']}"
        for reference in meta.get("ownerReferences") or ()
        if reference["kind"] == VCJOBS.kind
    ]


def _exit_code(pod: Object) -> int:
    statuses: list[Object] = (pod.get("status") or {}).get("containerStatuses") or []
    ended = ((each.get("state") or {}).get("terminated") for each in statuses)
    return next((int(each["exitCode"]) for each in ended if each), 0)
