"""A member cluster refuses the pods of a sub-job, such as by a ResourceQuota or a LimitRange."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

PATIENCE: Final = timedelta(seconds=10)
"""For so long a sub-job waits in the cluster that refuses its pods, which may soon allow them."""


@dataclass(frozen=True, slots=True)
class PodsRefused:
    """The member's words about the pods that it refused, and when it first and last did."""

    message: str
    first: datetime
    last: datetime


def refused_text(cluster: str, message: str) -> str:
    """Return which cluster refuses the pods of a sub-job, and why."""
    return f"cluster {cluster} refuses its pods: {message}"
