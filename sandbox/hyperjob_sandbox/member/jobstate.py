"""The life of a vcjob as a state machine: its status and pods now, what follows from an action.

`action_for` finds the action that the life-cycle policies ask for when something happens to a pod;
`step` returns what an action writes, creates and deletes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.member.caches import ENDED
from hyperjob_sandbox.member.jobpods import (
    TASK_SPEC,
    build_pod,
    controlled_resources,
    pod_name,
    replicas_of,
    task_minimum,
)
from hyperjob_sandbox.objects import annotations_of, is_going, phase_of

SYNC: Final = "SyncJob"
_AS_A_WHOLE: Final = {"RestartTask", "RestartPod", "RestartPartition"}
TERMINAL: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})
_ENDING: Final = {"Completing": "Completed", "Aborting": "Aborted", "Terminating": "Terminated"}
_KILLS: Final = {
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
    "RestartJob": "Restarting",
}
_COUNTERS: Final = frozenset(
    {"pending", "running", "succeeded", "failed", "unknown", "terminating", "taskStatusCount"}
)
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a vcjob: what, to which task, with which exit code, and of which version."""

    event: str
    task: str = ""
    exit_code: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What one step does: it writes a status, creates and deletes pods, deletes the PodGroup."""

    status: Object | None = None
    create: tuple[Object, ...] = ()
    delete: tuple[str, ...] = ()
    ends_group: bool = False


def action_for(job: Object, happening: Happening) -> str:
    """Return the action the policies of the task, then of the vcjob, ask for; else SyncJob."""
    if happening.version < int((job.get("status") or {}).get("version") or 0):
        return SYNC
    spec: Object = job["spec"]
    tasks = [task for task in spec.get("tasks") or () if task.get("name") == happening.task]
    for owner in (*tasks, spec):
        for policy in owner.get("policies") or ():
            if _fits(policy, happening):
                action = str(policy.get("action") or SYNC)
                return "RestartJob" if action in _AS_A_WHOLE else action
    return SYNC


def _fits(policy: Object, happening: Happening) -> bool:
    events = {*(policy.get("events") or ()), policy.get("event")}
    if events & {happening.event, "*"}:
        return True
    return policy.get("exitCode") is not None and policy["exitCode"] == happening.exit_code


def initial_status(job: Object, *, now: datetime) -> Object:
    """Return the first status of a vcjob."""
    least = int(job["spec"].get("minAvailable") or 0)
    return _moved({"minAvailable": least, "state": {"phase": "Pending"}}, now)


def job_phase(job: Object) -> str:
    """Return the phase of a vcjob, "" before its first status."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def task_of(pod: Object) -> str:
    """Return the task that a pod belongs to."""
    return annotations_of(pod).get(TASK_SPEC, "")


def step(
    job: Object, pods: Sequence[Object], action: str, *, admitted: bool, now: datetime
) -> Step:
    """Return what an action does to a vcjob; `admitted` says that its pods may be made."""
    phase = job_phase(job)
    if phase in TERMINAL:
        return _kill(job, pods, now=now)
    if phase in _ENDING:
        return _kill(job, pods, now=now, until=_ENDING[phase])
    if phase == "Restarting":
        return _restarting(job, pods, action, admitted=admitted, now=now)
    if action in _KILLS:
        return _kill(job, pods, now=now, to=_KILLS[action])
    return _sync(job, pods, now=now) if admitted else Step()


def task_failed(job: Object, pods: Iterable[Object], task: str) -> bool:
    """Tell whether containers of a task's living pods were started again as often as it allows."""
    living = [pod for pod in pods if task_of(pod) == task and phase_of(pod) not in ENDED]
    statuses = [pod.get("status") or {} for pod in living]
    again = sum(
        each.get("restartCount") or 0
        for status in statuses
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in status.get(kind) or ()
    )
    most = [each.get("maxRetry") or 3 for each in job["spec"]["tasks"] if each["name"] == task]
    return any(0 < each <= again for each in most)


def task_completed(job: Object, pods: Iterable[Object], task: str) -> bool:
    """Tell whether every pod of a task has succeeded."""
    done = sum(1 for pod in pods if task_of(pod) == task and phase_of(pod) == "Succeeded")
    sizes = [replicas_of(each) for each in job["spec"]["tasks"] if each["name"] == task]
    return any(0 < size <= done for size in sizes)


def _sync(job: Object, pods: Sequence[Object], *, now: datetime) -> Step:
    wanted: list[Object] = []
    create: list[Object] = []
    left = {str(pod["metadata"]["name"]): pod for pod in pods}
    for task in job["spec"]["tasks"]:
        ready = _dependencies_met(job, task, pods)
        for index in range(replicas_of(task)):
            pod = left.pop(pod_name(job["metadata"]["name"], task["name"], index), None)
            if pod is None and ready:
                pod = build_pod(job, task, index)
                create.append(pod)
            if pod is not None:
                wanted.append(pod)
    alive = [pod for pod in wanted if not is_going(pod)]
    old = {key: value for key, value in job["status"].items() if key != "runningDuration"}
    status = _counted(old, alive, terminating=len(wanted) - len(alive) + len(left))
    status["minAvailable"] = int(job["spec"].get("minAvailable") or 0)
    if controlled := controlled_resources(job):
        status["controlledResources"] = controlled
    status["state"] = {**old["state"], "phase": _synced_phase(job, status)}
    return Step(
        status=_moved(status, now) if status != old else None,
        create=tuple(create),
        delete=tuple(left),
    )


