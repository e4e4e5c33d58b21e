"""What the processes of a training do that makes no steps, from the stacks that they print. Pure.

`hyperjob.sdk.progress` prints the stacks of a process whose steps stop to come. A tenant writes the
log: a line may contain anything, and a stack that is not one is ignored.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Final, TypeAlias

from hyperjob_core.api.wire import at, decoded, integer, mapping, rfc3339, string
from hyperjob_core.text import human_duration, listed, printable, shortened

_MARK: Final = b'"stacks"'
_OBJECT: Final = re.compile(rb'\{"hyperjob": ?\{"stacks":')
_LIBRARIES: Final = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ")
_NAME: Final = 60
_FRAMES: Final = 16
WAITS: Final = frozenset(
    {
        "_engine_run_backward",
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
        "all_to_all_single", "allgather", "allreduce", "barrier", "broadcast",
        "broadcast_object_list", "monitored_barrier", "process_allgather", "reduce_scatter",
        "reduce_scatter_tensor", "sync_global_devices", "wait_at_barrier",
    }
)  # fmt: skip
"""Functions of torch, JAX and MPI in which a rank may wait for the others, in lower case.

They decide only where no place has most of the ranks.
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack.

    `file` is a name without folders: each pod may have the program in a folder of another name.
    `is_own`: it is a file of the program, not of a library. `text` is the line of an own file.
    """

    function: str
    file: str
    line: int
    is_own: bool
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return the function with the name of its file, the number of the line, and its text."""
        text = f" {self.text}" if self.text else ""
        return f"{self.function} ({self.file}:{self.line}{text})"


