"""Why a sub-job, or an automatic split, has no place: codes and numbers, which programs compare.

The words for people are made of them in `controller.status.shortage`, once.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.model.resources import Resources


class ClusterTrouble(enum.StrEnum):
    """Why a cluster is no candidate at all."""

    REMOVED = "Removed"
    NOT_READY = "NotReady"
    TAINTED = "Tainted"
    NO_VCJOB_API = "NoVCJobAPI"
    NO_RESOURCE_SUMMARY = "NoResourceSummary"
    NO_READY_NODE = "NoReadyNode"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a cluster is no candidate; `detail` is the condition's reason, or the taint."""

    code: ClusterTrouble
    detail: str = ""


class Obstacle(enum.StrEnum):
    """Why a sub-job is not on a cluster."""

    UNKNOWN = "UnknownCluster"
    UNUSABLE = "Unusable"
    EXCLUDED = "Excluded"
    NOT_ALLOWED = "NotInClusterNames"
    LACKS = "Lacks"
    NODES = "NoNode"
    MAX_DOMAINS = "MaxDomains"
    # it has room for the sub-job
    OTHERS = "RoomOnlyWithoutOthers"
    STAYS = "Stays"
    SETTLED = "StandsAlready"
    LATER = "LaterInClusterNames"
    NOT_PREFERRED = "NotPreferred"
    LEFT_TO_OTHERS = "LeftToOthers"
    SIBLING = "HasSibling"
    FARTHER = "Farther"
    LOOSER = "FitsLessClosely"
    BY_NAME = "LaterByName"
    NOT_FOR_ALL = "NotForAll"
    WAITS = "Waits"
    OTHER_SHARE = "OtherShareOfSplit"
    NOT_NEEDED = "NotNeededForSplit"

    @property
    def has_room(self) -> bool:
        """Return whether the cluster has room for the sub-job as it is."""
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
        Obstacle.SIBLING,
        Obstacle.FARTHER,
        Obstacle.LOOSER,
        Obstacle.BY_NAME,
        Obstacle.NOT_FOR_ALL,
        Obstacle.WAITS,
    }
)


@dataclass(frozen=True, slots=True)
class Lack:
    """A resource of which a cluster has too little; amounts in nano-units."""

    resource: str
    missing: int
    free: int
    whole: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Crowding:
    """Pods of a size that a cluster's nodes cannot hold: how many are wanted, how many fit."""

    resource: str
    amount: int
    wanted: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """What keeps a sub-job from one cluster.

    `trouble` is set for UNUSABLE, `lacks` for LACKS, `crowding` for NODES, `limit` for MAX_DOMAINS;
    `other` is the HyperJob, cluster or replicatedJob that the code speaks of.
    """

    cluster: str
    code: Obstacle
    trouble: Trouble | None = None
    lacks: tuple[Lack, ...] = ()
    crowding: Crowding | None = None
    limit: int = 0
    other: str = ""


class ShortageCode(enum.StrEnum):
    """Why a sub-job has no place now."""

    NO_ROOM = "NoRoom"
    WAITS_FOR_GANG = "WaitsForGang"  # it has room, the others it must be placed with have not
    UNSETTLED = "Unsettled"  # the cluster's status may not count yet what has just started


@dataclass(frozen=True, slots=True)
class NoDevice:
    """A device that no cluster has, and the device of clusters that has nearly its name."""

    name: str
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why a sub-job has no place; `hidden` more clusters are not in `hindrances`."""

    code: ShortageCode
    demand: Resources = field(default_factory=dict)
    required: bool = False
    hindrances: tuple[Hindrance, ...] = ()
    hidden: int = 0
    no_device: NoDevice | None = None
    cluster: str = ""
    together: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOffer:
    """What one cluster can take of an automatic split: accelerators, or why none."""

    cluster: str
    room: int = 0
    used_up: bool = False
    hindrance: Hindrance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitShortage:
    """Why accelerators cannot be shared out.

    `found` fit on `together` clusters; it takes at least `fewest`. `hidden` more clusters are not
    in `parts`.
    """

    accelerators: int
    kind: str
    fixed: int
    per_pod: int
    required: bool
    max_domains: int | None
    found: int
    together: int
    fewest: int
    parts: tuple[ClusterOffer, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Why a sub-job is on none of its preferred clusters; `hidden` more are not listed."""

    hindrances: tuple[Hindrance, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOverflow:
    """What the preferred clusters take of accelerators that they cannot hold alone.

    A part without room and hindrance has too little room.
    """

    accelerators: int
    kind: str
    parts: Sequence[ClusterOffer]
