"""The words for each thing that the controller may have to say, of arbitrary parts."""

import random
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final

from hyperjob_core.text import shortened
from hyperjob_engine.model.planned import Action
from hyperjob_engine.model.record import Rejection
from hyperjob_engine.reasons.detail import Detail, detail_text
from hyperjob_engine.reasons.failure import ContainerFailure, apply_failure, container_text
from hyperjob_engine.reasons.hindrance import Hindrance, Trouble, hindrance_text, trouble_text
from hyperjob_engine.reasons.outcomes import (
    AgainCause,
    EndCause,
    Loss,
    RefusedRequest,
    again_text,
    end_text,
    loss_text,
)
from hyperjob_engine.reasons.shortage import need_text
from hyperjob_engine.reasons.splitter import SplitTrouble, split_trouble_text
from hyperjob_engine.reasons.waiting import QueueTrouble, after_its_name, trouble_of_queue
from hyperjob_engine.resources import Resources
from hyperjob_engine.status.jobs import left_out_text
from hyperjob_engine.status.transitions import action_events, refusal_events
from tests.unit.recorded.arbitrary import TEXTS, arbitrary, made
from tests.unit.recorded.recording import Case, line

EACH: Final = 6
SHOWN: Final = 160

SAID: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Detail, detail_text),
    (AgainCause, again_text),
    (EndCause, end_text),
    (Loss, loss_text),
    (SplitTrouble, split_trouble_text),
    (Hindrance, hindrance_text),
    (Trouble, trouble_text),
    (ContainerFailure, container_text),
    (QueueTrouble, trouble_of_queue),
    (QueueTrouble, after_its_name),
)


def text_cases() -> Iterator[Case]:
    rng = random.Random("texts")
    for kind, say in SAID:
        for each in typing.get_args(kind) or (kind,):
            yield f"{say.__name__} of {each.__name__}", list(_said(rng, each, say))
    yield "left_out_text", list(_left_out(rng))
    yield "need_text", [need_text(arbitrary(rng, Resources, "demand")) for _ in range(2 * EACH)]
    yield "apply_failure", [line(apply_failure("a", each)) for each in TEXTS["apply_error"]]
    yield (
        "refusal_events",
        [line(refusal_events([made(rng, RefusedRequest, rest=0.1)])) for _ in range(4 * EACH)],
    )
    for each in typing.get_args(Action):
        rows = []
        for number in (1, 1, 2, 5, 6, 7):
            done = [made(rng, each, rest=0.2) for _ in range(number)]
            rows.append(line([action.name for action in done]))
            rows.extend(f"  {line(event)}" for event in action_events(done))
        yield f"events of {each.__name__}", rows


def _said(rng: random.Random, kind: Any, say: Callable[[Any], Any]) -> Iterator[str]:
    """Write values of a kind with what is said of them, each text once."""
    seen = {""}
    for _ in range(EACH * (1 + len(getattr(kind, "__dataclass_fields__", ())))):
        value = made(rng, kind, rest=0.2) if _is_made(kind) else arbitrary(rng, kind)
        text = say(value)
        if text not in seen:
            seen.add(text)
            yield shortened(line(value), SHOWN)
            yield f"  {text}"


def _is_made(kind: Any) -> bool:
    return hasattr(kind, "__dataclass_fields__")


def _left_out(rng: random.Random) -> Iterator[str]:
    for number in range(4):
        left = [made(rng, Rejection, rest=0.0) for _ in range(number)]
        yield left_out_text(item for item in left if item.retry_time is not None)
