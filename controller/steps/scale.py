"""The scaling step: the sub-jobs of the spec, and the deletion of all other existing ones."""

from collections.abc import Sequence

from controller.expansion.auto import Split
from controller.expansion.expand import sub_jobs
from controller.expansion.members import members_of, unwanted
from controller.lifecycle.delete import deletion
from controller.lifecycle.dependencies import waiting
from controller.lifecycle.loss import losses_of
from controller.lifecycle.silence import count_silent
from controller.model.child import child_of
from controller.model.observed import Observed
from controller.model.planned import DeleteChild
from controller.model.subjobs import Group
from controller.steps.draft import Draft


def scale(observed: Observed, split: Split, groups: Sequence[Group]) -> Draft:
    """Return a draft with the sub-jobs of the spec, and the deletions of the others."""
    members = {group.replicated_job.name: members_of(observed, group) for group in groups}
    indices = {name: found.kept for name, found in members.items()}
    children = [
        (sub_job, child_of(observed, sub_job.name))
        for sub_job in sub_jobs(observed.hyperjob, groups, indices)
    ]
    names = frozenset(sub_job.name for sub_job, _ in children)
    leaving = [name for found in members.values() for name in found.leaving]
    deletions: list[DeleteChild] = []
    for name in dict.fromkeys([*leaving, *unwanted(observed, names)]):
        deletions += deletion(child_of(observed, name))
    return Draft(
        observed=observed,
        split=split,
        children=children,
        losses=losses_of(observed, children),
        waiting=waiting(observed, children),
        silent_counts=count_silent(observed, children),
        actions=[*deletions],
    )
