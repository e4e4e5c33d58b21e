"""The scaling step: the sub-jobs of the spec, and the deletion of all other existing ones."""

from collections.abc import Sequence

from hyperjob_engine.expansion.auto import Split
from hyperjob_engine.expansion.expand import sub_jobs
from hyperjob_engine.expansion.members import members_of, unwanted
from hyperjob_engine.lifecycle.delete import deletion
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.lifecycle.loss import losses_of
from hyperjob_engine.lifecycle.silence import count_silent
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import DeleteChild
from hyperjob_engine.model.subjobs import Group
from hyperjob_engine.steps.draft import Draft


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
