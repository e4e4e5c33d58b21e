"""A member cluster refuses the pods of a sub-job, such as by a ResourceQuota or a LimitRange."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

PATIENCE: Final = timedelta(seconds=10)
"""For so long a sub-job waits in the cluster that refuses its pods, which may soon allow them."""


_STATUS_MESSAGE: Final = re.compile(r'Message:"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class PodsRefused:
    """The member's words about the pods that it refused, and when it first and last did.

    The words are empty where the controller does not read the Events of the member.
    """

    message: str
    first: datetime
    last: datetime


def words_of(message: str) -> str:
    """Return the API server's message in that of an Event by Volcano, which prints Go structs."""
    found = _STATUS_MESSAGE.search(message)
    return re.sub(r"\\(.)", r"\1", found[1]) if found is not None else message


def refused_text(cluster: str, message: str) -> str:
    """Return which cluster refuses the pods of a sub-job, and why."""
    if not message:
        return f"Volcano on {cluster} ended its vcjob before a pod ran; its Events there say why"
    return f"cluster {cluster} refuses its pods: {message}"


def no_pod_text(cluster: str, hyperjob: str) -> str:
    """Return that a cluster has created no pod of a sub-job; the vcjob's status has no reason."""
    return (
        f"{cluster} has created none: Volcano there waits for room in its queue, or the cluster"
        f" refuses the pods; see kubectl hyperjob why {hyperjob}"
    )
