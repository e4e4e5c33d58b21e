"""The words for what goes with a reason."""

from typing import assert_never

from controller.model.detail import Delayed, Detail
from controller.model.shortage import Overflow, Shortage, SplitOverflow, SplitShortage
from controller.model.waiting import GangShortage, KeptRoom, NextInLine, SplitRoom, Wait
from controller.status.shortage import overflow_text, shortage_text
from controller.status.waiting import room_text, wait_text


def detail_text(detail: Detail) -> str:
    """Say what goes with a reason."""
    match detail:
        case str():
            return detail
        case Shortage() | SplitShortage():
            return shortage_text(detail)
        case Overflow() | SplitOverflow():
            return overflow_text(detail)
        case Delayed():
            return detail.why
        case Wait():
            return wait_text(detail)
        case GangShortage() | KeptRoom() | SplitRoom() | NextInLine():
            return room_text(detail)
        case _:
            assert_never(detail)
