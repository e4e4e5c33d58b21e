"""Volcano's words about a gang that it cannot place, from the PodGroup in the member."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_ORIGIN: Final = re.compile(r"Origin reason is:? (.*?)\.?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """Why Volcano calls a gang Unschedulable, and since when; no words: it does not let it in."""

    message: str
    since: datetime


def origin_of(message: str) -> str:
    """Return the cause in a message of a PodGroup, which begins with counts of the gang's pods."""
    found = _ORIGIN.search(message)
    return found[1] if found is not None else message


def unschedulable_text(cluster: str, message: str) -> str:
    """Return that a gang has no nodes on a cluster, in Volcano's words, or is not let in."""
    if not message:
        return (
            f"Volcano on {cluster} does not let its PodGroup in: the quota of its queue there, or"
            " the room that Volcano counts, is used up by others, or Volcano's scheduler is down"
        )
    return f"Volcano on {cluster} finds no nodes for all of its pods: {message}"
