"""The check that another cluster has room for a sub-job, before a requested move."""

from collections.abc import Sequence

from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.steps.draft import Draft


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
