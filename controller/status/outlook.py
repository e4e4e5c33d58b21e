"""What a plan intends for one sub-job: the bridge from decision to status.

Carries what was decided; takes no decision and has no words.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from controller.lifecycle.decisions import End
from controller.model.child import Child
from controller.model.detail import Detail, Silent
from controller.model.observed import GangRecord, QueueVerdict, Rejection, Silence
from controller.model.outcomes import Loss
from controller.model.reasons import Reason
from controller.model.shortage import Shortage
from controller.model.subjobs import SubJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A sub-job, its objects, and what keeps it from being made, if anything does.

    `blocked` is the reason, `detail` what goes with it, `no_room` why its present place is gone.
    `loss` is the trouble with its cluster, `ended` the end of the HyperJob that ended it too,
    `unheard` that its cluster is silent; `left_out` are clusters that Karmada refused.
    """

    sub_job: SubJob
    child: Child
    cluster: str = ""
    blocked: Reason | None = None
    detail: Detail | None = None
    opening: bool = False
    admitted: bool = False
    loss: Loss | None = None
    ended: End | None = None
    no_room: Shortage | None = None
    left_out: Sequence[Rejection] = ()
    rejections: tuple[Rejection, ...] = ()
    silence: Silence | None = None
    unheard: Silent | None = None

    @property
    def lost(self) -> bool:
        """Whether its cluster counts as lost."""
        return self.loss is not None and self.loss.is_lost


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