Place: TypeAlias = tuple[Frame, ...]
"""A call, and the call in the program's own files that led to it."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a sub-job, in its cluster."""

    cluster: str
    name: str
    job: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The stack of a process's main thread, the last call first; `rank` is that of the launcher.

    `world` is the number of ranks.
    """

    pod: Pod
    pid: int
    frames: tuple[Frame, ...]
    rank: int | None = None
    world: int | None = None

    @property
    def cluster(self) -> str:
        """Return the cluster of the process."""
        return self.pod.cluster

    @property
    def place(self) -> Place:
        """Return where the process is: its last call, and its last call in the program's files."""
        last = next((each for each in self.frames if _is_wait(each)), self.frames[0])
        after = self.frames[self.frames.index(last) :]
        own = next((frame for frame in after if frame.is_own), last)
        return (last,) if own is last else (last, own)

    @property
    def waits_for_others(self) -> bool:
        """Return whether the process is in a function in which ranks wait for each other."""
        return any(map(_is_wait, self.frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The last stack of each process, and the pods whose log was read and has none."""

    stacks: tuple[Stack, ...] = ()
    silent: tuple[Pod, ...] = ()

    @property
    def world(self) -> int | None:
        """Return the number of ranks; None if the processes do not agree about it."""
        worlds = {each.world for each in self.stacks}
        return worlds.pop() if len(worlds) == 1 else None

    @property
    def ranked(self) -> bool:
        """Return whether every process has a rank."""
        return all(each.rank is not None for each in self.stacks)

    def groups(self) -> list[tuple[Place, list[Stack]]]:
        """Return the processes by place: most of them first; of equal ones those that wait."""
        places: dict[Place, list[Stack]] = {}
        for each in self.stacks:
            places.setdefault(each.place, []).append(each)
        return sorted(
            places.items(),
            key=lambda item: (-len(item[1]), not item[1][0].waits_for_others, str(item[0])),
        )

    def missing(self) -> list[int]:
        """Return the ranks without a stack: their processes are stopped, gone or not watched."""
        if not self.stacks or not self.ranked or not self.world:
            return []
        ranks = {each.rank for each in self.stacks}
        return [rank for rank in range(min(self.world, 100_000)) if rank not in ranks]

    def suspects(self) -> tuple[Pod, ...]:
        """Return the pods for which the others wait: those elsewhere, and those without a stack.

        What most processes have in common is the wait. Where all are in one place, or in too many,
        no pod is one. Of those elsewhere that wait in another function none is one, where one of
        them does not wait.
        """
        groups = self.groups()
        if not groups:
            return ()
        waiting = groups[0][1]
        elsewhere = [each for _, members in groups[1:] for each in members]
        if not waiting[0].waits_for_others and len(waiting) <= len(elsewhere):
            elsewhere = []
        busy = [each for each in elsewhere if not each.waits_for_others] or elsewhere
        pods = [each.pod for each in busy]
        return tuple(dict.fromkeys([*pods, *self._short_pods(), *self.silent_pods()]))

    def _short_pods(self) -> list[Pod]:
        """Return the pods with fewer stacks than the others, where these are the missing ranks."""
        counts = Counter(each.pod for each in self.stacks)
        most = max(counts.values(), default=0)
        absent = sum(most - number for number in counts.values())
        if absent + most * len(self.silent_pods()) != len(self.missing()):
            return []
        return sorted((pod for pod in counts if counts[pod] < most), key=lambda pod: pod.name)

    def silent_pods(self) -> list[Pod]:
        """Return the pods without a stack, of those tasks whose other pods print them."""
        if self.ranked and self.world and not self.missing():
            return []
        tasks = {_kind(each.pod) for each in self.stacks}
        return [pod for pod in self.silent if _kind(pod) in tasks]


def _kind(pod: Pod) -> tuple[str, str]:
    """Return the replicatedJob and the task of a pod: the name of a vcjob ends by a number."""
    return pod.job.rpartition("-")[0], pod.task


def _is_wait(frame: Frame) -> bool:
    return frame.function.lower() in WAITS


def survey_of(stacks: Iterable[Stack], read: Iterable[Pod] = ()) -> Survey:
    """Return the last stack of each process, and those of the read pods that have none."""
    newest = {(each.pod, each.pid): each for each in stacks}
    printing = {each.pod for each in newest.values()}
    return Survey(
        stacks=tuple(newest.values()), silent=tuple(pod for pod in read if pod not in printing)
    )


def is_stack(line: bytes) -> bool:
    """Return whether a line may be a stack, without parsing it."""
    return _MARK in line


def parse_stack(line: bytes, *, pod: Pod) -> Stack | None:
    """Parse a line of a log; None if it is no stack."""
    start = _OBJECT.search(line)
    if start is None:
        return None
    try:
        document = decoded(line[start.start() : line.rfind(b"}") + 1])
    except ValueError:
        return None
    fields = mapping(at(document, "hyperjob", "stacks"))
    threads = fields.get("threads")
    first = threads[0] if isinstance(threads, list) and threads else None
    frames = tuple(_frames(first if isinstance(first, list) else []))[:_FRAMES]
    if not frames:
        return None
    return Stack(
        pod=pod,
        pid=integer(fields.get("pid")) or 0,
        frames=frames,
        rank=integer(fields.get("rank")),
        world=integer(fields.get("of")),
    )


def _frames(raw: Sequence[object]) -> Iterable[Frame]:
    """Yield the calls of a stack, each [function, file, line, text]; others are left out.

    Only a call in a file of the program may have a text.
    """
    for each in raw:
        if isinstance(each, list) and len(each) in (3, 4):
            function, file, line = each[:3]
            if isinstance(function, str) and isinstance(file, str) and isinstance(line, int):
                is_own = not any(part in file for part in _LIBRARIES)
                text = _clean(string(each[3])) if len(each) > 3 else ""
                yield Frame(_clean(function), _clean(PurePath(file).name), line, is_own, text)


def _clean(text: str) -> str:
    return shortened(printable(text).replace("\n", " "), _NAME)


_SHOWN: Final = 4


def no_steps_text(
    jobs: Sequence[str],
    *,
    since: datetime,
    step: int,
    usual: timedelta | None,
    survey: Survey | None,
) -> str:
    """Return since when programs report no step, and where their processes are.

    They are those of the sub-jobs `jobs`, or without any all that report. `usual` is the time
    between two lines before; None: unknown. `survey` has the stacks.
    """
    pace = f", and one every {_spoken(usual)} before" if usual is not None else ""
    whose = listed(jobs) if jobs else "the program"
    text = f"{whose} has reported no step since {rfc3339(since)} (step {step}){pace}"
    if survey is None:
        return text
    return f"{text}: {comparison(survey) or 'its processes print no stacks'}"


def _spoken(usual: timedelta) -> str:
    seconds = usual.total_seconds()
    return f"{seconds:.2g} s" if seconds < 10 else human_duration(seconds)


def comparison(survey: Survey) -> str:
    """Return in words where the processes are; empty without a stack."""
    groups = survey.groups()
    if not groups:
        return ""
    world, ranked = survey.world, survey.ranked
    unit = "ranks" if ranked else "processes"
    total = world if ranked and world else len(survey.stacks)
    texts = []
    for calls, members in groups[:_SHOWN]:
        place = ", called from ".join(map(str, calls))
        if members is groups[0][1] and len(members) > 1:
            texts.append(f"{len(members)} of {total} {unit} are in {place}")
        else:
            verb = "is" if len(members) == 1 else "are"
            texts.append(f"{_processes_text(members, ranked=ranked)} {verb} in {place}")
    if len(groups) > _SHOWN:
        texts.append(f"the others are in {len(groups) - _SHOWN} more places")
    return "; ".join([*texts, *_silent_texts(survey)])


def _processes_text(members: Sequence[Stack], *, ranked: bool) -> str:
    """Return ranks with their clusters, or pods where processes have no rank."""
    if not ranked:
        return f"pod {listed(sorted({f'{each.cluster}/{each.pod.name}' for each in members}))}"
    ranks = [str(each.rank) for each in sorted(members, key=lambda each: each.rank or 0)]
    clusters = listed(sorted({each.cluster for each in members}))
    return f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks, shown=8)} in {clusters}"


def _silent_texts(survey: Survey) -> list[str]:
    """Return the ranks and the pods without a stack."""
    missing, pods = survey.missing(), survey.silent_pods()
    named = listed([f"{pod.cluster}/{pod.name}" for pod in pods])
    if not missing:
        return [f"no stack from pod {named}"] if pods else []
    ranks = listed([str(rank) for rank in missing], shown=8)
    text = f"no stack from rank{'s' if len(missing) > 1 else ''} {ranks}"
    return [f"{text} (pod {named})" if pods else text]