def _counted(status: Object, alive: Iterable[Object] = (), *, terminating: int = 0) -> Object:
    """Return a status that counts the live pods by phase and by task, and those that go."""
    counters: Counter[str] = Counter(terminating=terminating)
    tasks: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in alive:
        counters[phase_of(pod).lower()] += 1
        tasks[task_of(pod)][phase_of(pod)] += 1
    counted = {key: value for key, value in status.items() if key not in _COUNTERS}
    counted |= {name: number for name, number in counters.items() if number}
    if tasks:
        by_task = {task: {"phase": dict(phases)} for task, phases in sorted(tasks.items())}
        counted["taskStatusCount"] = by_task
    return counted


def _synced_phase(job: Object, status: Object) -> str:
    spec: Object = job["spec"]
    phase, least = job_phase(job), int(spec.get("minAvailable") or 0)
    succeeded = status.get("succeeded", 0)
    ended = succeeded + status.get("failed", 0)
    replicas = sum(map(replicas_of, spec["tasks"]))
    wanted = spec.get("minSuccess")
    if phase == "Pending":
        return "Running" if least <= status.get("running", 0) + ended else phase
    if phase == "Restarting" or replicas == 0:
        return phase
    if wanted is not None and succeeded >= int(wanted):
        return "Completed"
    if ended == replicas:
        return "Completed" if _succeeded(job, status) else "Failed"
    return "Pending" if status.get("pending", 0) > replicas - least else phase


def _succeeded(job: Object, status: Object) -> bool:
    """Tell whether a vcjob all of whose pods have ended did what it had to."""
    spec: Object = job["spec"]
    least = int(spec.get("minAvailable") or 0)
    if least >= sum(map(task_minimum, spec["tasks"])):
        for task in spec["tasks"]:
            counted = status.get("taskStatusCount", {}).get(task["name"])
            if counted and counted["phase"].get("Succeeded", 0) < task_minimum(task):
                return False
    # with minSuccess, enough successes would have completed it before
    return spec.get("minSuccess") is None and status.get("succeeded", 0) >= least


def _kill(
    job: Object, pods: Sequence[Object], *, now: datetime, to: str = "", until: str = ""
) -> Step:
    """Delete the pods and move to phase `to`, or to phase `until` once nothing is left alive.

    Pods that have ended are kept, except at a restart that is not the last.
    """
    old: Object = job["status"]
    tries = int(old.get("retryCount") or 0)
    last = tries >= int(job["spec"].get("maxRetry") or 0) - 1
    spared = frozenset() if to == "Restarting" and not last else ENDED
    alive = [pod for pod in pods if not is_going(pod)]
    delete = tuple(str(pod["metadata"]["name"]) for pod in alive if phase_of(pod) not in spared)
    kept = {key: value for key, value in old.items() if key != "controlledResources"}
    terminating = len(pods) - len(alive) + len(delete)
    status = _counted(kept, terminating=terminating)
    status["version"] = int(old.get("version") or 0) + 1
    if to == "Restarting":
        status["retryCount"] = tries + 1
    target = to or ("" if terminating else until)
    if not target and not delete and {**status, "version": 0} == {**kept, "version": 0}:
        return Step(ends_group=True)
    if target:
        status["state"] = {**old["state"], "phase": target}
        status = _moved(status, now)
    status["runningDuration"] = _duration(job, status)
    return Step(status=status, delete=delete, ends_group=True)


def _restarting(
    job: Object, pods: Sequence[Object], action: str, *, admitted: bool, now: datetime
) -> Step:
    old: Object = job["status"]
    gives_up = int(old.get("retryCount") or 0) >= int(job["spec"].get("maxRetry") or 0)
    left = sum(map(replicas_of, job["spec"]["tasks"])) - sum(map(is_going, pods))
    if not gives_up and left < int(old.get("minAvailable") or 0):
        return _sync(job, pods, now=now) if action == SYNC and admitted else Step()
    state = {**old["state"], "phase": "Failed" if gives_up else "Pending"}
    return Step(status=_moved({**_counted(old), "state": state}, now))


def _dependencies_met(job: Object, task: Object, pods: Sequence[Object]) -> bool:
    depends: Object = task.get("dependsOn") or {}
    least = {each["name"]: task_minimum(each) for each in job["spec"]["tasks"]}
    started = Counter(task_of(pod) for pod in pods if phase_of(pod) in {"Running", "Succeeded"})
    met = [started[name] >= least.get(name, 1) for name in depends.get("name") or ()]
    return any(met) or not met if depends.get("iteration") == "any" else all(met)


def _moved(status: Object, now: datetime) -> Object:
    """Stamp a status: its state and the condition of its phase carry the time of this write."""
    stamp = now.strftime(_TIME)
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
    times = (status["state"]["lastTransitionTime"], job["metadata"]["creationTimestamp"])
    moved, started = (datetime.strptime(time, _TIME) for time in times)  # noqa: DTZ007 - both UTC
    minutes, seconds = divmod(max(0, int((moved - started).total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
