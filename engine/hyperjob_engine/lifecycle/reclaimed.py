"""The restart of a HyperJob that makes way for its lender, or for another one of its queue.

It spends no restart of `maxRestarts`, because no sub-job has failed.
"""

from collections.abc import Sequence

from hyperjob_engine.lifecycle.decisions import Member, Recreation, Restart
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.reasons.reason import Reason


def giving_back(observed: Observed, members: Sequence[Member]) -> Restart | None:
    """Return the restart of the sub-jobs that have not ended; None if it keeps its share."""
    verdict = observed.verdict
    if verdict is None or not verdict.reclaimed_for:
        return None
    reason, other = Reason.RECLAIMED, verdict.reclaimed_for
    why = f"makes way for {other}, whose queue takes back what it lent"
    if verdict.preempted:
        reason = Reason.PREEMPTED
        why = f"is preempted by {other}, which {verdict.preempted}"
    again = tuple(
        Recreation(name=child.name, reason=reason, why=why)
        for _, child in members
        if child.name in verdict.admitted and not (child.is_terminal or child.is_outdated)
    )
    return Restart(again=again, gives_back=True) if again else None
