"""Wait until a HyperJob reaches a state: a phase, a condition, a step of the training, deletion."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from hyperjob.client.errors import NeverError, NotYetError, title
from hyperjob.client.logs.following import prints_step
from hyperjob.client.reading import Target
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.field import make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import natural, string
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.tasks import cancel
from hyperjob_core.text import human_duration
from hyperjob_engine.reasons.reason import NEVER_RUNS

Holds = Callable[[Object | None], bool]
"""Returns whether a HyperJob (None: deleted) has reached the state; NeverError if it never can."""

Progress = Callable[[str], None]
"""Shows a line about the present state of the HyperJob."""


HOPELESS_SECONDS: Final = 15.0


def silent(_text: str) -> None:
    """Ignore progress."""


async def until(
    target: Target,
    holds: Holds,
    *,
    what: str,
    seconds: float,
    progress: Progress = silent,
    is_doubtful: Holds = lambda _: False,
) -> Object | None:
    """Wait until `holds` is true; return the HyperJob, or None after its deletion.

    `seconds` 0 is no time limit. Raises NotYetError when time is up, the errors of `holds`, and
    NeverError after the HyperJob has been doubtful for HOPELESS_SECONDS without a break: a Cluster
    that joins reports its nodes a moment later.
    """
    last: Object | None = None

    async def follow(patience: asyncio.Timeout) -> Object | None:
        nonlocal last
        async with aclosing(target.states()) as stream:
            async for last in stream:
                if holds(last):
                    return last
                progress(f"{target.name} {_state_text(last)}; waiting until it {what}")
                if not is_doubtful(last):
                    patience.reschedule(None)
                elif patience.when() is None:
                    patience.reschedule(asyncio.get_running_loop().time() + HOPELESS_SECONDS)
        raise AssertionError("the changes of an object do not end")

    try:
        async with asyncio.timeout(seconds or None):
            try:
                async with asyncio.timeout(None) as patience:
                    return await follow(patience)
            except TimeoutError:
                raise NeverError(
                    f"{target.title} {_state_text(last)}: as things are, it never {what}"
                ) from None
    except TimeoutError:
        raise NotYetError(
            f"timed out after {human_duration(seconds)} waiting until {target.title} {what}; it"
            f" {_state_text(last)}"
        ) from None


def not_found(name: str) -> NotFound:
    """Return the API server's error for a HyperJob that does not exist."""
    message = f'{HYPERJOBS.group_resource} "{name}" not found'
    details = {"name": name, "group": HYPERJOBS.group, "kind": HYPERJOBS.plural}
    return NotFound(make_status(404, message, reason="NotFound") | {"details": details})


def summary_of(hyperjob: Object | None, name: str) -> Summary:
    """Parse a HyperJob; NeverError for None, since a deleted HyperJob reaches no state."""
    if hyperjob is None:
        raise NeverError(f"{title(name)} was deleted")
    return read(hyperjob)


def _state_text(hyperjob: Object | None) -> str:
    if hyperjob is None:
        return "does not exist"
    summary = read(hyperjob)
    return f"is {summary.phase}" + (f": {summary.message}" if summary.message else "")


_CONDITIONS: Final = (
    Phase.RUNNING,
    Phase.SUSPENDED,
    Phase.DEGRADED,
    Phase.COMPLETED,
    Phase.FAILED,
)
"""The conditions that are True in the phase of their name and in no other."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A state to wait for: deletion, one of these phases, or a step of the training."""

    words: str
    phases: frozenset[Phase]
    step: int | None = None

    @property
    def is_deletion(self) -> bool:
        """Return whether the goal is the deletion of the HyperJob."""
        return not self.phases and self.step is None

    def is_doubtful(self, hyperjob: Object | None) -> bool:
        """Return whether the HyperJob may never reach the goal, which `holds` has not denied.

        The engine says in its status that it never runs, or it has completed without the step.
        """
        if hyperjob is None or self.is_deletion or self.phases & _WITHOUT_RUNNING:
            return False
        summary = read(hyperjob)
        if self.step is not None and summary.has_ended:
            return True
        return summary.is_current and summary.reason in NEVER_RUNS

    def holds(self, hyperjob: Object | None, name: str) -> bool:
        """Return whether the HyperJob has reached the goal; NeverError when it never can."""
        if self.is_deletion:
            return hyperjob is None
        summary = summary_of(hyperjob, name)
        if self.step is not None:
            training = summary.training
            if training is not None and training.step >= self.step:
                return True
            known = training.steps if training is not None else 0
            # The controller reads the last log lines shortly after the program has ended.
            late = summary.phase == Phase.COMPLETED and (known is None or known >= self.step)
            if summary.has_ended and not late:
                raise NeverError(_ended_text(summary, self.words))
            return False
        if not summary.is_current or not summary.has_status:
            return False
        if summary.phase in self.phases:
            return True
        if summary.has_ended:
            raise NeverError(_ended_text(summary, self.words))
        return False


