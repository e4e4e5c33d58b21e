"""An outage: the API server cannot judge sub-jobs that a HyperJob is admitted for.

After some seconds the HyperJob gives the room of its missing sub-jobs back, and it is in its line
again for the next try. Sub-jobs that exist stay.
"""

from collections.abc import Iterable

from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed


def gives_back(observed: Observed) -> bool:
    """Return whether other HyperJobs have the room of a HyperJob's missing sub-jobs meanwhile."""
    return any(
        refusal.gives_back_at is not None
        and refusal.gives_back_at <= observed.now < refusal.retry_at
        for refusal in observed.refusals.values()
    )


def records_share(observed: Observed, children: Iterable[Child]) -> bool:
    """Return whether the status still records the share of a missing sub-job in an outage."""
    return gives_back(observed) and any(
        child.record is not None
        and child.record.admitted
        and not (child.exists or child.is_terminal)
        for child in children
    )
