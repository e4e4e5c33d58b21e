"""The life of a vcjob as a state machine: its status and pods now, what follows from an action.

Pure: `step` takes everything the decision needs, the time included, and returns what to write,
create and delete. It must never touch a pod that another version of the job still has to end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.member.jobpods import build_pod, controlled_resources, pod_name, task_minimum
from hyperjob_sandbox.member.jobpolicies import SYNC, Action

TERMINAL: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})
_ENDING: Final = {"Completing": "Completed", "Aborting": "Aborted", "Terminating": "Terminated"}
_KILLS: Final = {
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
    "RestartJob": "Restarting",
}
_RESTARTS_PART: Final = frozenset({"RestartTask", "RestartPod", "RestartPartition"})
_SOFT: Final = frozenset({"Succeeded", "Failed"})
_COUNTERS: Final = {
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What one step writes: the status when it changed, pods to make, pods to delete.

    `ends_group` says that the PodGroup goes as well.
    """

    status: Object | None = None
    create: tuple[Object, ...] = ()
    delete: tuple[str, ...] = ()
    ends_group: bool = False


@dataclass(slots=True)
class _Count:
    by_counter: dict[str, int] = field(default_factory=dict)
    by_task: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, pod: Object) -> None:
        phase = str((pod.get("status") or {}).get("phase") or "Pending")
        counter = _COUNTERS.get(phase, "unknown")
        self.by_counter[counter] = self.by_counter.get(counter, 0) + 1
        task = pod["metadata"]["annotations"]["volcano.sh/task-spec"]
        phases = self.by_task.setdefault(task, {})
        phases[phase] = phases.get(phase, 0) + 1

    def terminating(self) -> None:
        self.by_counter["terminating"] = self.by_counter.get("terminating", 0) + 1

    def get(self, counter: str) -> int:
        return self.by_counter.get(counter, 0)

    def write(self, status: Object) -> None:
        for counter in (*_COUNTERS.values(), "unknown", "terminating"):
            status.pop(counter, None)
        status.update({name: count for name, count in self.by_counter.items() if count})
        status.pop("taskStatusCount", None)
        if self.by_task:
            status["taskStatusCount"] = {
                task: {"phase": phases} for task, phases in sorted(self.by_task.items())
            }


def initial_status(job: Object, *, now: datetime) -> Object:
    """Return the first status of a vcjob."""
    status: Object = {
        "minAvailable": int(job["spec"].get("minAvailable") or 0),
        "state": {"phase": "Pending"},
    }
    return _moved(status, now)


