"""The draft of a plan: what the steps have found so far.

Holds and answers; each decision is in its step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controller.expansion.auto import Split
from controller.gang.giveback import GangBackOff, backs_off
from controller.gang.rejections import RejectionCheck
from controller.gang.review import PinnedPlace, Review
from controller.lifecycle.decisions import Member
from controller.lifecycle.dependencies import Waiting
from controller.lifecycle.quorum import together
from controller.lifecycle.silence import SilenceCheck, SilentCounts
from controller.model.child import Child
from controller.model.detail import Detail
from controller.model.observed import Observed
from controller.model.outcomes import Loss
from controller.model.planned import Action
from controller.model.reasons import Reason
from controller.model.request import Request
from controller.model.shortage import ShortageCode
from controller.model.subjobs import SubJob
from controller.placement.place import Placement
from controller.status.outlook import Outlook


@dataclass(slots=True, kw_only=True)
class Draft:
    """What is known of all wanted sub-jobs, and what is to be done about them.

    `blocked` has reason and detail by sub-job, `standing` (group, cluster) of those that stay.
    `silent_counts` says of how many no report, or no progress, has come; `secured` counts those
    that need no place. `needed` of the missing sub-jobs had to fit together, `sought` is what they
    ask for. Plugins have made the `outdated` sub-jobs again.
    """

    observed: Observed
    split: Split
    children: Sequence[Member]
    losses: Mapping[str, Loss]
    waiting: Waiting
    silent_counts: SilentCounts = field(default_factory=SilentCounts)
    actions: list[Action] = field(default_factory=list)
    blocked: dict[str, tuple[Reason, Detail | None]] = field(default_factory=dict)
    rejection_checks: dict[str, RejectionCheck] = field(default_factory=dict)
    silence_checks: dict[str, SilenceCheck] = field(default_factory=dict)
    missing: dict[str, Member] = field(default_factory=dict)
    pinned_places: dict[str, tuple[PinnedPlace, SubJob, Child]] = field(default_factory=dict)
    standing: list[tuple[str, str]] = field(default_factory=list)
    secured: int = 0
    needed: int = 0
    sought: Sequence[Request] = ()
    placement: Placement = field(default_factory=Placement)
    review: Review = field(default_factory=Review)
    outdated: frozenset[str] = frozenset()
    opening: frozenset[str] = frozenset()
    back_off: GangBackOff = field(default_factory=GangBackOff)

    @property
    def minimum(self) -> int:
        """How many sub-jobs belong together now: those that wait for others are not counted."""
        total, wanted = len(self.children), self.observed.hyperjob.min_available
        able = total - len(self.waiting.for_what)
        return max(1, min(total if wanted is None else wanted, able))

    @property
    def together(self) -> int:
        """How many sub-jobs must have a place together; with a quorum that trains, only those."""
        children = [child for _, child in self.children]
        able = len(children) - len(self.waiting.for_what)
        return together(self.observed.hyperjob, children, able=able)

    @property
    def staying(self) -> list[Child]:
        """The sub-jobs that are not on their way out."""
        return [child for _, child in self.children if not child.is_leaving]

    @property
    def is_short(self) -> bool:
        """Whether a sub-job that may be made has no place for want of room.

        What its queue has not admitted waits for its queue, whose rounds look at all free room.
        """
        return bool(self.placement.unplaced or self.review.short or self.awaits_split)

    @property
    def awaits_split(self) -> bool:
        """Whether an automatic split that may be made cannot be sized yet."""
        waiting = self.split.waiting
        return bool(waiting) and any(
            sub_job.group.name in waiting for sub_job, _ in self.missing.values()
        )

    def excluded(self, child: Child) -> frozenset[str]:
        """Return the clusters that a sub-job must avoid: it moved away, or Karmada refused."""
        recorded = child.record.excluded_clusters if child.record is not None else ()
        rejection_check = self.rejection_checks.get(child.name, RejectionCheck())
        return rejection_check.excluded.union(recorded)

    def outlook(self, member: Member) -> Outlook:
        """Return what the plan does about one sub-job."""
        sub_job, child = member
        name = child.name
        reason: Reason | None
        detail: Detail | None
        reason, detail = self.blocked.get(name, (None, None))
        if name in self.placement.unplaced:
            detail = shortage = self.placement.unplaced[name]
            gang = shortage.code is ShortageCode.WAITS_FOR_GANG
            reason = Reason.WAITING_FOR_GANG if gang else Reason.INSUFFICIENT_CAPACITY
        loss = self.losses.get(name)
        rejection_check = self.rejection_checks.get(name, RejectionCheck())
        silence_check = self.silence_checks.get(name, SilenceCheck())
        return Outlook(
            sub_job=sub_job,
            child=child,
            cluster=self.placement.assigned.get(name) or self.review.moves.get(name, ""),
            blocked=reason,
            detail=detail,
            opening=name in self.opening,
            admitted=self._holds_share(child),
            loss=loss,
            no_room=self.review.short.get(name),
            left_out=rejection_check.left_out,
            rejections=rejection_check.rejections,
            silence=silence_check.record,
            unheard=silence_check.silent,
        )

    def _holds_share(self, child: Child) -> bool:
        """Return whether to record that a sub-job is admitted; a grant that came to nothing is not.

        Recorded only by our own queue admission, and until the sub-job ends.
        """
        verdict = self.observed.verdict
        if verdict is None or child.name not in verdict.admitted or child.is_terminal:
            return False
        if self.observed.hyperjob.suspend:
            return False
        recorded = child.record is not None and child.record.admitted
        if backs_off(self.observed):
            return child.exists
        return recorded or child.exists or child.name in self.placement.assigned
