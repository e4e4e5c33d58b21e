"""The answer of an external splitter, and the fault of an unusable one, as codes and numbers.

`hyperjob_engine.status.splitting` turns them into messages.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


class CallFault(enum.StrEnum):
    """Why the controller got no readable answer to a call of the splitter."""

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
    """A call without a readable answer; `detail` quotes the response or the error."""

    fault: CallFault
    detail: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class NoneGiven:
    """The splitter answered without shares; `reason` is its own message."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class NamedTwice:
    """An answer has two shares on one cluster."""

    cluster: str


@dataclass(frozen=True, slots=True)
class NoWholePods:
    """The accelerators of a share are not a multiple of the accelerators of a pod."""

    cluster: str
    accelerators: int


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A share has more accelerators than its cluster has free."""

    cluster: str
    accelerators: int


@dataclass(frozen=True, slots=True)
class WrongTotal:
    """The sum of the shares is not the number of accelerators of the split."""

    given: int
    wanted: int


@dataclass(frozen=True, slots=True)
class TooManyClusters:
    """The shares would put the HyperJob on more clusters than `spec.maxDomains`."""

    limit: int


SplitTrouble: TypeAlias = (
    CallFailed | NoneGiven | NamedTwice | NoWholePods | NoRoom | WrongTotal | TooManyClusters
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswer:
    """The last answer of an external splitter about one automatic split.

    `digest` and `occasion` are the question's; `shares` are (cluster, accelerators); `trouble` is
    why there are no shares. After an unusable answer the controller asks again at `retry_at`.
    """

    digest: str
    occasion: str
    shares: Sequence[tuple[str, int]] = ()
    trouble: SplitTrouble | None = None
    retry_at: datetime
