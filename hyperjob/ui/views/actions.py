"""What may be done with a HyperJob, and what each of it means, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob.text import listed
from hyperjob.ui.rows import Row

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
"""The verb that each needs."""

_CHOICES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The question before an action: `choices` are of its field `target`, value and words."""

    action: str
    title: str
    sentences: Sequence[str]
    button: str
    choices: Sequence[tuple[str, str]] = ()
    choice_label: str = ""
    type_name: bool = False


def available(summary: Summary) -> list[str]:
    """Name what can be done with a HyperJob as it is."""
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
    """Word what an action does to this HyperJob."""
    summary = row.summary
    name = summary.name
    match action:
        case "suspend":
            return Confirmation(
                action=action,
                title=f"Suspend {name}?",
                sentences=[
                    _stops(summary),
                    f"{_gives_back(row)} The HyperJob keeps its record and waits to be resumed.",
                ],
                button=f"Suspend {name}",
            )
        case "resume":
            return Confirmation(
                action=action,
                title=f"Resume {name}?",
                sentences=[
                    (
                        f"It asks queue {listed(row.queues) or 'default'} for its share again and"
                        " starts as soon as there is room for the whole gang."
                    )
                ],
                button=f"Resume {name}",
            )
        case "restart":
            return Confirmation(
                action=action,
                title=f"Restart {name}?",
                sentences=[
                    (
                        "The controller deletes the chosen sub-jobs and makes them anew, as the"
                        " next attempt. Their programs begin again, from their last checkpoint"
                        " where they have one."
                    )
                ],
                button=f"Restart {name}",
                choices=[("", "all sub-jobs"), *_jobs(summary)],
                choice_label="Restart",
            )
        case "migrate":
            return Confirmation(
                action=action,
                title=f"Move sub-jobs of {name}?",
                sentences=[
                    (
                        "The controller deletes the chosen sub-jobs and makes them anew on other"
                        " clusters; the clusters that they leave are excluded for them. Without"
                        " room elsewhere they wait."
                    )
                ],
                button=f"Move sub-jobs of {name}",
                choices=_clusters(summary),
                choice_label="Move",
            )
        case _:
            return Confirmation(
                action="delete",
                title=f"Delete {name}?",
                sentences=[
                    _stops(summary),
                    "The HyperJob and its record are gone afterwards; this cannot be undone.",
                ],
                button=f"Delete {name}",
                type_name=True,
            )


def _stops(summary: Summary) -> str:
    living = [job for job in summary.jobs if job.cluster and not job.has_ended]
    if not living:
        return "None of its sub-jobs is on a cluster."
    clusters = sorted({job.cluster for job in living})
    return (
        f"The controller removes {len(living)} sub-job{'s' if len(living) != 1 else ''} from"
        f" {listed(clusters)}; {summary.running_pods} running pods are stopped, and what their"
        " programs have not saved is lost."
    )


def _gives_back(row: Row) -> str:
    amounts = [f"{number} {name}" for name, number in sorted(row.accelerators.items())]
    if not amounts:
        return ""
    return f"Queue {listed(row.queues)} has {listed(amounts)} back for others."


def _jobs(summary: Summary) -> list[tuple[str, str]]:
    return [
        (job.name, f"{job.name}, {job.phase}" + (f" on {job.cluster}" if job.cluster else ""))
        for job in summary.jobs[:_CHOICES]
        if not job.has_ended
    ]


def _clusters(summary: Summary) -> list[tuple[str, str]]:
    found: dict[str, int] = {}
    for job in summary.jobs:
        if job.cluster and not job.has_ended:
            found[job.cluster] = found.get(job.cluster, 0) + 1
    return [
        (cluster, f"away from {cluster} ({number} sub-job{'s' if number != 1 else ''})")
        for cluster, number in sorted(found.items())
    ]
