"""One sub-job, read from all its objects: vcjob, policy, binding, and our own last record.

Never forgets on an empty status: Karmada wipes a status when an apply fails, so what was last known
remains until something newer is known.
"""

from dataclasses import dataclass
from functools import cached_property

from controller.model.observed import Binding, Job, Observed, Ownership, Policy, Record, Report
from hyperjob.api.names import binding_name
from hyperjob.api.phases import JobPhase


# Without slots: every step of a plan asks the same of each sub-job, which is worked out once.
@dataclass(frozen=True, kw_only=True)
class Child:
    """What is known of the sub-job of one name."""

    name: str
    job: Job | None
    policy: Policy | None
    binding: Binding | None
    record: Record | None
    left_behind: str = ""
    """Name of a binding that is not this vcjob's; Karmada would give it to it, status and all."""
    stranger: str = ""
    """The object of that binding, where it is no vcjob."""

    @cached_property
    def exists(self) -> bool:
        """Return whether the vcjob is there, is ours to count, and stays."""
        return (
            self.job is not None
            and not self.job.deleting
            and self.job.ownership is not Ownership.FOREIGN
            and not self.is_outdated
        )

    @cached_property
    def attempt(self) -> int:
        """Return the present attempt; what a child bears counts where the status was lost."""
        recorded = self.record.attempt if self.record is not None else 0
        if self.job is None or self.job.ownership is Ownership.FOREIGN:
            return recorded
        return max(recorded, self.job.attempt)

    @cached_property
    def is_outdated(self) -> bool:
        """Return whether what there is of it belongs to an attempt that is over."""
        recorded = self.record.attempt if self.record is not None else 0
        if self.job is not None:
            mine = self.job.ownership is not Ownership.FOREIGN
            return mine and self.job.attempt < recorded
        policy = self.policy
        mine = policy is not None and policy.ownership is not Ownership.FOREIGN
        return policy is not None and mine and policy.attempt < recorded

    @cached_property
    def is_leaving(self) -> bool:
        """Return whether what there is of it is on its way out, or has to go."""
        return self.is_outdated or (self.job is not None and self.job.deleting)

    @cached_property
    def report(self) -> Report | None:
        """Return the freshest report: the binding's comes one hop earlier than the vcjob's."""
        if not self.exists or self.job is None:
            return None
        if self.binding is None:
            return self.job.report
        pins = self.policy.clusters if self.policy is not None else ()
        if pins and self.binding.cluster and self.binding.cluster not in pins:
            return None  # of the place that it is moved away from
        return self.binding.report or self.job.report

    @cached_property
    def phase(self) -> JobPhase:
        """Return the last known phase of the vcjob; UNKNOWN when it never reported one."""
        report = self.report
        if report is not None:
            return report.phase
        if self.record is None:
            return JobPhase.UNKNOWN
        recorded = JobPhase(self.record.phase)
        # What ran before its vcjob vanished does not run now; what had ended, has ended.
        return recorded if self.exists or recorded.is_terminal else JobPhase.UNKNOWN

    @cached_property
    def is_terminal(self) -> bool:
        """Return whether the sub-job has ended."""
        return self.phase.is_terminal

    @cached_property
    def cluster(self) -> str:
        """Return the cluster it is on or pinned to; empty when it has none."""
        if self.is_outdated:
            return ""
        if self.exists and self.binding is not None and self.binding.cluster:
            return self.binding.cluster
        if self.policy is not None and len(self.policy.clusters) == 1:
            return self.policy.clusters[0]
        # Without policy and placement nothing keeps it where the record says, unless it has ended.
        return self.record.cluster if self.record is not None and self.is_terminal else ""

    @cached_property
    def running_pods(self) -> int:
        """Count running pods as last known."""
        report = self.report
        if report is not None:
            return report.pods.running
        if self.record is not None and self.exists:
            return self.record.running
        return 0


def child_of(observed: Observed, name: str) -> Child:
    """Gather the objects of one sub-job."""
    job = observed.jobs.get(name)
    binding = observed.bindings.get(binding_name(name))
    left_behind = stranger = ""
    if binding is not None and (job is None or binding.job_uid != job.uid):
        left_behind, stranger, binding = binding.name, binding.stranger, None
    if job is not None and job.ownership is Ownership.FOREIGN:
        binding = None  # nothing is read from it, released or repaired
    return Child(
        name=name,
        job=job,
        policy=observed.policies.get(name),
        binding=binding,
        record=observed.hyperjob.records.get(name),
        left_behind=left_behind,
        stranger=stranger,
    )
