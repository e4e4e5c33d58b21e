"""What the queue engine asks of the capacity of the member clusters."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import Resources


class ClusterCapacity(Protocol):
    """The capacity of the member clusters."""

    def capacity(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        """Return the clusters with the free resources after reservations, and by status alone."""
        ...

    def changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until the capacity changes without a change of an object."""
        ...
