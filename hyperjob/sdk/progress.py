"""Report the progress of a training: one JSON line on standard output, at most one a second.

This file needs only Python's standard library, 3.8 or later: import it, or copy it into a program.

    from hyperjob.sdk import progress

    progress(step=1200, steps=5000, saved=1000, loss=2.1)

A process that calls `progress` also watches itself: when its steps stop to come, it prints what its
threads do, and the controller compares the processes of all clusters.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import linecache
import math
import multiprocessing.util
import operator
import os
import re
import select
import signal
import statistics
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from typing import Any, SupportsFloat, SupportsIndex

_SECONDS = 1.0
_METRICS = 16
_last: dict[str, Any] = {"time": 0.0, "saved": None, "waited": None, "since": 0.0, "url": None}
_samples = [0, 0]  # of the main thread since the last line: all, and those in a function of WAITS
_SAMPLE_SECONDS = 0.2
_LEAST_SAMPLES = 4
WAITS = frozenset(
    {
        "_engine_run_backward",
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
        "all_to_all_single", "allgather", "allreduce", "barrier", "broadcast",
        "broadcast_object_list", "monitored_barrier", "process_allgather", "reduce_scatter",
        "reduce_scatter_tensor", "sync_global_devices", "wait_at_barrier",
    }
)  # fmt: skip

_LEAST_SECONDS = 20.0
_FIRST_SECONDS = 600.0
_PATIENCE = 3.0
_LONGEST = 1.5
_INTERVALS = 32
_USUAL = 15
_RECENT = 5
_REPORTS = (1.0, 1.5, 3.0, 6.0)
_THREADS = 8
_FRAMES = 12
_FILES = 64
_TEXT = 60
_PIPE_BYTES = 1 << 16
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)")
_RANK = ("RANK", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK")
_WORLD = ("WORLD_SIZE", "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE")


def progress(
    *,
    step: int | None = None,
    steps: int | None = None,
    saved: int | None = None,
    phase: str | None = None,
    url: str | None = None,
    **metrics: SupportsFloat,
) -> bool:
    """Print one progress line; return whether one was printed.

    The training has finished `step` of `steps`, and `saved` is the step of the last complete
    checkpoint. Other keywords are at most 16 metrics: numbers, also those of numpy and torch; the
    line leaves out a metric that is not finite. A call within a second after the last line prints
    nothing, unless it reports the last step or a new checkpoint; the line of the last such call
    follows two seconds later, and before a phase and the end of the process. Call this function for
    the first time before the first step, with the step from which the training resumes. Each
    process may call it: where a launcher sets LOCAL_RANK, only process 0 of a pod prints progress.

    A line also has the part of the time in which the main thread was in a function that waits for
    other processes, such as the all-reduce of torch; where `waiting` is used, its part. The other
    processes of a pod print that part alone, while their steps take twice as long as before.

    After 20 seconds without a new step, or three times the median time of a step if that is more,
    the process prints the stacks of its threads; the signal SIGUSR1 causes that at any time.
    `phase` names what the program does instead of steps, such as "load", "evaluate", "save" or
    "compile": no step is expected until the next call with a step. Its line has no other keyword.
    `url` is the page of this run in a tracker; later lines have it too.
    """
    _last["url"] = url or _last["url"]
    step, steps, saved = _step("step", step), _step("steps", steps), _step("saved", saved)
    numbers = _numbers(metrics)
    _watchdog.steps(None if phase is not None else step)
    if step is None and phase is None:
        return False
    if not _prints():
        if _watchdog.slow:
            _last["report"] = {}
        else:
            _measure_anew()  # its first line is about its slow steps alone
        return False
    if phase is None:
        report = {"step": step, "steps": steps, "saved": saved, "metrics": numbers or None}
        report["url"] = _last["url"]
        _last["report"] = report
        new = saved is not None and saved != _last["saved"]
        if time.monotonic() - _last["time"] < _SECONDS and not new and step != steps:
            return False
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it must not end a training
        sys.stdout.flush()
    printed = _print_last()
    if phase is not None:
        _print({"phase": str(phase)[:_TEXT]})
    return printed or phase is not None


def _prints() -> bool:
    """Return whether this process prints progress: one of each pod does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _print_last() -> bool:
    """Print the line of the last call; return False if that was printed before."""
    report = _last.pop("report", None)  # at once: the thread prints what waits for too long
    if report is None:
        return False
    now = time.monotonic()
    if _last["waited"] is not None and now > _last["since"]:
        report["waited"] = round(min(1.0, _last["waited"] / (now - _last["since"])), 3)
    elif _samples[0] >= _LEAST_SAMPLES:
        report["sampled"] = round(_samples[1] / _samples[0], 3)
    _measure_anew()
    if not _prints():
        report["rank"] = _first_number(_RANK)
    saved = _last["saved"] if report.get("saved") is None else report["saved"]
    _last.update(time=now, saved=saved)
    _print({key: value for key, value in report.items() if value is not None})
    return True


