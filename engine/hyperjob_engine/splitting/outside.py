"""The shares of an external splitter, or why a HyperJob waits for them.

Pure: the last answer is an input, and the next question is a result.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import SplitQuestion
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import SplitShare, Wish
from hyperjob_engine.splitting.protocol import question, usable

_ASKED: Final = "waits for the splitter's answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The shares, or why there are none; `ask` is the next question, `again` the time until it."""

    shares: tuple[SplitShare, ...] = ()
    wait: str = _ASKED
    ask: SplitQuestion | None = None
    again: timedelta | None = None


def consult(observed: Observed, wish: Wish, room: Room) -> Outside:
    """Return the shares of the last answer if they fit now, else the next question."""
    limit = observed.hyperjob.max_domains
    asked = question(observed.hyperjob, wish, room, max_domains=limit)
    answered = (observed.split_answers or {}).get(wish.group)
    if answered is None or answered.occasion != asked.occasion:
        return Outside(ask=asked)
    trouble = answered.trouble
    if answered.shares:
        found = usable(answered, wish, room, max_domains=limit)
        if isinstance(found, tuple):
            return Outside(shares=found)
        trouble = found
        if answered.digest != asked.digest:
            return Outside(ask=asked)
    if observed.now >= answered.retry_at:
        return Outside(wait=f"the controller asks the splitter again: {trouble}", ask=asked)
    return Outside(
        wait="the splitter's answer is unusable, and the controller asks again at"
        f" {rfc3339(answered.retry_at)}: {trouble}",
        again=answered.retry_at - observed.now,
    )
