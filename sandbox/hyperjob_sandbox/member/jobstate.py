"""The life of a vcjob as a state machine: its status and pods now, what follows from an action.

Pure: `step` takes everything the decision needs, the time included, and returns what to write,
create and delete. It must never touch a pod that another version of the job still has to end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.member.caches import ENDED
from hyperjob_sandbox.member.jobpods import (
    TASK_SPEC,
    build_pod,
    controlled_resources,
    pod_name,
    replicas_of,
    task_minimum,
)
from hyperjob_sandbox.member.jobpolicies import RESUME, SYNC
from hyperjob_sandbox.objects import annotations_of, is_going, phase_of

TERMINAL: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})
_ENDING: Final = {"Completing": "Completed", "Aborting": "Aborted", "Terminating": "Terminated"}
_KILLS: Final = {
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
    "RestartJob": "Restarting",
}
_COUNTERS: Final = ("pending", "running", "succeeded", "failed", "unknown", "terminating")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Step:
    """What one step writes: the status when it changed, pods to make, pods to delete.

    `ends_group` says that the PodGroup goes as well.
    """

    status: Object | None = None
    create: tuple[Object, ...] = ()
    delete: tuple[str, ...] = ()
    ends_group: bool = False


class _Count:
    """How many pods are in each phase, in all and by task; terminating ones are of no task."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.by_task: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, pod: Object) -> None:
        phase = phase_of(pod)
        counter = phase.lower()
        self.of[counter if counter in _COUNTERS else "unknown"] += 1
        self.by_task[task_of(pod)][phase] += 1

    def write(self, status: Object) -> None:
        for name in (*_COUNTERS, "taskStatusCount"):
            status.pop(name, None)
        status.update({name: self.of[name] for name in _COUNTERS if self.of[name]})
        if self.by_task:
            status["taskStatusCount"] = {
                task: {"phase": dict(phases)} for task, phases in sorted(self.by_task.items())
            }


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
    """Return what an action does to a vcjob with these pods.

    `admitted` says that the scheduler let its PodGroup in, so that pods may be made.
    """
    phase = job_phase(job)
    if action == RESUME and phase in {"Aborting", "Aborted"}:
        return _kill(job, pods, now=now, to="Restarting")
    if phase in TERMINAL:
        return _finish(job, pods, now=now)
    if phase in _ENDING:
        return _kill(job, pods, now=now, until=_ENDING[phase])
    if phase == "Restarting":
        return _restarting(job, pods, action, admitted=admitted, now=now)
    if action in _KILLS:
        return _kill(job, pods, now=now, to=_KILLS[action], all_of_them=action == "RestartJob")
    return _sync(job, pods, now=now) if admitted else Step()


def task_completed(job: Object, pods: Iterable[Object], task: str) -> bool:
    """Tell whether every pod of a task has succeeded."""
    done = sum(1 for pod in pods if task_of(pod) == task and phase_of(pod) == "Succeeded")
    sizes = [replicas_of(each) for each in job["spec"]["tasks"] if each["name"] == task]
    return any(0 < size <= done for size in sizes)


def _sync(job: Object, pods: Sequence[Object], *, now: datetime) -> Step:
    count = _Count()
    create: list[Object] = []
    left = {str(pod["metadata"]["name"]): pod for pod in pods}
    for task in job["spec"]["tasks"]:
        ready = _dependencies_met(job, task, pods)
        for index in range(replicas_of(task)):
            pod = left.pop(pod_name(job["metadata"]["name"], task["name"], index), None)
            if pod is None and ready:
                pod = build_pod(job, task, index)
                create.append(pod)
            if pod is not None and is_going(pod):
                count.of["terminating"] += 1
            elif pod is not None:
                count.add(pod)
    count.of["terminating"] += len(left)
    old = {key: value for key, value in job["status"].items() if key != "runningDuration"}
    status: Object = {**old, "minAvailable": int(job["spec"].get("minAvailable") or 0)}
    controlled = controlled_resources(job)
    if controlled:
        status["controlledResources"] = controlled
    count.write(status)
    status["state"] = {**old["state"], "phase": _synced_phase(job, count)}
    return Step(
        status=_moved(status, now) if status != old else None,
        create=tuple(create),
        delete=tuple(left),
    )