def _measure_anew() -> None:
    """Begin to measure how long this process waits for others."""
    _samples[:] = 0, 0
    _last["since"] = time.monotonic()
    if _last["waited"] is not None:
        _last["waited"] = 0.0


class ProgressCallback:
    """Calls `progress` for the Trainer of Lightning or of transformers: callbacks=[this()].

    It needs neither: a hook that it lacks does nothing.
    """

    state_key = "hyperjob"

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:  # noqa: ANN401
        """Report a step of Lightning."""
        most = trainer.estimated_stepping_batches
        steps = int(most) if 0 < most < math.inf else None
        progress(step=trainer.global_step, steps=steps, **_scalars(trainer.callback_metrics))

    def on_validation_start(self, trainer: Any, *_: Any) -> None:  # noqa: ANN401
        """Announce an evaluation of Lightning."""
        progress(phase="evaluate")

    def on_exception(self, trainer: Any, *_: Any) -> None:  # noqa: ANN401
        """Name the process that Lightning started and lost, by its words, which may come too late.

        The first process ends as soon as it cannot reach the lost one.
        """
        launcher = getattr(getattr(trainer, "strategy", None), "launcher", None)
        children = dict(enumerate(getattr(launcher, "procs", ()), 1))
        end = time.monotonic() + _SECONDS
        while children and time.monotonic() < end and not any(c.poll() for c in children.values()):
            time.sleep(0.05)
        for rank, child in children.items():
            if child.poll():
                text = f"Child process with PID {child.pid} terminated with code {child.returncode}"
                sys.stderr.write(f"[rank: {trainer.global_rank + rank}] {text}.\n")

    def on_step_end(self, _: Any, state: Any, *__: Any, **___: Any) -> None:  # noqa: ANN401
        """Report a step of transformers."""
        last: dict[str, Any] = next(
            (each for each in reversed(state.log_history) if "loss" in each), {}
        )
        progress(step=state.global_step, steps=state.max_steps, **_scalars(last))

    def on_save(self, _: Any, state: Any, *__: Any, **___: Any) -> None:  # noqa: ANN401
        """Report a checkpoint of transformers."""
        progress(step=state.global_step, steps=state.max_steps, saved=state.global_step)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: {} if name == "state_dict" else None


