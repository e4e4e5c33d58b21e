"""What the queue engine asks of the capacity of the member clusters."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from hyperjob_engine.model.observed import Cluster


class ClusterCapacity(Protocol):
    """The capacity of the member clusters."""

    def clusters(self, *, now: datetime) -> Sequence[Cluster]:
        """Return the clusters with the free resources after reservations."""
        ...

    def changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until the capacity changes without a change of an object."""
        ...
