"""Which action a vcjob's life-cycle policies ask for when something happens to a pod.

Pure. Task policies come before job policies, and the first that fits decides. The timeout of a
policy is not waited for, and a task or a pod is restarted with the whole vcjob.
"""

from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object

SYNC: Final = "SyncJob"
_AS_A_WHOLE: Final = {"RestartTask", "RestartPod", "RestartPartition"}


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a vcjob: what, to which task, with which exit code.

    `version` is the job version the pod was made for: an older one is yesterday's news.
    """

    event: str
    task: str = ""
    exit_code: int = 0
    version: int = 0


def action_for(job: Object, happening: Happening) -> str:
    """Return the action the vcjob's policies ask for, SyncJob when none does."""
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
