"""Messages about an unusable answer of an external splitter."""

from typing import Final, assert_never

from hyperjob_engine.model.splitting import (
    CallFailed,
    CallFault,
    NamedTwice,
    NoneGiven,
    NoRoom,
    NoWholePods,
    SplitTrouble,
    TooManyClusters,
    WrongTotal,
)

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
