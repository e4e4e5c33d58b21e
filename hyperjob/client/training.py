"""The progress of a training and its goodput, as values and as text. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hyperjob_core.api import table
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.lines import web_address
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import MeasuredSpeed
from hyperjob_core.api.training import Straggler, TrainingStatus
from hyperjob_core.text import human_duration
from hyperjob_engine.status.goodput import GoodputAccount, certain_until, parse_account, ratio


def training_of(status: Object) -> TrainingStatus | None:
    """Parse `status.training`; None where no program has reported progress. Its URL is a link."""
    found = table.read(TrainingStatus, status.get("training") or None)
    return None if found is None else replace(found, url=web_address(found.url))


def value(training: TrainingStatus | None) -> Object:
    """Return it as JSON."""
    return {} if training is None else table.write(training)


def words(training: TrainingStatus, now: datetime) -> str:
    """Say it in one line."""
    parts = [f"step {training.step}" + (f" of {training.steps}" if training.steps else "")]
    if training.percent is not None:
        parts.insert(0, f"{training.percent}%")
    if training.steps_per_second:
        usual = f" ({training.usual} usually)" if training.usual else ""
        parts.append(f"{training.steps_per_second} steps/s{usual}")
    if training.completion is not None and training.completion > now:
        left = (training.completion - now).total_seconds()
        parts.append(f"done in {human_duration(left)}")
    if training.saved_step is not None and training.saved is not None:
        parts.append(f"saved step {training.saved_step}, made {_ago(training.saved, now)}")
    if training.updated is not None:
        parts.append(f"reported {_ago(training.updated, now)}")
    if training.phase:
        parts.append(f"in phase {training.phase}")
    if training.url:
        parts.append(f"at {training.url}")
    if training.straggler is not None:
        parts.append(straggler_words(training.straggler))
    return ", ".join(parts)


def straggler_words(slow: Straggler) -> str:
    """Say for which process the others wait, and how much."""
    rank = "" if slow.rank is None else f"rank {slow.rank} in "
    part = number(slow.part)
    share = "" if part is None else f" {part:.0%} of the time"
    each = f", {slow.seconds} s of each step" if slow.seconds else ""
    return f"the others wait for {rank}pod {slow.pod} in {slow.cluster}{share}{each}"


def number(text: str) -> float | None:
    """Return a decimal number of the status; None for another text."""
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The time of a HyperJob by use, in seconds, and the productive share of it.

    While the program makes steps, `seconds` ends with its last progress line: what it does since
    then is known later. `unreported` are the seconds since that line.
    """

    ratio: float
    seconds: Mapping[TimeUse, float]
    unreported: float = 0.0

    @property
    def percent(self) -> str:
        """Return the productive share as a percentage."""
        return f"{100 * self.ratio:.0f}%"


def goodput_of(raw: Object, training: TrainingStatus | None, now: datetime) -> Goodput | None:
    """Parse `status.goodput`, and add the time since its last update of which the use is known.

    That is the time up to `now`, but while steps are made the time up to the last progress line:
    a program that hangs does so before anyone sees it. In an announced phase no line is expected.
    """
    account = parse_account(raw)
    if account is None:
        return None
    end = _known_until(account, training, now)
    spent = account.until(end).spent
    seconds = {use: spent[use] / 1000 for use in TimeUse if spent.get(use)}
    unreported = (now - end).total_seconds()
    return Goodput(ratio=ratio(account, end), seconds=seconds, unreported=unreported)


def _known_until(
    account: GoodputAccount, training: TrainingStatus | None, now: datetime
) -> datetime:
    steps = training is not None and not training.phase
    return certain_until(account, training.updated if training and steps else None, now)


def sizes_text(
    speeds: Sequence[MeasuredSpeed], goodput: Object, training: TrainingStatus | None, now: datetime
) -> str:
    """Say how long a HyperJob ran at each size, the part of its accelerator time, and its goodput.

    Empty without two sizes at which it ran. `goodput` is its `status.goodput`.
    """
    spent = {
        each.alternatives: each.until(now).milliseconds * max(1, each.accelerators)
        for each in speeds
    }
    whole = sum(spent.values())
    if sum(1 for each in spent.values() if each) < 2:
        return ""
    account = parse_account(goodput, next((each.alternatives for each in speeds if each.since), ""))
    end = now if account is None else _known_until(account, training, now)
    made = {} if account is None else account.until(end).by_size
    found = []
    for each in sorted(speeds, key=lambda each: -spent[each.alternatives]):
        took, known = each.until(now).milliseconds, each.until(end).milliseconds
        part = f"{100 * spent[each.alternatives] / whole:.0f}%"
        if made and known:
            part += f", {min(100, 100 * made.get(each.alternatives, 0) / known):.0f}% productive"
        if took:
            found.append(f"{each.alternatives} {human_duration(took / 1000)} ({part})")
    return ", ".join(found)


def _ago(moment: datetime, now: datetime) -> str:
    return f"{human_duration(max(0.0, (now - moment).total_seconds()))} ago"