def _scalars(values: dict[str, Any]) -> dict[str, Any]:
    """Return the first numbers of a dictionary by names that `progress` takes."""
    known = frozenset({"step", "steps", "saved", "phase", "url", "epoch"})
    found: dict[str, Any] = {}
    for name, value in values.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            if name not in known and len(found) < _METRICS:
                found[name] = float(value)
    return found


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Measure the time in which this process waits for others, such as in an all-reduce.

    The progress lines have its part of the time: the process that waits least is the one for which
    the others wait.
    """
    began = time.monotonic()
    _last["since"] = _last["since"] or began
    try:
        yield
    finally:
        _last["waited"] = (_last["waited"] or 0.0) + time.monotonic() - began


def _step(name: str, value: SupportsIndex | None) -> int | None:
    """Return a step as a whole number; raise TypeError or ValueError."""
    if value is None:
        return None
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"progress: {name}={value!r} is no whole number: use int()") from None
    if found < 0:
        raise ValueError(f"progress: {name}={value!r} is less than 0")
    return found


def _numbers(metrics: dict[str, SupportsFloat]) -> dict[str, float]:
    """Return the metrics that a progress line can have; raise TypeError or ValueError."""
    if len(metrics) > _METRICS:
        raise ValueError(f"progress: {len(metrics)} metrics, and a line has at most {_METRICS}")
    found = {}
    for name, value in metrics.items():
        if isinstance(value, str):
            raise TypeError(f"progress: {name}={value!r} is a text: use float()")
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):  # the last one is torch's
            kind = type(value).__name__
            raise TypeError(f"progress: {name} is a {kind}, and no single number") from None
        if math.isfinite(number):  # JSON has no other numbers
            found[name] = int(number) if number.is_integer() and abs(number) < 1e15 else number
    return found


def _print(report: dict[str, Any]) -> None:
    line = json.dumps({"hyperjob": report}) + "\n"
    with contextlib.suppress(OSError):
        # A single write keeps the lines of processes that share a pipe separate.
        os.write(_output(), line.encode())


def _output() -> int:
    """Return the descriptor of the container's log, also if the program has replaced sys.stdout."""
    try:
        return sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return 1


class _Watchdog:
    """Prints the stacks of this process when its steps stop to come, and a line that waits.

    `faulthandler` writes stacks without Python's lock: a main thread that hangs in native code is
    seen too. The thread takes no lock that a hanging thread may hold, such as that of `sys.stdout`.
    """

    def __init__(self) -> None:
        self._pid = 0  # the process whose thread runs; a fork has none
        self._times: list[float] = []  # the seconds between the last steps
        self._pace = math.inf  # their least median so far
        self._step: int | None = None
        self._since = 0.0  # when that step began; 0.0: no step is expected
        self._reports = 0  # of that step
        self._due: float | None = None  # of the next report; `steps` and the thread set it
        self._read = self._write = -1
        self._sampled = (-1, -1)  # a pipe of its own: a signal writes into the other at any time
        self._sources: dict[str, list[str]] = {}

    def steps(self, step: int | None) -> None:
        """Record a step; None: no step is expected now."""
        now = time.monotonic()
        self._start()
        if step is None:
            self._due, self._since = None, 0.0
            return
        if self._since and step != self._step:
            self._times = [*self._times, now - self._since][-_INTERVALS:]
            if len(self._times) >= _USUAL:
                self._pace = min(self._pace, statistics.median(self._times[-_USUAL:]))
        if step != self._step or not self._since:
            self._step, self._since, self._reports = step, now, 0
        self._due = self._next(self._since)

    @property
    def slow(self) -> bool:
        """Return whether the last steps took more than twice as long as usual."""
        return bool(self._times) and statistics.median(self._times[-_RECENT:]) > 2 * self._pace

    def _next(self, begin: float) -> float | None:
        """Return when the next report is due; three steps show the pace of a program.

        A pause that was longer than usual before may come again.
        """
        if self._reports == len(_REPORTS):
            return None
        patience = _FIRST_SECONDS
        if len(self._times) >= 3:
            usual = _PATIENCE * statistics.median(self._times)
            patience = max(_LEAST_SECONDS, usual, _LONGEST * max(self._times))
        return begin + patience * _REPORTS[self._reports]

    def _start(self) -> None:
        """Start the thread once in each process that reports."""
        if self._pid == os.getpid() or not hasattr(signal, "SIGUSR1"):
            return
        self._pid = os.getpid()
        _last.pop("report", None)  # the parent's
        # Unlike atexit, it runs at the end of a process that multiprocessing has forked.
        multiprocessing.util.Finalize(None, _print_last, exitpriority=0)
        self._sources = _own_sources()
        self._read, self._write = os.pipe()
        self._sampled = os.pipe()
        for end in (self._write, *self._sampled):
            os.set_blocking(end, False)  # a stack that is too long is cut
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            faulthandler.register(signal.SIGUSR1, file=self._write, all_threads=True)
            os.register_at_fork(after_in_child=self._leave)
        threading.Thread(target=self._run, name="hyperjob-watchdog", daemon=True).start()

    def _leave(self) -> None:
        """Keep the workers that this process forks away from its pipe."""
        faulthandler.unregister(signal.SIGUSR1)

    def _run(self) -> None:
        while True:
            due = self._due
            left = 1.0 if due is None else due - time.monotonic()
            longest = 1.0
            if self._since and _last["waited"] is None:
                self._sample()
                longest = _SAMPLE_SECONDS
            if select.select([self._read], [], [], max(0.0, min(longest, left)))[0]:
                self._report(self._written().decode(errors="replace"))
            elif due is not None and left <= 0 and self._due == due:
                self._reports += 1
                self._due = self._next(self._since)
                faulthandler.dump_traceback(file=self._write, all_threads=True)
            if time.monotonic() - _last["time"] >= 2 * _SECONDS:
                _print_last()

    def _sample(self) -> None:
        """Look whether the main thread waits for other processes, as far as its functions show."""
        # A walk over the frames of a thread that runs on has ended a process: Python 3.11 collects
        # garbage between two of them. faulthandler reads all of them at once, and makes none.
        faulthandler.dump_traceback(file=self._sampled[1], all_threads=True)
        text = b""
        with contextlib.suppress(BlockingIOError):
            while len(text) < _PIPE_BYTES:
                text += os.read(self._sampled[0], _PIPE_BYTES)
        found = _stacks(text.decode(errors="replace")).get(threading.main_thread().ident or 0)
        if found:
            waits = any(function.lower() in WAITS for function, _, _ in found)
            _samples[:] = _samples[0] + 1, _samples[1] + waits

    def _written(self) -> bytes:
        """Return the text of faulthandler, which it writes in many small parts."""
        text = b""
        while len(text) < _PIPE_BYTES and select.select([self._read], [], [], 0.1)[0]:
            text += os.read(self._read, _PIPE_BYTES)
        return text

    def _report(self, text: str) -> None:
        stacks: dict[str, Any] = {"pid": self._pid, "threads": _threads(text, self._sources)}
        if self._since:
            stacks["seconds"] = round(time.monotonic() - self._since, 1)
        known = {"step": self._step, "rank": _first_number(_RANK), "of": _first_number(_WORLD)}
        stacks.update((key, value) for key, value in known.items() if value is not None)
        _print({"stacks": stacks})


