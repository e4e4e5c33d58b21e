"""What a launcher, such as torchrun or mpirun, writes about the rank that failed first. Pure."""

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.status import ContainerFailure

PEER: Final = re.compile(
    r"ConnectionError|Connection(?:Reset|Aborted|Refused)Error|BrokenPipeError|DistBackendError"
    r"|Connection (?:closed|reset) by peer|NCCL (?:communicator|operation)|Broken pipe"
)
"""How Python, gloo and NCCL say that another process is gone."""
_PREFIX: Final = re.compile(
    r"\[rank(?P<torch>\d{1,6})\]: ?|\[[a-z]\w{0,30}\]: ?"
    r"|\[\d+,(?P<mpi>\d{1,6})\]<std(?:err|out)>: ?|\[(?P<hydra>\d{1,6})\] "
)
"""The rank of a line, as torch, torchrun --tee, Open MPI and MPICH write it."""
_TRACEBACK: Final = "Traceback (most recent call last):"
_CHAINED: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_OF_LAUNCHER: Final = re.compile(
    r"torch\.distributed\.elastic\.|torch\.multiprocessing\.spawn\."
    r"|subprocess\.CalledProcessError|SystemExit|KeyboardInterrupt"
)
_VERDICTS: Final = (
    # torchrun, and accelerate and transformers by it; the first failure is the last entry.
    re.compile(
        r"Root Cause \(first observed failure\):(?:\n.{0,400}){0,4}?"
        r"\n +rank {1,9}: (?P<rank>\d{1,6}).{0,99}\n +exitcode {1,9}: (?P<code>-?\d{1,4})"
    ),
    re.compile(r"\[rank: (?P<rank>\d{1,6})\] Child process .{0,99} code (?P<code>-?\d{1,4})"),
    # Open MPI 4 and 5.
    re.compile(
        r"Process name: \[.{1,200},(?P<rank>\d{1,6})\]\n? {0,9}Exit code: {1,9}(?P<code>\d{1,3})"
    ),
    re.compile(r"process rank (?P<rank>\d{1,6}) .{0,400} on signal (?P<signal>\d{1,2})"),
    # MPICH and Intel MPI.
    re.compile(
        r"= {1,9}RANK (?P<rank>\d{1,6}) PID .{0,400}\n"
        r"= {1,9}(?:EXIT CODE: (?P<code>\d{1,3})|KILLED BY SIGNAL: (?P<signal>\d{1,2}))"
    ),
    re.compile(r"process (?P<rank>\d{1,6}) terminated with exit code (?P<code>\d{1,3})"),
    re.compile(r"exits with return code = (?P<code>-?\d{1,4})"),  # deepspeed
    re.compile(r"CalledProcessError: .{0,4000} non-zero exit status (?P<code>\d{1,3})"),
    re.compile(r"CalledProcessError: .{0,4000} died with <Signals\.\w{1,20}: (?P<signal>\d{1,2})>"),
)
_NO_CAUSE: Final = "failed first, and the launcher's last lines have no exception of it"
_LAUNCHER_LIMIT: Final = 256 * 1024


def lost_a_peer(failure: ContainerFailure) -> bool:
    """Return whether the last line of the log says that a connection to another rank ended."""
    return PEER.search(failure.last_line) is not None


@dataclass(slots=True)
class _Traceback:
    """One traceback; `start` is the number of its first line, `rank` that of its prefix."""

    start: int
    rank: int | None
    lines: list[str]

    @property
    def last(self) -> str:
        """Return the line with the exception."""
        return self.lines[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What the launcher says about the rank that failed first; `code` is as a shell reports it."""

    rank: int | None
    code: int


def is_of_launcher(failure: ContainerFailure) -> bool:
    """Return whether a message is about a launcher, or a lost peer: the log may have the cause."""
    return lost_a_peer(failure) or failure.in_log


def diagnosed(failure: ContainerFailure, log: str) -> ContainerFailure:
    """Return the failure with the cause that a log names: that of the rank that failed first.

    A log that names none changes nothing. Of ranks the first one counts, and of the tracebacks of
    one program the last: it may have handled the others.
    """
    lines = _stripped(log[-_LAUNCHER_LIMIT:])
    verdict = _verdict("\n".join(text for _, text in lines))
    found = [each for each in _tracebacks(lines) if not _OF_LAUNCHER.match(each.last)]
    causes = [each for each in found if not PEER.search(each.last)]
    rank = verdict.rank if verdict is not None else None
    first = (
        next((each for each in causes if each.rank is not None and each.rank == rank), None)
        or next((each for each in causes if each.rank is not None), None)
        or next(reversed(causes), None)
    )
    if verdict is not None:
        failure = replace(failure, exit_code=verdict.code)
    known = first.rank if first is not None and first.rank is not None else rank
    if known is not None:
        failure = replace(failure, rank=known)
    if first is None and verdict is not None:
        which = "a process" if rank is None else f"rank {rank}"
        return replace(failure, message=f"{which} {_NO_CAUSE}", in_log=True)
    first = first or next(iter(found), None)
    if first is None or failure.last_line.strip() == first.last.strip():
        return failure
    return replace(failure, message="\n".join(first.lines))


def _stripped(log: str) -> list[tuple[int | None, str]]:
    """Return the lines without their prefixes, each with the rank that these name."""
    found = []
    for text in log.splitlines():
        rank = None
        while (prefix := _PREFIX.match(text)) is not None:
            numbers = [each for each in prefix.groups() if each is not None]
            rank = int(numbers[0]) if numbers else rank
            text = text[prefix.end() :]
        found.append((rank, text))
    return found


def _verdict(text: str) -> _Verdict | None:
    for form in _VERDICTS:
        for found in form.finditer(text):
            fields = found.groupdict()
            code = int(fields.get("code") or 0)
            number = int(fields.get("signal") or max(0, -code))
            if number in set(signal.Signals) or code > 0:
                rank = fields.get("rank")
                return _Verdict(
                    rank=None if rank is None else int(rank),
                    code=128 + number if number else min(code, 255),
                )
    return None


def _tracebacks(lines: Iterable[tuple[int | None, str]]) -> list[_Traceback]:
    """Return the complete tracebacks in the order of their begin; of a chain the last one."""
    complete: list[_Traceback] = []
    open_: dict[int | None, _Traceback] = {}
    begins: dict[int | None, int] = {}  # of a chain that goes on
    for number, (rank, text) in enumerate(lines):
        if text.startswith(_TRACEBACK):
            open_[rank] = _Traceback(begins.pop(rank, number), rank, [text])
        elif rank in open_:
            open_[rank].lines.append(text)
            if text and not text[0].isspace():
                complete.append(open_.pop(rank))
        elif text in _CHAINED:
            before = next((each for each in reversed(complete) if each.rank == rank), None)
            if before is not None:
                complete.remove(before)
                begins[rank] = before.start
    return sorted(complete, key=lambda each: each.start)
