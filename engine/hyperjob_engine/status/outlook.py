"""The outlook of a sub-job: the decisions of a plan about it, from which its status is derived."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hyperjob_core.api.status import GangStatus, Rejection, Silence
from hyperjob_engine.lifecycle.decisions import End
from hyperjob_engine.lifecycle.loss import Loss
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import QueueVerdict
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.reasons.reason import Blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A sub-job, its objects, and why the controller does not create it, if it does not.

    `no_room` is why its cluster has no room any more; `loss` is the trouble of its cluster; `ended`
    is the end of the HyperJob that ended it too; `unheard`: its cluster does not report;
    `left_out`: clusters on which Karmada could not schedule it.
    """

    sub_job: SubJob
    child: Child
    cluster: str = ""
    blocked: Blocked | None = None
    opening: bool = False
    admitted: bool = False
    loss: Loss | None = None
    ended: End | None = None
    no_room: str = ""
    left_out: Sequence[Rejection] = ()
    rejections: tuple[Rejection, ...] = ()
    silence: Silence | None = None
    unheard: str = ""

    @property
    def lost(self) -> bool:
        """Whether the cluster of the sub-job counts as lost."""
        return self.loss is not None and self.loss.is_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlooks:
    """All sub-jobs of a HyperJob in the order of its spec, and how many must run together.

    `quorum` sub-jobs of the replicatedJobs `trainers` can train on without the others.
    `never`: even empty clusters have no room for the `needed` sub-jobs. `late`: they are stopped,
    since the deadline has passed.
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
    late: str = ""
    end: End | None = None
    gang: GangStatus | None = None