def _synced_phase(job: Object, count: _Count) -> str:
    spec: Object = job["spec"]
    phase, least = job_phase(job), int(spec.get("minAvailable") or 0)
    ended = count.of["succeeded"] + count.of["failed"]
    replicas = sum(map(replicas_of, spec["tasks"]))
    wanted = spec.get("minSuccess")
    if phase == "Pending":
        return "Running" if least <= count.of["running"] + ended else phase
    if phase == "Restarting" or replicas == 0:
        return phase
    if wanted is not None and count.of["succeeded"] >= int(wanted):
        return "Completed"
    if ended == replicas:
        return "Completed" if _succeeded(job, count) else "Failed"
    return "Pending" if count.of["pending"] > replicas - least else phase


def _succeeded(job: Object, count: _Count) -> bool:
    """Tell whether a vcjob all of whose pods have ended did what it had to."""
    spec: Object = job["spec"]
    least = int(spec.get("minAvailable") or 0)
    if least >= sum(map(task_minimum, spec["tasks"])):
        for task in spec["tasks"]:
            phases = count.by_task.get(task["name"])
            if phases is not None and phases["Succeeded"] < task_minimum(task):
                return False
    # with minSuccess, enough successes would have completed it before
    return spec.get("minSuccess") is None and count.of["succeeded"] >= least


def _kill(
    job: Object,
    pods: Sequence[Object],
    *,
    now: datetime,
    to: str = "",
    until: str = "",
    all_of_them: bool = False,
) -> Step:
    """Delete the pods and move to phase `to`, or to phase `until` once nothing is left alive.

    Pods that have ended are kept, unless it is all of them; those of the last try are kept for who
    wants to read them.
    """
    old: Object = job["status"]
    tries = int(old.get("retryCount") or 0)
    last = tries >= int(job["spec"].get("maxRetry") or 0) - 1
    spared = frozenset() if all_of_them and not last else ENDED
    going = [pod for pod in pods if is_going(pod)]
    delete = [_name(pod) for pod in pods if not is_going(pod) and phase_of(pod) not in spared]
    count = _Count()
    count.of["terminating"] = len(going) + len(delete)
    status: Object = {key: value for key, value in old.items() if key != "controlledResources"}
    status["version"] = int(old.get("version") or 0) + 1
    if to == "Restarting":
        status["retryCount"] = tries + 1
    count.write(status)
    target = to or ("" if count.of["terminating"] else until)
    if not target and not delete and _unmoved(status, old):
        return Step(ends_group=True)
    if target:
        status["state"] = {**old["state"], "phase": target}
        status = _moved(status, now)
    status["runningDuration"] = _duration(job, status)
    return Step(status=status, delete=tuple(delete), ends_group=True)


def _restarting(
    job: Object, pods: Sequence[Object], action: str, *, admitted: bool, now: datetime
) -> Step:
    old: Object = job["status"]
    if int(old.get("retryCount") or 0) >= int(job["spec"].get("maxRetry") or 0):
        return _moved_to(job, "Failed", now)
    left = sum(map(replicas_of, job["spec"]["tasks"])) - sum(map(is_going, pods))
    if left >= int(old.get("minAvailable") or 0):
        return _moved_to(job, "Pending", now)
    return _sync(job, pods, now=now) if action == SYNC and admitted else Step()


def _moved_to(job: Object, phase: str, now: datetime) -> Step:
    status: Object = dict(job["status"])
    status["state"] = {**status["state"], "phase": phase}
    _Count().write(status)
    return Step(status=_moved(status, now))


def _finish(job: Object, pods: Sequence[Object], *, now: datetime) -> Step:
    """End what is left of a finished vcjob, once."""
    old: Object = job["status"]
    alive = any(not is_going(pod) and phase_of(pod) not in ENDED for pod in pods)
    counted = any(old.get(counter) for counter in _COUNTERS if counter != "unknown")
    if not alive and not counted and "runningDuration" in old:
        return Step(ends_group=True)
    return _kill(job, pods, now=now)


def _dependencies_met(job: Object, task: Object, pods: Sequence[Object]) -> bool:
    depends: Object = task.get("dependsOn") or {}
    least = {each["name"]: task_minimum(each) for each in job["spec"]["tasks"]}
    started = Counter(task_of(pod) for pod in pods if phase_of(pod) in {"Running", "Succeeded"})
    met = [started[name] >= least.get(name, 1) for name in depends.get("name") or ()]
    return any(met) or not met if depends.get("iteration") == "any" else all(met)


def _unmoved(status: Object, old: Object) -> bool:
    return {**status, "version": 0, "controlledResources": 0} == {
        **old,
        "version": 0,
        "controlledResources": 0,
    }


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


def _pod_phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
