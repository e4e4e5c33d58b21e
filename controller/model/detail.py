"""What goes with a reason of a sub-job or a HyperJob."""

from dataclasses import dataclass
from datetime import datetime

from controller.model.shortage import Overflow, Shortage, SplitOverflow, SplitShortage
from controller.model.waiting import RoomDetail, Wait


@dataclass(frozen=True, slots=True)
class Delayed:
    """A sub-job that is made again later, and for which failure."""

    why: str
    until: datetime


Detail = str | Shortage | SplitShortage | Overflow | SplitOverflow | Delayed | Wait | RoomDetail
"""Words where only a person reads them, else codes and numbers."""
