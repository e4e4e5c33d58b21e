"""Why the controller places nothing on a cluster: its codes and sentences."""

import enum
from dataclasses import dataclass
from typing import Final


class ClusterTrouble(enum.StrEnum):
    """Why the controller places nothing on a cluster."""

    REMOVED = "Removed"
    NOT_READY = "NotReady"
    TAINTED = "Tainted"
    NO_VCJOB_API = "NoVCJobAPI"
    NO_RESOURCE_SUMMARY = "NoResourceSummary"
    NO_READY_NODE = "NoReadyNode"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a cluster is not usable; `detail` is a condition's reason, or a taint."""

    code: ClusterTrouble
    detail: str = ""


_TROUBLES: Final = {
    ClusterTrouble.REMOVED: "is being removed",
    ClusterTrouble.NOT_READY: "is not Ready",
    ClusterTrouble.TAINTED: "has taint",
    ClusterTrouble.NO_VCJOB_API: (
        "does not serve batch.volcano.sh/v1alpha1 Job (is Volcano installed?)"
    ),
    ClusterTrouble.NO_RESOURCE_SUMMARY: "reports no resourceSummary",
    ClusterTrouble.NO_READY_NODE: "has no ready node",
}


def trouble_text(trouble: Trouble | None) -> str:
    """Return why a cluster is not usable, to follow its name; empty if it is."""
    if trouble is None:
        return ""
    text = _TROUBLES[trouble.code]
    if trouble.code is ClusterTrouble.TAINTED:
        return f"{text} {trouble.detail}"
    return f"{text} ({trouble.detail})" if trouble.detail else text


def closed_text(queue: str) -> str:
    """Return that a cluster has closed a queue, to follow the cluster's name."""
    return f"has closed queue {queue}"


def queue_closed_text(cluster: str, queue: str) -> str:
    """Return that a cluster has closed the queue of a sub-job that waits for its pods there."""
    return f"cluster {cluster} {closed_text(queue)}: Volcano creates no pod of it there"