_WITHOUT_RUNNING: Final = frozenset({Phase.PENDING, Phase.QUEUED, Phase.STOPPING, Phase.SUSPENDED})


def parse_goal(text: str) -> Goal:
    """Parse `delete`, `phase=A,B`, `condition=Completed`, `step=N`; ValueError for other texts."""
    kind, equals, wanted = text.partition("=")
    if text == "delete":
        return Goal("is deleted", frozenset())
    if kind == "phase" and equals:
        known = {str(phase).lower(): phase for phase in Phase}
        chosen = [known.get(word.strip().lower()) for word in wanted.split(",")]
        found = frozenset(phase for phase in chosen if phase is not None)
        if len(found) == len(chosen):
            return Goal(f"is {' or '.join(sorted(found))}", found)
        raise ValueError(f"phase must be one of {', '.join(Phase)}; got {wanted!r}")
    if kind == "condition" and equals:
        name, _, value = wanted.partition("=")
        phase = next((each for each in _CONDITIONS if each.lower() == name.lower()), None)
        if phase is not None and value.lower() in ("", "true"):
            return Goal(f"is {phase}", frozenset({phase}))
        raise ValueError(f"condition must be one of {', '.join(_CONDITIONS)}; got {wanted!r}")
    if kind == "step" and equals:
        step = natural(wanted)
        if step is None:
            raise ValueError(f"step must be a number; got {wanted!r}")
        return Goal(f"is at step {step}", frozenset(), step)
    given = "phase=PHASE, condition=CONDITION, step=N or delete"
    raise ValueError(f"{text!r}: give {given}")


async def reach(
    target: Target,
    goal: Goal,
    *,
    seconds: float,
    progress: Progress = silent,
    uid: str | None = None,
) -> Object | None:
    """Wait until a HyperJob reaches the goal; return it, or None after its deletion.

    `seconds` 0 is no time limit. A HyperJob of another UID than `uid`, or than the HyperJob that
    was read first, is a new HyperJob: the earlier one of this name is deleted. Raises NotFound when
    the HyperJob does not exist, NotYetError when time is up, NeverError when the HyperJob can no
    longer reach the goal.
    """
    first, known = True, uid

    def holds(hyperjob: Object | None) -> bool:
        nonlocal first, known
        if hyperjob is None and first and not goal.is_deletion:
            raise not_found(target.name)
        first = False
        if hyperjob is not None and goal.is_deletion:
            found = string(hyperjob["metadata"].get("uid"))
            known = known or found
            return found != known
        return goal.holds(hyperjob, target.name)

    reaching = until(
        target,
        holds,
        what=goal.words,
        seconds=seconds,
        progress=progress,
        is_doubtful=goal.is_doubtful,
    )
    if goal.is_deletion:
        await reaching
        return None
    if goal.step is None:
        return await reaching
    return await _or_printed(target, reaching, step=goal.step)


async def _or_printed(
    target: Target, reaching: Coroutine[None, None, Object | None], *, step: int
) -> Object | None:
    """Wait for a step in the status or in a log, whichever is first; return the HyperJob.

    The status has it up to an interval of the controller later.
    """
    in_status = asyncio.create_task(reaching)
    in_log = asyncio.create_task(_printed(target, step))
    try:
        await asyncio.wait({in_status, in_log}, return_when=asyncio.FIRST_COMPLETED)
        if in_status.done() or not in_log.result():
            return await in_status
        return await target.get()
    finally:
        await cancel([in_status, in_log])


async def _printed(target: Target, step: int) -> bool:
    """Follow the logs until a program reports the step; False if no log reports it."""
    try:
        found = await target.get()
    except KubeError:
        return False  # the wait for the status reports it
    return await prints_step(target.kube, read(found), step)


def _ended_text(summary: Summary, wanted: str) -> str:
    why = f": {summary.message}" if summary.message else ""
    return f"{title(summary.name)} is {summary.phase}, so it never {wanted}{why}"
