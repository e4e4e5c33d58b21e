"""The answer of an external splitter, and the fault of an unusable one with its sentence."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, assert_never


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


_FAULTS: Final = {
    CallFault.TIMEOUT: "it did not answer in time",
    CallFault.UNREACHABLE: "it cannot be reached ({detail})",
    CallFault.UNREADABLE: "its answer could not be read ({detail})",
    CallFault.HTTP_STATUS: "it answered {number} {detail}",
    CallFault.TOO_LARGE: "its answer is larger than {number} bytes",
    CallFault.NOT_JSON: "its answer is not JSON: {detail}",
    CallFault.NO_OBJECT: "its answer is not a JSON object",
    CallFault.NO_SHARES: "its answer has no list `shares`",
    CallFault.INCOMPLETE_SHARE: "a share of its answer has no `cluster` or no `accelerators`",
}


def split_trouble_text(trouble: SplitTrouble) -> str:
    """Return why the answer of the splitter is unusable."""
    match trouble:
        case CallFailed():
            text = _FAULTS[trouble.fault]
            return text.format(number=trouble.number, detail=trouble.detail).strip()
        case NoneGiven():
            return trouble.reason or "it gave no reason"
        case NamedTwice():
            return f"it names {trouble.cluster} twice"
        case NoWholePods():
            share = f"{trouble.accelerators} accelerators on {trouble.cluster}"
            return f"{share} are no whole number of pods"
        case NoRoom():
            return f"{trouble.cluster} has no room for {trouble.accelerators} accelerators"
        case WrongTotal():
            return f"its shares are {trouble.given} accelerators, not {trouble.wanted}"
        case TooManyClusters():
            return f"it uses more clusters than maxDomains {trouble.limit} allows"
        case _:
            assert_never(trouble)
