"""What programs say in their logs, what becomes known by it, and where their time went."""

import copy
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from hyperjob_controller.training.watch import LIMIT_BYTES, LoggedTask, Source, Watch, watch
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.lines import SECOND, LogLine, Splitter
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_engine.model.training import (
    MAX_LINE,
    JobTraining,
    latest_training,
    parse_training,
    training_object,
)
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.goodput import (
    GoodputAccount,
    Moment,
    account_object,
    advance,
    begin,
    finish,
    parse_account,
    ratio,
)
from hyperjob_engine.status.training import SubJobProgress, combined
from tests.unit.controller.builders import NOW
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, changes, line, plain

READS: Final = 9
LOOKS: Final = 14
SECONDS: Final = (0.0, 0.5, 1.0, 1.5, 10.0, 60.0, 300.0, 601.0)


def log_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"log {seed}")
        yield f"program {seed}", list(_read(rng))


class Program:
    """A program that prints, and now and then begins again."""

    def __init__(self, rng: random.Random, now: datetime) -> None:
        self.rng, self.time, self.step, self.saved = rng, now, rng.choice((0, 0, 70)), 0

    def lines(self, until: datetime) -> Iterator[bytes]:
        for _ in range(self.rng.choice((0, 0, 1, 1, 2, 3, 12))):
            self.time += timedelta(seconds=self.rng.choice(SECONDS))
            if self.time > until and some(self.rng, 0.9):
                self.time = until
            if some(self.rng, 0.12):
                self.step = max(0, self.step - self.rng.choice((1, 20, 200)))
            else:
                self.step += self.rng.choice((0, 1, 10, 10, 100))
            yield self._line()

    def _line(self) -> bytes:
        rng = self.rng
        stamp = f"{self.time:%Y-%m-%dT%H:%M:%S}" + rng.choice(("Z ", ".5Z ", ".123456789Z "))
        told: dict[str, Any] = {"step": rng.choice((self.step, float(self.step)))}
        if some(rng, 0.3):
            told["steps"] = rng.choice((0, 1000, 2000, self.step))
        if some(rng, 0.4):
            told["saved"] = self.step - rng.choice((0, 1, 5, 15, 60, -1))
        if some(rng, 0.3):
            told["metrics"] = {"loss": rng.choice((0.5, 1e-9, float("1e400"))), "ok": True, "n": 3}
        text = json.dumps({"hyperjob": told if some(rng, 0.95) else [told]})
        before, after = rng.choice(("", "rank 0: ", "{")), rng.choice(("", " }", " x"))
        return f"{stamp}{before}{text}{after}".encode()


def _read(rng: random.Random) -> Iterator[str]:
    now = NOW
    tasks = tuple(LoggedTask(name, "main", rng.choice((1, 2, 3))) for name in ("master", "worker"))[
        rng.choice((0, 1)) :
    ]
    recorded = None
    if some(rng, 0.4):
        recorded = JobTraining(
            step=60,
            updated=now - timedelta(seconds=30),
            start_step=10,
            started=now - timedelta(minutes=3),
            saved_step=50 if some(rng, 0.5) else None,
            saved=now - timedelta(minutes=1),
        )
    source = Source(
        name="hj-g0-0",
        uid="u",
        attempt=rng.choice((0, 1)),
        namespace="default",
        cluster="a",
        tasks=tasks,
        since=now - timedelta(minutes=5) if some(rng, 0.6) else None,
        leaving=some(rng, 0.2),
        ended=some(rng, 0.2),
        recorded=recorded,
    )
    program, heard = Program(rng, now - timedelta(minutes=2)), watch(source)
    heard.others = some(rng, 0.3)
    shown: Object = {}
    server = Server()
    yield line(source)
    yield from _known(heard, rng, shown)
    before: JobTraining | None = recorded
    for _ in range(READS):
        now += timedelta(seconds=rng.choice((1, 10, 60, 700)))
        if some(rng, 0.2):
            heard.miss()
            yield f"{now:%H:%M:%S} its pod is not there"
        else:
            log = _log(rng, program, now)
            progress = server.read(heard, log, now)
            yield f"{now:%H:%M:%S} {len(log)} bytes, {log.count(b'hyperjob')} lines: {progress}"
        if some(rng, 0.1):
            heard.ended = True
        yield from _known(heard, rng, shown)
        read = heard.training
        with_before = latest_training(read, before)
        if with_before != read:
            yield f"  with what was recorded {line(with_before)}"
        if read is not None and some(rng, 0.5):
            before = replace(read, attempt=rng.choice((0, 1)))
            steps = (0, read.start_step, read.start_step + 5, read.step, read.step + 9, 10**9)
            yield f"  reached {line([before.reached(step) for step in steps])}"
            same = parse_training(training_object(read))
            yield f"  kept {line([read.kept_until, same])}"


