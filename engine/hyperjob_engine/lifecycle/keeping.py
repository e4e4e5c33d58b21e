"""The claims that outlive their sub-jobs: no sub-job is stopped before Karmada keeps its claims.

Karmada deletes the copy of a PersistentVolumeClaim in a cluster with the last vcjob there that uses
it, and a dynamically provisioned volume goes with its claim. So each cluster in which pods may have
written into a claim keeps its copy until a user deletes the claim in the Karmada API server.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_engine.model.claimcopies import Claim
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import (
    Action,
    DeleteChild,
    DeleteHyperJob,
    KeepClaim,
    Plan,
    Repin,
)
from hyperjob_engine.reasons.stop import unkept_text

_RETRY: Final = timedelta(seconds=5)
"""When a held stop is planned again, if no event of the claim's ResourceBinding causes it."""
_FIELD: Final = "persistentVolumeClaims"


def keeping(observed: Observed, plan: Plan) -> Plan:
    """Return a plan that keeps claims first, and holds the stops that would delete their copies."""
    unkept = {claim.name: _unkept(observed, claim) for claim in observed.claims}
    keeps = [
        KeepClaim(
            name=claim.name,
            uid=claim.uid,
            clusters=tuple(sorted(_all(unkept[claim.name]))),
            by_user=claim.is_of_user,
        )
        for claim in observed.claims
        if unkept[claim.name] and not _is_refused(observed, claim)
    ]
    users = frozenset(name for bindings in unkept.values() for name in bindings)
    going = [action for action in plan.actions if not _is_held(action, users)]
    wait = plan.requeue_after
    if len(going) < len(plan.actions):
        wait = _RETRY if wait is None else min(wait, _RETRY)
    return replace(
        plan,
        actions=(*keeps, *going),
        status=_with_claims(observed, plan.status, unkept),
        requeue_after=wait,
    )


def _unkept(observed: Observed, claim: Claim) -> Mapping[str, frozenset[str]]:
    """Return the unkept clusters of a claim, by the name of the ResourceBinding that needs it.

    A suspended ResourceBinding has no pods yet that could have written into the claim.
    """
    found = {}
    for name, binding in observed.bindings.items():
        lost = claim.needed.get(name, frozenset()) - claim.kept
        if lost and not binding.suspended:
            found[name] = lost
    return found


def _all(unkept: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*unkept.values())


def _is_refused(observed: Observed, claim: Claim) -> bool:
    """Return whether the API server refused to keep the claim, and the next try is not due."""
    refusal = observed.refusals.get(claim.name)
    return refusal is not None and refusal.retry_at > observed.now


def _is_held(action: Action, users: frozenset[str]) -> bool:
    """Return whether an action removes the vcjob of an unkept copy from its cluster."""
    if isinstance(action, DeleteHyperJob):
        return bool(users)
    return isinstance(action, DeleteChild | Repin) and binding_name(action.name) in users


def _with_claims(
    observed: Observed, status: Object | None, unkept: Mapping[str, Mapping[str, frozenset[str]]]
) -> Object | None:
    """Return a status with the copies of claims that stay, and why a copy does not."""
    if status is None:
        return None
    entries = []
    for claim in sorted(observed.claims, key=lambda each: each.name):
        entry: Object = {"name": claim.name}
        if claim.kept:
            entry["clusters"] = sorted(claim.kept)
        refusal, lost = observed.refusals.get(claim.name), _all(unkept[claim.name])
        if refusal is not None and lost:
            entry["message"] = unkept_text(sorted(lost), refusal.message)
        if len(entry) > 1:
            entries.append(entry)
    if not entries and _FIELD not in observed.hyperjob.status:
        return status
    return {**status, _FIELD: entries or None}
