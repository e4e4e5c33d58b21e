"""Why a sub-job, or an automatic split, has no place: codes and numbers.

Decisions compare them; `hyperjob_engine.status.shortage` turns them into messages.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperjob_engine.model.resources import Resources


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
    NOT_ALLOWED = "NotInClusterNames"
    LACKS = "Lacks"
    NODES = "NoNode"
    MAX_DOMAINS = "MaxDomains"
    # from here on, the cluster has room for the sub-job alone
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
        """Return whether the cluster has room for the sub-job alone."""
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
    WAITS_FOR_GANG = "WaitsForGang"  # it has room, the rest of its gang has none
    UNSETTLED = "Unsettled"  # the Cluster's status may not count new pods yet


@dataclass(frozen=True, slots=True)
class NoDevice:
    """An extended resource that no cluster has; `near` is an existing one with a similar name."""

    name: str
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why a sub-job has no place, by cluster; `hidden` is how many clusters `hindrances` omits."""

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
    """The accelerators of an automatic split that one cluster can take, or why it takes none."""

    cluster: str
    room: int = 0
    used_up: bool = False
    hindrance: Hindrance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitShortage:
    """Why an automatic split finds no place for its accelerators.

    `found` accelerators fit on the clusters `together`; all of them need at least `fewest`
    clusters. `hidden` is how many clusters `parts` omits.
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
    """Why a sub-job is on none of its preferred clusters; `hidden` is how many are not listed."""

    hindrances: tuple[Hindrance, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOverflow:
    """How many of an automatic split's accelerators each preferred cluster has room for.

    A part without `room` and `hindrance` has too little room.
    """

    accelerators: int
    kind: str
    parts: Sequence[ClusterOffer]