def _log(rng: random.Random, program: Program, now: datetime) -> bytes:
    rows = list(program.lines(now))
    if some(rng, 0.3):
        rows[:0] = [f"{now - timedelta(seconds=9):%Y-%m-%dT%H:%M:%SZ} noise".encode()] * 3
    if some(rng, 0.1):
        rows[:0] = [b"noise"] * rng.choice((8, 9, 10, 99, 100, 101, 401))
    if some(rng, 0.05):
        rows.append(b"x" * LIMIT_BYTES)
    return b"\n".join(rows) + rng.choice((b"", b"\n")) if rows else b""


class Server:
    """The log of a pod: a read repeats the lines since the second of the last one."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.pod = -1

    def read(self, heard: Watch, log: bytes, now: datetime) -> bool:
        if self.pod != heard.number:
            self.pod, self.lines = heard.number, []
        splitter, position = Splitter(MAX_LINE + 4), replace(heard.position)
        raw = [*splitter.feed(log), *filter(None, [splitter.rest()])]
        repeated = [each for each in self.lines if each.time >= position.newest // SECOND * SECOND]
        written = [LogLine.of(each) for each in raw]
        self.lines += [each for each in written if each.time]
        position.begin()
        fresh = position.fresh([*(repeated if position.newest else ()), *written])
        return heard.read_log(fresh, position=position, size=len(log), now=now)


def _known(heard: Watch, rng: random.Random, shown: Object) -> Iterator[str]:
    fields = ("number", "found", "tail", "silent", "cycles", "missed")
    state = {name: getattr(heard, name) for name in fields if getattr(heard, name)}
    pauses = [heard.pause(seconds) for seconds in (1.0, 10.0, 400.0)]
    asks = heard.position.since | ({"follow": "true"} if some(rng, 0.2) else heard.query())
    yield f"  {line(state)} {heard.lane.name} {line(pauses)} {line(asks)}"
    read = plain(heard.training) or {}
    known = "; ".join(changes(shown, read))
    shown.clear()
    shown.update(copy.deepcopy(read))
    yield f"  {known or 'the same'}"


def whole_training_cases(seeds: Iterable[int]) -> Iterator[Case]:
    """Put together what several sub-jobs say."""
    for seed in seeds:
        rng = random.Random(f"voices {seed}")
        rows = []
        for _ in range(6):
            voices = [
                SubJobProgress(
                    group=rng.choice(("g0", "g0", "g1")),
                    attempt=rng.choice((0, 1)),
                    training=_training(rng) if some(rng, 0.85) else None,
                )
                for _ in range(rng.choice((0, 1, 2, 3, 4)))
            ]
            rows.extend(line(each) for each in voices)
            rows.append(f"  together {line(combined(voices))}")
        yield f"programs {seed}", rows


def _training(rng: random.Random) -> JobTraining:
    step = rng.choice((0, 10, 50))
    started = NOW - timedelta(seconds=rng.choice((100, 101, 500)))
    saved = rng.choice((None, 0, 5, 9))
    return JobTraining(
        step=step + rng.choice((0, 40)),
        updated=NOW - timedelta(seconds=rng.choice((0, 1, 20))),
        start_step=step,
        started=started,
        saved_step=None if saved is None else step + saved,
        saved=None if saved is None else started + timedelta(seconds=saved),
        attempt=rng.choice((0, 1)),
        steps=rng.choice((None, 1000, 2000)),
        steps_per_second=rng.choice((None, 0.5, 2.0)),
        metrics={"loss": "0.5"} if some(rng, 0.3) else {},
        reported=some(rng, 0.85),
    )


def goodput_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"goodput {seed}", list(_looks(random.Random(f"goodput {seed}")))


PHASES: Final = (
    *(Phase.RUNNING,) * 8, *(Phase.RESTARTING,) * 4, *(Phase.DEGRADED,) * 3, Phase.STARTING,
    Phase.QUEUED, Phase.PENDING, Phase.SUSPENDED, Phase.SUSPENDED,
)  # fmt: skip
ENDS: Final = (Phase.COMPLETED, Phase.COMPLETED, Phase.FAILED)
REASONS: Final = (
    Reason.JOBS_RUNNING, Reason.INSUFFICIENT_CAPACITY, Reason.WAITING_FOR_QUEUE, Reason.QUORUM_MET,
    Reason.WAITING_FOR_DEPENDENCY, Reason.GANG_BACK_OFF, Reason.EXCEEDS_QUEUE,
)  # fmt: skip


def _looks(rng: random.Random) -> Iterator[str]:
    now = NOW
    created = now - timedelta(seconds=rng.choice((0, 5)))
    account: GoodputAccount | None = None
    work: JobTraining | None = None
    shown: Object = {}
    phase, reason = Phase.PENDING, Reason.INSUFFICIENT_CAPACITY
    for number in range(LOOKS):
        if some(rng, 0.5):
            phase = rng.choice(PHASES if number < LOOKS - 3 else ENDS)
            reason = rng.choice(REASONS)
        before, work = work, _worked(rng, work, now)
        moment = Moment(
            now=now,
            created=created,
            started=now - timedelta(seconds=2) if some(rng, 0.3) else None,
            phase=phase,
            reason=reason,
            share=rng.choice((0.0, 0.5, 1 / 3)) if phase is Phase.DEGRADED else 0.0,
            stopped_by=rng.choice((None, None, None, *TimeUse)) if some(rng, 0.4) else None,
            before=before,
            work=work,
            steps=rng.choice((None, 100)),
        )
        account = advance(account or begin(moment), moment)
        told = account_object(account, now=now)
        read = parse_account(told)
        later = now + timedelta(seconds=7)
        bare = line(replace(moment, before=None, work=None, created=created))
        yield f"{bare} {_short(work)}"
        differs = "; ".join(changes(shown, told))
        yield f"  {differs or 'the same'}, then {ratio(account, later):.4f} {read is not None}"
        shown = told
        if account.state is None:
            yield f"  finished {line(account_object(finish(account, work, 100), now=later))}"
            return
        if read is not None and some(rng, 0.5):
            account = read
        now += timedelta(seconds=rng.choice((0.0, 0.25, 1.0, 30.0, 600.0)))


def _short(work: JobTraining | None) -> str:
    if work is None:
        return "no word"
    kept = "" if work.saved is None else f" saved {work.saved_step} at {work.saved:%T.%f}"
    began = f"from {work.start_step} at {work.started:%T.%f}"
    return f"step {work.step} at {work.updated:%T.%f} {began}{kept}"


def _worked(rng: random.Random, work: JobTraining | None, now: datetime) -> JobTraining | None:
    if work is None:
        if some(rng, 0.6):
            return None
        return replace(
            _training(rng), updated=now, started=now - timedelta(seconds=3), reported=True
        )
    match rng.randrange(6):
        case 0 | 1:
            return replace(work, step=work.step + rng.choice((1, 30)), updated=now)
        case 2:
            step = work.step - rng.choice((0, 0, 2, 5, 30))
            began = now - timedelta(seconds=rng.choice((0.0, 0.2, 10.0)))
            began = rng.choice((began, work.updated))
            return replace(
                work, step=step + 2, start_step=step, started=began, updated=now,
                saved_step=rng.choice((None, step)), saved=rng.choice((None, began)),
            )  # fmt: skip
        case 3:
            saved = now - timedelta(seconds=rng.choice((0.0, 0.5, 20.0)))
            return replace(work, saved_step=work.step, saved=saved)
    return work
