"""The messages of waiting HyperJobs: which of them differ from the present facts."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from hyperjob_engine.model.line import (
    LESS_THAN_NEVER,
    NEAR,
    OUTSIDE,
    MessageFacts,
    WaitCode,
    roughly,
)
from hyperjob_engine.placement.place import fits_never
from hyperjob_queueing.forecast import start_of
from hyperjob_queueing.state import QueueState, block_of, exceeds
from hyperjob_queueing.workload import Entry, Pending, StaleMessage


def stale_messages(state: QueueState, *, now: datetime) -> Iterator[StaleMessage]:
    """Yield the waiting HyperJobs whose stored message differs from the present facts.

    The caller must take all: the search forgets which lines have changed when it begins. A HyperJob
    has no message before its first round. The search is cheap because it compares all HyperJobs of
    a line only if one of them waits for another reason, or the places are due; else the first ten.
    """
    lines, due = state.lines, now
    if state.places_at is not None:
        due = state.places_at + state.settings.places_every
    changed = lines.changed
    if due <= now:
        state.places_at, changed, lines.moved = now, changed | lines.moved, set()
    lines.changed = set()
    for queue in sorted({*changed, *lines.moved, *lines.queues()}):
        line = lines.line(queue)
        for place, order in enumerate(line if queue in changed else line[:NEAR], start=1):
            stale = _stale(state, state.entries[order.key], place, now)
            if stale is not None:
                yield stale


def message_facts(state: QueueState, entry: Entry, place: int) -> MessageFacts:
    """Return the parts of a message that are kept up to date: block, place, free and used.

    Far from the head of a line the place is rounded and the free resources are not kept up to
    date: one step of a line of thousands then changes few messages.
    """
    block, free, used = block_of(state, entry), 0, 0
    code = block.code if block is not None else None
    if code is not None and entry.waiting is not None:
        code = code_of(state, entry.waiting, code, asked=place <= NEAR)
        if code in OUTSIDE:
            return MessageFacts(code, 0, state.answers.changes, 0, "")
    if place > NEAR and not state.last.starts:
        return MessageFacts(code, roughly(place), 0, 0, "")
    if entry.waiting is not None and place <= NEAR:
        measure = entry.waiting.parts[0].request.measure
        free = state.last.open.sum.get(measure, 0)
        used = state.usage.used(entry.waiting.queue).get(measure, 0)
    return MessageFacts(code, roughly(place), free, used, _expected_text(state, entry.unit.key))


def code_of(state: QueueState, waiting: Pending, code: WaitCode, *, asked: bool = True) -> WaitCode:
    """Return the rule by which a HyperJob waits, or that it can never start, by its block's code.

    Without `asked` a HyperJob of which it is not known yet whether it has room ever has.
    """
    if code is WaitCode.LIMIT and exceeds(state, waiting):
        return WaitCode.LIMIT_OF_GANG
    if code in LESS_THAN_NEVER and _exceeds_clusters(state, waiting, asked=asked):
        return WaitCode.NEVER
    return code


def _exceeds_clusters(state: QueueState, waiting: Pending, *, asked: bool) -> bool:
    """Return whether not even empty clusters have room for what a gang still needs.

    Unless `asked`, only an answer that is known already counts: to find one takes long.
    """
    needs, never = waiting.shape.needs, state.answers.never
    known = never.get(needs) if needs.needed else False
    if known is None and asked:
        known = never[needs] = fits_never(
            waiting.requests,
            state.last.open,
            minimum=needs.needed,
            max_domains=needs.max_domains,
        )
    return bool(known)


def stopped_for(state: QueueState, key: str) -> Mapping[str, datetime]:
    """Return the stopped HyperJobs for whose pods a head waits, and until when at the latest."""
    if key != state.last.kept_for:
        return {}
    return {pods.key: pods.until for pods in state.ending if pods.key}


def _expected_text(state: QueueState, key: str) -> str:
    """Return the expected start to the minute, or of a HyperJob behind a head to ten minutes.

    Of a head without one it is what it waits for.
    """
    start = start_of(state, key)
    if start is None:
        return " ".join(stopped_for(state, key))
    minute = start.at.minute if key in state.last.starts else start.at.minute // 10
    return f"{start.at:%Y%m%d%H} {minute} {start.after}"


def _stale(state: QueueState, entry: Entry, place: int, now: datetime) -> StaleMessage | None:
    """Return the message of a HyperJob if it differs from the facts; None if it does not."""
    key = entry.unit.key
    if block_of(state, entry) is None:
        return None
    facts, written = message_facts(state, entry, place), entry.written
    if written is None or (facts.expected and not written.expected):
        return StaleMessage(key, timedelta(), news=True)
    if not facts.is_like(written):
        return StaleMessage(key, timedelta())
    wait = entry.refresh_in(now=now, near=place <= NEAR)
    return StaleMessage(key, wait) if written != facts else None