def _first_number(names: tuple[str, ...]) -> int | None:
    found = (os.environ[name] for name in names if os.environ.get(name, "").isdigit())
    return next(map(int, found), None)


def _own_sources() -> dict[str, list[str]]:
    """Return the lines of the program's files by path; a hang may keep them from being read."""
    files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    own = [
        file
        for file in dict.fromkeys(files)
        if file.endswith(".py") and "-packages" not in file and not file.startswith(libraries)
    ]
    return {file: linecache.getlines(file) for file in own[:_FILES]}


def _threads(text: str, sources: dict[str, list[str]]) -> list[list[list[Any]]]:
    """Return the stacks in the text of faulthandler: [function, file, line], the last call first.

    The main thread comes first, and the watchdog's own thread is left out. A call in a file of
    `sources` has the text of its line too.
    """
    found = _stacks(text)
    found.pop(threading.get_ident(), None)
    order = sorted(found, key=lambda ident: ident != threading.main_thread().ident)
    threads: list[list[list[Any]]] = []
    for ident in order[:_THREADS]:
        threads.append([])
        for function, file, number in found[ident][:_FRAMES]:
            line = "".join(sources.get(file, ())[number - 1 : number]).strip()[:_TEXT]
            frame = [function[-_TEXT:], file[-_TEXT:], number]
            threads[-1].append([*frame, line] if line else frame)
    return threads


def _stacks(text: str) -> dict[int, list[tuple[str, str, int]]]:
    """Return function, file and line of each call in the text of faulthandler, by thread."""
    found: dict[int, list[tuple[str, str, int]]] = {}
    frames: list[tuple[str, str, int]] = []
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            frames = found.setdefault(int(thread[1], 16), [])
        elif frame := _FRAME.fullmatch(line):
            frames.append((frame[3], frame[1], int(frame[2])))
    return found


_watchdog = _Watchdog()
