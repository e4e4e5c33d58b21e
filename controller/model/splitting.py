"""What an external splitter answered, and what is wrong with an answer, as codes and numbers.

The words are made in `controller.status.splitting`, once.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


class CallFault(enum.StrEnum):
    """Why a call brought no answer that can be read."""

    TIMEOUT = "Timeout"
    UNREACHABLE = "Unreachable"
    UNREADABLE = "Unreadable"
    HTTP_STATUS = "HTTPStatus"
    TOO_LARGE = "TooLarge"
    NOT_JSON = "NotJSON"
    NO_OBJECT = "NoObject"
    NO_SHARES = "NoShares"
    INCOMPLETE_SHARE = "IncompleteShare"


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call without an answer; `detail` quotes the other side or the error, `number` a limit."""

    fault: CallFault
    detail: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class NoneGiven:
    """The splitter answered without shares; `reason` is in its own words."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class NamedTwice:
    """An answer has two shares on one cluster."""

    cluster: str


@dataclass(frozen=True, slots=True)
class NoWholePods:
    """A share is no number of accelerators that pods have."""

    cluster: str
    accelerators: int


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A share is larger than what its cluster has room for."""

    cluster: str
    accelerators: int


@dataclass(frozen=True, slots=True)
class WrongTotal:
    """The shares are together not what the split needs."""

    given: int
    wanted: int


@dataclass(frozen=True, slots=True)
class TooManyClusters:
    """The shares take the HyperJob to more clusters than it allows."""

    limit: int


SplitTrouble: TypeAlias = (
    CallFailed | NoneGiven | NamedTwice | NoWholePods | NoRoom | WrongTotal | TooManyClusters
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswer:
    """What an external splitter last said about one automatic split.

    `digest` and `occasion` are the question's; `shares` are (cluster, accelerators); `trouble` is
    why there are none; it is not asked again for an answer that cannot be used before `retry_at`.
    """

    digest: str
    occasion: str
    shares: Sequence[tuple[str, int]] = ()
    trouble: SplitTrouble | None = None
    retry_at: datetime
