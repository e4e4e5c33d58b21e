"""What Volcano Global leaves undone: it counts what has ended, and may forget what it decided.

It counts bindings of sub-jobs that have ended until they are deleted. Karmada's detector writes the
request again when it interprets the template anew, so this is asked in every pass. The vcjob, its
pods and its logs stay as they are.
"""

from collections.abc import Iterable, Iterator

from controller.model.child import Child
from controller.model.observed import Observed, Ownership, QueueAdmission
from controller.model.planned import ReleaseQuota, ReleaseScheduling


def releases(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseQuota]:
    """Return what takes ended sub-jobs out of Volcano Global's account."""
    if observed.admission is not QueueAdmission.VOLCANO_GLOBAL:
        return
    for child in children:
        binding, job = child.binding, child.job
        if binding is None or job is None or job.ownership is not Ownership.OURS:
            continue
        if binding.requests and child.exists and child.is_terminal:
            yield ReleaseQuota(name=child.name, binding=binding.name)


def forgotten(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseScheduling]:
    """Return what releases the bindings that Volcano Global has the quota for and has forgotten."""
    for child in children:
        binding = child.binding
        if (
            child.name in observed.forgotten
            and binding is not None
            and binding.scheduling_suspended
        ):
            yield ReleaseScheduling(name=child.name, binding=binding.name, binding_uid=binding.uid)
