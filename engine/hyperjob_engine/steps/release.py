"""The steps after placement: plugins change the actions, the gang's gates open or it backs off.

These steps release or delete only sub-jobs that no member cluster has received.
"""

from hyperjob_engine.gang.gate import openings
from hyperjob_engine.gang.giveback import gave_back, next_state, to_give_back
from hyperjob_engine.gang.places import ready
from hyperjob_engine.lifecycle.delete import deletion
from hyperjob_engine.model.planned import DeletionCause
from hyperjob_engine.plugins.hook import set_up
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.steps.draft import Draft


def apply_plugins(draft: Draft) -> None:
    """Apply the plugins to the actions so far."""
    plugged = set_up(
        draft.observed,
        draft.children,
        draft.actions,
        assigned=draft.placement.assigned,
        minimum=draft.minimum,
    )
    draft.actions = plugged.actions
    draft.blocked.update(plugged.blocked)
    draft.outdated = plugged.outdated


def open_gates(draft: Draft) -> None:
    """Open the gates of all sub-jobs that the queue has admitted and that still have room."""
    observed, minimum, staying = draft.observed, draft.together, draft.staying
    if observed.hyperjob.suspend:
        return
    opened = openings(
        [child for child in staying if child.name not in draft.outdated],
        minimum=minimum,
        admission=observed.admission,
        ready=ready(observed, staying, draft.review, minimum),
    )
    draft.actions += opened
    draft.opening = frozenset(action.name for action in opened)


def give_back(draft: Draft) -> None:
    """Set the state of the gang; delete the held sub-jobs of a gang that stays incomplete."""
    observed, staying = draft.observed, draft.staying
    draft.back_off = next_state(
        observed, staying, opening=draft.opening, leaving=len(staying) < len(draft.children)
    )
    for child in to_give_back(observed, staying, opening=draft.opening):
        draft.actions += deletion(child, why=DeletionCause.GANG_INCOMPLETE)
        draft.blocked[child.name] = Blocked(Reason.GANG_BACK_OFF, gave_back(observed))
