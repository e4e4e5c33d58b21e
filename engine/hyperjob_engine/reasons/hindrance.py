"""Why one cluster does not take a sub-job: its codes, numbers and sentences."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.text import listed
from hyperjob_engine.reasons.crowded import NodeShortage, node_shortage_text
from hyperjob_engine.resources import amount_only, amount_text


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


class Obstacle(enum.StrEnum):
    """Why the controller does not place a sub-job on a cluster."""

    UNKNOWN = "UnknownCluster"
    UNUSABLE = "Unusable"
    EXCLUDED = "Excluded"
    QUEUE_CLOSED = "QueueClosed"
    NOT_ALLOWED = "NotInClusterNames"
    LACKS = "Lacks"
    NODES = "NoNode"
    MAX_DOMAINS = "MaxDomains"
    OTHERS = "RoomOnlyWithoutOthers"
    STAYS = "Stays"
    SETTLED = "StandsAlready"
    LATER = "LaterInClusterNames"
    NOT_PREFERRED = "NotPreferred"
    LEFT_TO_OTHERS = "LeftToOthers"
    MOVES = "WouldMove"
    SIBLING = "HasSibling"
    FARTHER = "Farther"
    UNMET = "MeetsFewerPreferences"
    LOOSER = "FitsLessClosely"
    BY_NAME = "LaterByName"
    NOT_FOR_ALL = "NotForAll"
    WAITS = "Waits"
    OTHER_SHARE = "OtherShareOfSplit"
    NOT_NEEDED = "NotNeededForSplit"

    @property
    def has_room(self) -> bool:
        """Return whether the cluster has room for the sub-job alone.

        Placement has not looked at it where an automatic split chose other shares: False.
        """
        return self in _WITH_ROOM


_WITH_ROOM = frozenset(
    {
        Obstacle.MAX_DOMAINS,
        Obstacle.OTHERS,
        Obstacle.STAYS,
        Obstacle.SETTLED,
        Obstacle.LATER,
        Obstacle.NOT_PREFERRED,
        Obstacle.LEFT_TO_OTHERS,
        Obstacle.MOVES,
        Obstacle.SIBLING,
        Obstacle.FARTHER,
        Obstacle.UNMET,
        Obstacle.LOOSER,
        Obstacle.BY_NAME,
        Obstacle.NOT_FOR_ALL,
        Obstacle.WAITS,
    }
)


@dataclass(frozen=True, slots=True)
class Lack:
    """A resource that a cluster lacks: `missing`, `free` and `whole` amounts in nano-units."""

    resource: str
    missing: int
    free: int
    whole: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Crowding:
    """The nodes of a cluster hold at most `most` pods of this size, and `wanted` are needed."""

    resource: str
    amount: int
    wanted: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """Why one cluster does not take a sub-job.

    `trouble` is set for UNUSABLE, `lacks` for LACKS, `crowding` for NODES, `limit` for MAX_DOMAINS;
    `other` is the HyperJob, cluster, replicatedJob or Queue that the code speaks of.
    """

    cluster: str
    code: Obstacle
    trouble: Trouble | None = None
    lacks: tuple[Lack, ...] = ()
    crowding: Crowding | NodeShortage | None = None
    limit: int = 0
    other: str = ""


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
_PLAIN: Final = {
    Obstacle.UNKNOWN: "does not exist",
    Obstacle.EXCLUDED: "is excluded",
    Obstacle.NOT_ALLOWED: "is not in clusterNames (clusterPolicy Required)",
    Obstacle.OTHERS: "has room for this sub-job, but not for the others on it",
    Obstacle.STAYS: "has room, but running sub-jobs stay where they are",
    Obstacle.SETTLED: "has room, but the sub-job is placed already",
    Obstacle.NOT_PREFERRED: "has room, but is not in clusterNames",
    Obstacle.LEFT_TO_OTHERS: "has room, but another sub-job needs it",
    Obstacle.FARTHER: "has room, but is farther from the other sub-jobs",
    Obstacle.NOT_FOR_ALL: "has room, but not for all that must be placed together",
    Obstacle.OTHER_SHARE: "holds another share of the split",
    Obstacle.NOT_NEEDED: (
        "has room, but the split takes as few clusters as hold it, near ones and close fits first"
    ),
}


def trouble_text(trouble: Trouble | None) -> str:
    """Return why a cluster is not usable; empty if it is."""
    if trouble is None:
        return ""
    text = _TROUBLES[trouble.code]
    if trouble.code is ClusterTrouble.TAINTED:
        return f"{text} {trouble.detail}"
    return f"{text} ({trouble.detail})" if trouble.detail else text


def hindrance_text(hindrance: Hindrance) -> str:
    """Return why a cluster does not take a sub-job, to follow the cluster's name."""
    other, crowding = hindrance.other, hindrance.crowding
    match hindrance.code:
        case Obstacle.UNUSABLE:
            return trouble_text(hindrance.trouble)
        case Obstacle.LACKS:
            return f"lacks {' and '.join(_lack(lack) for lack in hindrance.lacks)}"
        case Obstacle.NODES:
            if isinstance(crowding, NodeShortage):
                return node_shortage_text(crowding)
            return _crowded(crowding) if crowding is not None else "has no node left"
        case Obstacle.MAX_DOMAINS:
            return f"has room but maxDomains {hindrance.limit} is used up"
        case Obstacle.QUEUE_CLOSED:
            return _closed(other)
        case Obstacle.LATER:
            return f"has room, but comes after {other} in clusterNames"
        case Obstacle.SIBLING:
            return f"has room, but has a sub-job of {other} already"
        case Obstacle.MOVES:
            return f"has room, but the sub-job was on {other} before"
        case Obstacle.UNMET:
            return (
                f"has room, but its nodes meet fewer preferences of the pods than those of {other}"
            )
        case Obstacle.LOOSER:
            return f"has room, but fits less closely than {other}"
        case Obstacle.BY_NAME:
            return f"has as much room as {other}, which comes first by name"
        case Obstacle.WAITS:
            return f"has room, but the sub-job {other}"
        case code:
            return _PLAIN[code]


def queue_closed_text(cluster: str, queue: str) -> str:
    """Return that a cluster has closed the queue of a sub-job that waits for its pods there."""
    return f"cluster {cluster} {_closed(queue)}: Volcano creates no pod of it there"


def _closed(queue: str) -> str:
    return f"has closed queue {queue}"


def _lack(lack: Lack) -> str:
    """Return what is missing, with all that the cluster has where even that is too little."""
    name, missing = lack.resource, amount_text(lack.resource, lack.missing)
    if lack.whole <= 0:
        return f"{missing} (has none)"
    if lack.whole < lack.wanted:
        return f"{missing} (has {amount_only(name, lack.whole)})"
    return f"{missing} ({amount_only(name, lack.free)} free)"


def _crowded(crowding: Crowding) -> str:
    """Return that the nodes of a cluster have no room, although the sum over all nodes has."""
    size = amount_text(crowding.resource, crowding.amount)
    if not crowding.most:
        return f"has no node with {size} left, by its resource models"
    return (
        f"has nodes for {crowding.most} pods with {size} each, by its resource models,"
        f" and {crowding.wanted} are needed"
    )


def alike(texts: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return one text for all names with an equal text: "each of a, b and 1 more lacks 8 cpu"."""
    names: dict[str, list[str]] = {}
    for name, text in texts:
        names.setdefault(text, []).append(name)
    return [
        f"{each[0]} {text}" if len(each) == 1 else f"each of {listed(each)} {text}"
        for text, each in names.items()
    ]
