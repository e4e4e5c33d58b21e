"""The actions on a HyperJob: what each needs, the question before it, and carrying it out.

Actions use the visitor's own rights and the functions of the command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob.client.requests import ask, migrate, restart
from hyperjob.client.summary import Summary
from hyperjob.client.suspending import suspend
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import listed
from hyperjob_page.rows import Row

LABELS: Final[Mapping[str, str]] = {
    "suspend": "Suspend",
    "resume": "Resume",
    "restart": "Restart",
    "migrate": "Move",
    "delete": "Delete",
}
VERBS: Final[Mapping[str, str]] = {
    name: "delete" if name == "delete" else "patch" for name in LABELS
}
"""The verb that each action needs."""

_CHOICES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The question before an action: `choices` are value and label of the field `target`."""

    action: str
    title: str
    sentences: Sequence[str]
    button: str
    choices: Sequence[tuple[str, str]] = ()
    choice_label: str = ""
    type_name: bool = False


def available(summary: Summary) -> list[str]:
    """Return the actions that are possible in the HyperJob's phase."""
    if summary.deleting:
        return []
    if summary.has_ended:
        return ["delete"]
    found = ["resume" if summary.suspend else "suspend"]
    if not summary.suspend and summary.jobs:
        found.append("restart")
    if any(job.cluster and not job.has_ended for job in summary.jobs):
        found.append("migrate")
    return [*found, "delete"]


def confirmation(action: str, row: Row) -> Confirmation:
    """Return the question before an action, with its effect on this HyperJob."""
    summary = row.summary
    question = partial(_question, action, summary.name)
    match action:
        case "suspend":
            return question(
                "Suspend",
                _stops_text(summary),
                f"{_gives_back(row)} The HyperJob stays in the API server until it is resumed.",
            )
        case "resume":
            return question(
                "Resume",
                f"It waits in queue {listed(row.queues) or 'default'} again and starts as"
                " soon as the whole gang fits.",
            )
        case "restart":
            return question(
                "Restart",
                "The controller deletes the selected sub-jobs and creates them again, as"
                " the next attempt. Their programs restart, from their last checkpoint if"
                " they have one.",
                choices=[("", "all sub-jobs"), *_job_choices(summary)],
                choice_label="Restart",
            )
        case "migrate":
            return question(
                "Move sub-jobs of",
                "The controller deletes the selected sub-jobs and creates them on other"
                " clusters; they do not return to their former clusters. They wait if no"
                " other cluster has enough free resources.",
                choices=_cluster_choices(summary),
                choice_label="Move",
            )
        case _:
            return question(
                "Delete",
                _stops_text(summary),
                "The deletion of the HyperJob and its status cannot be undone.",
                type_name=True,
            )


def _question(
    action: str,
    name: str,
    verb: str,
    *sentences: str,
    choices: Sequence[tuple[str, str]] = (),
    choice_label: str = "",
    type_name: bool = False,
) -> Confirmation:
    """Return a question whose title and button have the verb and the name of the HyperJob."""
    return Confirmation(
        action=action,
        title=f"{verb} {name}?",
        sentences=list(sentences),
        button=f"{verb} {name}",
        choices=list(choices),
        choice_label=choice_label,
        type_name=type_name,
    )


async def act(kube: Kube, row: Row, action: str, *, target: str, typed: str) -> str:
    """Carry out the action and return a text about it; raises ClientError or KubeError."""
    summary = row.summary
    namespace, name = summary.namespace, summary.name
    match action:
        case "suspend" | "resume":
            await suspend(kube, namespace, name, on=action == "suspend")
            return f"{name} is being suspended." if action == "suspend" else f"{name} is resumed."
        case "restart":
            await ask(kube, namespace, name, restart([target] if target else []))
            return f"The restart of {target or name} is requested."
        case "migrate":
            if not target:
                raise ClientError("choose the cluster to move the sub-jobs away from")
            await ask(kube, namespace, name, migrate(cluster=target))
            return f"The move away from {target} is requested."
        case "delete":
            if typed.strip() != name:
                raise ClientError(f"type {name} into the field: nothing was deleted")
            await kube.delete(HYPERJOBS, name, namespace=namespace, uid=summary.uid)
            return f"{name} is being deleted."
        case _:
            raise ClientError(f"there is no action {action}")


def _stops_text(summary: Summary) -> str:
    living = [job for job in summary.jobs if job.cluster and not job.has_ended]
    if not living:
        return "No sub-job is on a cluster."
    clusters = sorted({job.cluster for job in living})
    return (
        f"The controller removes {len(living)} sub-job{'s' if len(living) != 1 else ''} from"
        f" {listed(clusters)}; {summary.running_pods} running pods are stopped and lose the work"
        " since their last checkpoint."
    )


def _gives_back(row: Row) -> str:
    amounts = [f"{number} {name}" for name, number in sorted(row.accelerators.items())]
    if not amounts:
        return ""
    return f"Queue {listed(row.queues)} gets {listed(amounts)} for other HyperJobs."


def _job_choices(summary: Summary) -> list[tuple[str, str]]:
    return [
        (job.name, f"{job.name}, {job.phase}" + (f" on {job.cluster}" if job.cluster else ""))
        for job in summary.jobs[:_CHOICES]
        if not job.has_ended
    ]


def _cluster_choices(summary: Summary) -> list[tuple[str, str]]:
    found: dict[str, int] = {}
    for job in summary.jobs:
        if job.cluster and not job.has_ended:
            found[job.cluster] = found.get(job.cluster, 0) + 1
    return [
        (cluster, f"away from {cluster} ({number} sub-job{'s' if number != 1 else ''})")
        for cluster, number in sorted(found.items())
    ]
