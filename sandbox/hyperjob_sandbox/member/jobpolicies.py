"""Which action a vcjob's life-cycle policies ask for when something happens to a pod.

Pure. Task policies come before job policies, and the first that fits decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hyperjob.api.duration import nanoseconds
from hyperjob.api.meta import Object

SYNC: Final = "SyncJob"
_INTERNAL: Final = frozenset({"OutOfSync", "CommandIssued", "PodRunning"})


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a vcjob: what, to which task and pod, with which exit code.

    `version` is the job version the pod was made for: an older one is yesterday's news.
    """

    event: str
    task: str = ""
    pod: str = ""
    exit_code: int = 0
    version: int = 0
    action: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """What to do with a vcjob, and `delay` seconds later."""

    name: str = SYNC
    task: str = ""
    pod: str = ""
    delay: float = 0.0


def action_for(job: Object, happening: Happening) -> Action:
    """Return the action the vcjob's policies ask for, SyncJob when none does."""
    if happening.action:
        return Action(happening.action)
    status: Object = job.get("status") or {}
    if happening.event in _INTERNAL or happening.version < int(status.get("version") or 0):
        return Action()
    for policies in (_task_policies(job, happening.task), job["spec"].get("policies") or ()):
        for policy in policies:
            if _fits(policy, happening):
                return Action(
                    str(policy.get("action") or SYNC),
                    happening.task,
                    happening.pod,
                    _seconds(policy.get("timeout")),
                )
    return Action()


def _task_policies(job: Object, name: str) -> Iterable[Object]:
    for task in job["spec"].get("tasks") or ():
        if task.get("name") == name:
            policies: list[Object] = task.get("policies") or []
            return policies
    return ()


def _fits(policy: Object, happening: Happening) -> bool:
    events = [*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else [])]
    if happening.event in events or "*" in events:
        # waiting is only remarkable once it has lasted for a given time
        return happening.event != "PodPending" or policy.get("timeout") is not None
    code = policy.get("exitCode")
    return code is not None and code == happening.exit_code


def _seconds(duration: object) -> float:
    """Read a duration such as `1h2m3.5s`; anything else is no delay."""
    try:
        return nanoseconds(duration) / 1e9 if isinstance(duration, str) else 0.0
    except ValueError:
        return 0.0