def phase_of(job: Object) -> str:
    """Return the phase of a vcjob, "" before its first status."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def step(
    job: Object, pods: Sequence[Object], action: Action, *, admitted: bool, now: datetime
) -> Step:
    """Return what an action does to a vcjob with these pods.

    `admitted` says that the scheduler let its PodGroup in, so that pods may be made.
    """
    phase = phase_of(job)
    if phase in TERMINAL:
        if phase == "Aborted" and action.name == "ResumeJob":
            return _kill(job, pods, now=now, retain=_SOFT, to="Restarting", retries=1)
        return _finish(job, pods, now=now)
    if phase in _ENDING:
        if phase == "Aborting" and action.name == "ResumeJob":
            return _kill(job, pods, now=now, retain=_SOFT, to="Restarting", retries=1)
        return _kill(job, pods, now=now, retain=_SOFT, until=_ENDING[phase])
    if phase == "Restarting":
        return _restarting(job, pods, action, admitted=admitted, now=now)
    if action.name == "RestartJob":
        return _kill(job, pods, now=now, retain=frozenset(), to="Restarting", retries=1)
    if action.name in _RESTARTS_PART:
        return _kill_part(job, pods, action, now=now)
    if action.name in _KILLS:
        return _kill(job, pods, now=now, retain=_SOFT, to=_KILLS[action.name])
    return _sync(job, pods, admitted=admitted, now=now)


def task_completed(job: Object, pods: Iterable[Object], task: str) -> bool:
    """Tell whether every pod of a task has succeeded."""
    for each in job["spec"]["tasks"]:
        if each["name"] == task:
            done = sum(
                1
                for pod in pods
                if pod["metadata"]["annotations"]["volcano.sh/task-spec"] == task
                and (pod.get("status") or {}).get("phase") == "Succeeded"
            )
            return 0 < int(each.get("replicas") or 0) <= done
    return False


def _sync(job: Object, pods: Sequence[Object], *, admitted: bool, now: datetime) -> Step:
    old: Object = job["status"]
    if not admitted:
        return Step()
    count = _Count()
    create: list[Object] = []
    left = {str(pod["metadata"]["name"]): pod for pod in pods}
    for task in job["spec"]["tasks"]:
        ready = _dependencies_met(job, task, pods)
        for index in range(int(task.get("replicas") or 0)):
            pod = left.pop(pod_name(job["metadata"]["name"], task["name"], index), None)
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                count.terminating()
            elif pod is not None:
                count.add(pod)
            elif ready:
                pod = build_pod(job, task, index)
                create.append(pod)
                count.add(pod)
    for _ in left:
        count.terminating()
    status: Object = {key: value for key, value in old.items() if key != "runningDuration"}
    status["minAvailable"] = int(job["spec"].get("minAvailable") or 0)
    controlled = controlled_resources(job)
    if controlled:
        status["controlledResources"] = controlled
    count.write(status)
    status["state"] = {**old["state"], "phase": _synced_phase(job, status, count)}
    changed = status != {key: value for key, value in old.items() if key != "runningDuration"}
    return Step(
        status=_moved(status, now) if changed else None,
        create=tuple(create),
        delete=tuple(left),
    )


def _synced_phase(job: Object, status: Object, count: _Count) -> str:
    spec: Object = job["spec"]
    phase = str(status["state"]["phase"])
    least = int(spec.get("minAvailable") or 0)
    finished = count.get("succeeded") + count.get("failed")
    if phase == "Pending":
        return "Running" if least <= count.get("running") + finished else phase
    if phase == "Restarting":
        return phase
    replicas = sum(int(task.get("replicas") or 0) for task in spec["tasks"])
    wanted = spec.get("minSuccess")
    if replicas == 0:
        return phase
    if wanted is not None and count.get("succeeded") >= int(wanted):
        return "Completed"
    if finished == replicas:
        return "Completed" if _succeeded(job, count) else "Failed"
    return "Pending" if count.get("pending") > replicas - least else phase


def _succeeded(job: Object, count: _Count) -> bool:
    """Tell whether a vcjob all of whose pods have ended did what it had to."""
    spec: Object = job["spec"]
    least = int(spec.get("minAvailable") or 0)
    if least >= sum(task_minimum(task) for task in spec["tasks"]):
        for task in spec["tasks"]:
            phases = count.by_task.get(task["name"])
            if phases is not None and phases.get("Succeeded", 0) < task_minimum(task):
                return False
    if spec.get("minSuccess") is not None:
        return False  # enough successes would have completed it before
    return count.get("succeeded") >= least


def _kill(
    job: Object,
    pods: Sequence[Object],
    *,
    now: datetime,
    retain: frozenset[str],
    to: str = "",
    until: str = "",
    retries: int = 0,
) -> Step:
    """Delete the pods and move to phase `to`, or to phase `until` once nothing is left alive."""
    old: Object = job["status"]
    retry_count = int(old.get("retryCount") or 0)
    if retry_count >= int(job["spec"].get("maxRetry") or 0) - 1:
        retain = _SOFT  # the pods of the last try are kept for who wants to read them
    count = _Count()
    delete: list[str] = []
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            count.terminating()
        elif (pod.get("status") or {}).get("phase") not in retain:
            delete.append(pod["metadata"]["name"])
            count.terminating()
    status: Object = {key: value for key, value in old.items() if key != "controlledResources"}
    status["version"] = int(old.get("version") or 0) + 1
    if retries:
        status["retryCount"] = retry_count + retries
    count.write(status)
    alive = count.get("terminating") or count.get("pending") or count.get("running")
    target = to or (until if not alive else "")
    if not target and not delete and _unmoved(status, old):
        return Step(ends_group=True)
    if target:
        status["state"] = {**old["state"], "phase": target}
        status = _moved(status, now)
    status["runningDuration"] = _duration(job, status)
    return Step(status=status, delete=tuple(delete), ends_group=True)


def _kill_part(job: Object, pods: Sequence[Object], action: Action, *, now: datetime) -> Step:
    """Delete the pods of one task, or one pod, and start them again."""
    old: Object = job["status"]
    count = _Count()
    delete: list[str] = []
    for pod in pods:
        task = pod["metadata"]["annotations"]["volcano.sh/task-spec"]
        hit = task == action.task and (
            action.name != "RestartPod" or pod["metadata"]["name"] == action.pod
        )
        if not hit:
            continue
        if not pod["metadata"].get("deletionTimestamp"):
            delete.append(pod["metadata"]["name"])
        count.terminating()
    status = dict(old)
    status["retryCount"] = int(old.get("retryCount") or 0) + 1
    count.write(status)
    status["state"] = {**old["state"], "phase": "Restarting"}
    status = _moved(status, now)
    status["runningDuration"] = _duration(job, status)
    return Step(status=status, delete=tuple(delete))


def _restarting(
    job: Object, pods: Sequence[Object], action: Action, *, admitted: bool, now: datetime
) -> Step:
    old: Object = job["status"]
    if int(old.get("retryCount") or 0) >= int(job["spec"].get("maxRetry") or 0):
        return _moved_to(job, "Failed", now)
    terminating = sum(1 for pod in pods if pod["metadata"].get("deletionTimestamp"))
    replicas = sum(int(task.get("replicas") or 0) for task in job["spec"]["tasks"])
    if replicas - terminating >= int(old.get("minAvailable") or 0):
        return _moved_to(job, "Pending", now)
    if action.name == SYNC:
        return _sync(job, pods, admitted=admitted, now=now)
    return Step()


def _moved_to(job: Object, phase: str, now: datetime) -> Step:
    status: Object = dict(job["status"])
    status["state"] = {**status["state"], "phase": phase}
    _Count().write(status)
    return Step(status=_moved(status, now))


def _finish(job: Object, pods: Sequence[Object], *, now: datetime) -> Step:
    """End what is left of a finished vcjob, once."""
    old: Object = job["status"]
    alive = [
        str(pod["metadata"]["name"])
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp")
        and (pod.get("status") or {}).get("phase") not in _SOFT
    ]
    counted = any(old.get(counter) for counter in (*_COUNTERS.values(), "terminating"))
    if not alive and not counted and "runningDuration" in old:
        return Step(ends_group=True)
    return _kill(job, pods, now=now, retain=_SOFT)


def _dependencies_met(job: Object, task: Object, pods: Sequence[Object]) -> bool:
    depends: Object = task.get("dependsOn") or {}
    wanted: list[str] = depends.get("name") or []
    if not wanted:
        return True
    minimum = {each["name"]: task_minimum(each) for each in job["spec"]["tasks"]}
    met = [
        sum(
            1
            for pod in pods
            if pod["metadata"]["annotations"]["volcano.sh/task-spec"] == name
            and (pod.get("status") or {}).get("phase") in {"Running", "Succeeded"}
        )
        >= minimum.get(name, 1)
        for name in wanted
    ]
    return any(met) if depends.get("iteration") == "any" else all(met)


def _unmoved(status: Object, old: Object) -> bool:
    volatile = {"version", "controlledResources"}
    return {k: v for k, v in status.items() if k not in volatile} == {
        k: v for k, v in old.items() if k not in volatile
    }


def _moved(status: Object, now: datetime) -> Object:
    """Stamp a status: its state and the condition of its phase carry the time of this write."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    phase = status["state"]["phase"]
    conditions = [each for each in status.get("conditions") or () if each["status"] != phase]
    conditions.append({"lastTransitionTime": stamp, "status": phase})
    return {
        **status,
        "state": {**status["state"], "lastTransitionTime": stamp},
        "conditions": conditions,
    }


def _duration(job: Object, status: Object) -> str:
    """Return the time from creation to the last transition, as Go prints it."""
    form = "%Y-%m-%dT%H:%M:%SZ"
    started = datetime.strptime(job["metadata"]["creationTimestamp"], form)  # noqa: DTZ007 - both UTC
    moved = datetime.strptime(status["state"]["lastTransitionTime"], form)  # noqa: DTZ007 - both UTC
    seconds = max(0, int((moved - started).total_seconds()))
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
