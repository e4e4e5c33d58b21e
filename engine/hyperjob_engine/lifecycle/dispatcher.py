"""Corrections of Volcano Global's quota: ended sub-jobs, and ResourceBindings that it has left out.

Volcano Global counts the ResourceBinding of an ended sub-job until its deletion. The controller
removes the request from it, in every pass: Karmada's detector may write the request again. The
vcjob, its pods and its logs stay as they are.
"""

from collections.abc import Iterable, Iterator

from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed, Ownership, QueueAdmission
from hyperjob_engine.model.planned import ReleaseQuota, ReleaseScheduling


def releases(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseQuota]:
    """Yield the actions that remove ended sub-jobs from Volcano Global's quota."""
    if observed.admission is not QueueAdmission.VOLCANO_GLOBAL:
        return
    for child in children:
        binding, job = child.binding, child.job
        if binding is None or job is None or job.ownership is not Ownership.OURS:
            continue
        if binding.requests and child.exists and child.is_terminal:
            yield ReleaseQuota(name=child.name, binding=binding.name, binding_uid=binding.uid)


def forgotten(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseScheduling]:
    """Yield the releases of ResourceBindings that Volcano Global left out despite free quota."""
    for child in children:
        binding = child.binding
        if (
            child.name in observed.forgotten
            and binding is not None
            and binding.scheduling_suspended
        ):
            yield ReleaseScheduling(name=child.name, binding=binding.name, binding_uid=binding.uid)
