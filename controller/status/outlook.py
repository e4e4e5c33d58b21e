"""What a plan intends for one sub-job: the bridge from decision to status.

Carries words already chosen; takes no decision.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from controller.lifecycle.verdict import End
from controller.model.child import Child
from controller.model.detail import Detail
from controller.model.observed import GangRecord, QueueVerdict, Rejection, Silence
from controller.model.reasons import Reason
from controller.model.shortage import Shortage
from controller.model.subjobs import SubJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A sub-job, its objects, and what keeps it from being made, if anything does.

    `blocked` is the reason, `message` what goes with it, `no_room` why its present place is gone.
    `cluster_trouble` says what is the matter with its cluster, `lost` that it counts as lost;
    `ended` says why the end of the HyperJob ended it too; `unheard` that its cluster is silent.
    """

    sub_job: SubJob
    child: Child
    cluster: str = ""
    blocked: Reason | None = None
    message: Detail = ""
    opening: bool = False
    admitted: bool = False
    cluster_trouble: str = ""
    lost: bool = False
    ended: str = ""
    no_room: Shortage | None = None
    note: str = ""
    rejections: tuple[Rejection, ...] = ()
    silence: Silence | None = None
    unheard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlooks:
    """All sub-jobs of a HyperJob in the order of its spec, and how many must run together.

    `quorum` of those of the replicatedJobs `trainers` train on without the others.
    `never`: not even empty clusters would hold as many as are `needed`.
    """

    items: Sequence[Outlook]
    minimum: int
    quorum: int | None = None
    trainers: Collection[str] = ()
    room_for: int = 0
    needed: int = 0
    never: bool = False
    verdict: QueueVerdict | None = None
    suspended: bool = False
    end: End | None = None
    gang: GangRecord | None = None
