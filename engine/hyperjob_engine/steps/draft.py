"""The draft of a plan: the results of its steps so far."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from hyperjob_engine.expansion.auto import Split
from hyperjob_engine.gang.gang import PinnedPlace, RejectionCheck, Review, is_through
from hyperjob_engine.gang.giveback import GangBackOff, backs_off, gives_back
from hyperjob_engine.lifecycle.decisions import Loss, Member
from hyperjob_engine.lifecycle.dependencies import Waiting
from hyperjob_engine.lifecycle.finished import together
from hyperjob_engine.lifecycle.silence import SilenceCheck, SilentCounts
from hyperjob_engine.model.observed import Observed, QueueAdmission
from hyperjob_engine.model.planned import Action
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import Child, SubJob
from hyperjob_engine.placement.place import Placement, place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.status.jobs import Outlook


@dataclass(slots=True, kw_only=True)
class Draft:
    """All wanted sub-jobs of a HyperJob and the decisions about them so far.

    `blocked` has why a sub-job is not created. `standing` are (group, cluster) of the sub-jobs
    that stay. `silent_counts` are the numbers of sub-jobs without a report or progress. `secured`
    is the number of sub-jobs that need no place. `needed` of the missing sub-jobs must fit
    together; `sought` are their requests. `never`: even empty clusters have no room for so many.
    The plugins' step recreates the `outdated` sub-jobs.
    """

    observed: Observed
    split: Split
    children: Sequence[Member]
    losses: Mapping[str, Loss]
    waiting: Waiting
    silent_counts: SilentCounts = field(default_factory=SilentCounts)
    actions: list[Action] = field(default_factory=list)
    blocked: dict[str, Blocked] = field(default_factory=dict)
    rejection_checks: dict[str, RejectionCheck] = field(default_factory=dict)
    silence_checks: dict[str, SilenceCheck] = field(default_factory=dict)
    missing: dict[str, Member] = field(default_factory=dict)
    pinned_places: dict[str, tuple[PinnedPlace, SubJob, Child]] = field(default_factory=dict)
    standing: list[tuple[str, str]] = field(default_factory=list)
    secured: int = 0
    needed: int = 0
    sought: Sequence[PlacementRequest] = ()
    placement: Placement = field(default_factory=Placement)
    never: bool = False
    review: Review = field(default_factory=Review)
    outdated: frozenset[str] = frozenset()
    opening: frozenset[str] = frozenset()
    back_off: GangBackOff = field(default_factory=GangBackOff)
    chooses_again: timedelta | None = None  # in how long it gives its share back; None: it does not
    shrinks: timedelta | None = None  # in how long it takes a smaller size; None: it does not

    @property
    def minimum(self) -> int:
        """The size of the gang, at most the number of sub-jobs with met dependencies."""
        total, wanted = len(self.children), self.observed.hyperjob.min_available
        able = total - len(self.waiting.for_what)
        return max(1, min(total if wanted is None else wanted, able))

    @property
    def together(self) -> int:
        """How many sub-jobs need a place together; the quorum, after a sub-job with one has run."""
        children = [child for _, child in self.children]
        able = len(children) - len(self.waiting.for_what)
        return together(self.observed.hyperjob, children, able=able)

    @property
    def staying(self) -> list[Child]:
        """The sub-jobs whose vcjob is not being deleted."""
        return [child for _, child in self.children if not child.is_leaving]

    @property
    def is_gated(self) -> bool:
        """Whether a gate holds a new sub-job: without others that must start with it, none does.

        Where Volcano Global may suspend its ResourceBinding, every sub-job has a gate.
        """
        if self.observed.admission is QueueAdmission.NONE:
            return False
        if not self.observed.decides_alone:
            return True
        through = sum(is_through(child) for _, child in self.children)
        return self.together - through > 1

    @property
    def is_short(self) -> bool:
        """Whether an admitted sub-job has no place because room is missing.

        A sub-job that is not admitted waits for the next round of its queue instead.
        """
        return bool(self.placement.unplaced or self.review.short or self.awaits_split)

    @property
    def awaits_split(self) -> bool:
        """Whether an admitted automatic split cannot be sized yet."""
        waiting = self.split.waiting
        return bool(waiting) and any(
            sub_job.group.name in waiting for sub_job, _ in self.missing.values()
        )

    @property
    def chooses_alone(self) -> bool:
        """Whether sub-jobs choose alternatives each for itself, with a quorum."""
        return any(group.own is not None for group in self.observed.hyperjob.replicated_jobs)

    @property
    def choosers(self) -> Collection[str]:
        """The sub-jobs that may take another alternative while they have no room."""
        several = {e.name for e in self.observed.hyperjob.replicated_jobs if len(e.options) > 1}
        if not self.chooses_alone:
            return [child.name for _, child in self.children] if several else ()
        return [
            name for name in self.placement.unplaced if self.missing[name][0].group.name in several
        ]

    def excluded(self, child: Child) -> frozenset[str]:
        """Return the clusters excluded for a sub-job: by moves, and by Karmada's refusals."""
        recorded = child.record.excluded(self.observed.now) if child.record is not None else ()
        rejection_check = self.rejection_checks.get(child.name, RejectionCheck())
        return rejection_check.excluded.union(recorded)

    def outlook(self, member: Member) -> Outlook:
        """Return the decisions of the plan about one sub-job."""
        sub_job, child = member
        name = child.name
        blocked, no_room = self.blocked.get(name), self.review.short.get(name)
        if name in self.placement.unplaced:
            shortage = self.placement.unplaced[name]
            waits = Reason.WAITING_FOR_GANG if shortage.in_gang else Reason.INSUFFICIENT_CAPACITY
            if shortage.mismatch and self.never:
                waits = Reason.NO_MATCHING_NODE
            blocked = Blocked(waits, shortage.text)
        return Outlook(
            sub_job=sub_job,
            child=child,
            cluster=self.placement.assigned.get(name) or self.review.moves.get(name, ""),
            blocked=blocked,
            opening=name in self.opening,
            admitted=self._holds_share(child),
            loss=self.losses.get(name),
            no_room=no_room.text if no_room is not None else "",
            rejection_check=self.rejection_checks.get(name, RejectionCheck()),
            silence_check=self.silence_checks.get(name, SilenceCheck()),
        )

    def _holds_share(self, child: Child) -> bool:
        """Return whether the status records a sub-job as admitted; an unused grant is not recorded.

        Only the queue engine's admissions are recorded, until the sub-job ends.
        """
        verdict = self.observed.verdict
        if verdict is None or child.name not in verdict.admitted or child.is_terminal:
            return False
        leaves = self.chooses_again == timedelta() and child.name in self.choosers
        if self.observed.hyperjob.suspend or leaves:
            return False
        recorded = child.record is not None and child.record.admitted
        if backs_off(self.observed) or gives_back(self.observed):
            return child.exists
        return recorded or child.exists or child.name in self.placement.assigned


def no_target(draft: Draft, name: str) -> Sequence[str]:
    """Return why no other cluster can take a sub-job now; empty if one can."""
    observed = draft.observed
    sub_job, child = next(member for member in draft.children if member[0].name == name)
    others = [
        (other.group.name, each.cluster)
        for other, each in draft.children
        if other.name != name and each.cluster and (each.exists or each.is_terminal)
    ]
    placement = place(
        [sub_job.request(frozenset({child.cluster}))],
        Room(observed.clusters, others),
        max_domains=observed.hyperjob.max_domains,
    )
    return tuple(each.text for each in placement.unplaced.values())
