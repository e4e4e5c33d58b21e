"""Read workloads: HyperJob's CSV, and the public formats of GPU traces.

The project contains no traces; each reader parses a published file: Philly's `cluster_job_log`
(JSON), Helios' `cluster_log.csv`, Alibaba's `pai_task_table.csv` of 2020 (which has no header) and
`openb_pod_list_*.csv` of 2023.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.wire import decoded
from hyperjob_sandbox.simulate.jobs import JobNumbers, name_of
from hyperjob_sandbox.simulate.workload import WorkloadError

_TASK_TABLE: Final = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
_NEEDED: Final = ("submit", "duration", "gpus")
_OURS: Final = frozenset({*_NEEDED, "name", "queue", "namespace", "priority", "estimate"})

Row = Mapping[str, str]


def read(path: Path, *, form: str = "auto") -> list[JobNumbers]:
    """Return the jobs of a file, sorted by arrival, the first at 0; raises WorkloadError.

    `form` is `auto`, or one of FORMS.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    chosen = _recognised(text) if form == "auto" else form
    try:
        jobs = list(FORMS[chosen](text))
    except (KeyError, ValueError, TypeError) as error:
        raise WorkloadError(f"{path}: {_error_text(error)}") from None
    if not jobs:
        raise WorkloadError(f"{path}: contains no job with an accelerator")
    return _from_zero(jobs) if chosen != "csv" else sorted(jobs, key=_by_arrival)


def _by_arrival(job: JobNumbers) -> tuple[float, str]:
    return job.arrival, job.name


def _error_text(error: Exception) -> str:
    return f"column {error} is missing" if isinstance(error, KeyError) else str(error)


def _recognised(text: str) -> str:
    """Return the format of a text by its first line."""
    first = text.lstrip().split("\n", 1)[0]
    if first.startswith(("[", "{")):
        return "philly"
    columns = set(first.strip().split(","))
    if {"gpu_num", "submit_time"} <= columns:
        return "helios"
    if {"gpu_milli", "creation_time"} <= columns:
        return "alibaba2023"
    if len(first.split(",")) == len(_TASK_TABLE) and not columns & _OURS:
        return "alibaba2020"
    return "csv"


def _from_zero(jobs: Iterable[JobNumbers]) -> list[JobNumbers]:
    """Return the jobs sorted by arrival, with the first at 0, and with unique names."""
    found = sorted(jobs, key=_by_arrival)
    first, digits = found[0].arrival, len(str(len(found)))
    return [
        JobNumbers(
            name=f"{name_of(job.name)}-{number:0{digits}d}",
            arrival=job.arrival - first,
            duration=job.duration,
            gpus=job.gpus,
            queue=name_of(job.queue),
        )
        for number, job in enumerate(found, start=1)
    ]


def _own_csv(text: str) -> Iterator[JobNumbers]:
    """Parse HyperJob's CSV: submit and duration in seconds or as 1h30m, gpus, optional columns."""
    seen: set[str] = set()
    for line, row in _rows(text, _NEEDED, allowed=_OURS):
        name = row.get("name") or f"job-{line - 1}"
        if name in seen:
            raise ValueError(f"line {line}: duplicate name {name!r}")
        seen.add(name)
        try:
            yield JobNumbers(
                name=name,
                arrival=_seconds(row["submit"]),
                duration=_seconds(row["duration"]),
                gpus=_accelerators(row["gpus"]),
                queue=row.get("queue") or "default",
                namespace=row.get("namespace") or "default",
                priority=row.get("priority") or "",
                estimate=_seconds(row["estimate"]) if row.get("estimate") else None,
            )
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None


def _helios(text: str) -> Iterator[JobNumbers]:
    for _, row in _rows(text, ("job_id", "vc", "gpu_num", "submit_time", "duration")):
        gpus, duration = int(row["gpu_num"]), float(row["duration"])
        if gpus and duration > 0:
            yield JobNumbers(
                name=f"job-{row['job_id']}",
                arrival=_moment(row["submit_time"]),
                duration=duration,
                gpus=gpus,
                queue=row["vc"],
            )


def _philly(text: str) -> Iterator[JobNumbers]:
    """Yield each job with the accelerators of its last attempt and the duration of all attempts."""
    entries = decoded(text)
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ValueError("the file is JSON, and no list of jobs as in Philly's cluster_job_log")
    for entry in entries:
        seconds, gpus = 0.0, 0
        for attempt in entry.get("attempts") or ():
            begin, end = attempt.get("start_time"), attempt.get("end_time")
            used = sum(len(each.get("gpus") or ()) for each in attempt.get("detail") or ())
            if begin and end and begin != "None" and end != "None":
                seconds += max(0.0, _moment(end) - _moment(begin))
                gpus = used or gpus
        if gpus and seconds > 0:
            yield JobNumbers(
                name=str(entry["jobid"]).removeprefix("application_"),
                arrival=_moment(entry["submitted_time"]),
                duration=seconds,
                gpus=gpus,
                queue=str(entry.get("vc") or "default"),
            )


def _alibaba2020(text: str) -> Iterator[JobNumbers]:
    """Yield each job with all its tasks; a fraction of an accelerator counts as a whole."""
    begins: dict[str, float] = {}
    ends: dict[str, float] = {}
    gpus: dict[str, int] = {}
    headed = text.startswith("job_name")
    for _, row in _rows(text if headed else f"{','.join(_TASK_TABLE)}\n{text}", _TASK_TABLE):
        job, begin, end = row["job_name"], row["start_time"], row["end_time"]
        if not begin or not end or not row["plan_gpu"]:
            continue
        begins[job] = min(begins.get(job, math.inf), float(begin))
        ends[job] = max(ends.get(job, 0.0), float(end))
        each = math.ceil(float(row["plan_gpu"]) / 100)
        gpus[job] = gpus.get(job, 0) + each * int(float(row["inst_num"] or 1))
    for job, number in gpus.items():
        if number and ends[job] > begins[job]:
            yield JobNumbers(
                name=job[:12],
                arrival=begins[job],
                duration=ends[job] - begins[job],
                gpus=number,
            )


def _alibaba2023(text: str) -> Iterator[JobNumbers]:
    """Yield the pods of an `openb` list; a fraction of an accelerator counts as a whole."""
    needed = ("name", "num_gpu", "creation_time", "deletion_time", "scheduled_time")
    for _, row in _rows(text, needed):
        gpus = int(row["num_gpu"] or 0)
        if not gpus or not row["scheduled_time"] or not row["deletion_time"]:
            continue
        duration = float(row["deletion_time"]) - float(row["scheduled_time"])
        if duration > 0:
            yield JobNumbers(
                name=row["name"],
                arrival=float(row["creation_time"]),
                duration=duration,
                gpus=gpus,
                queue=row.get("qos") or "default",
            )


FORMS: Final[Mapping[str, Callable[[str], Iterator[JobNumbers]]]] = {
    "csv": _own_csv,
    "philly": _philly,
    "helios": _helios,
    "alibaba2020": _alibaba2020,
    "alibaba2023": _alibaba2023,
}


def _rows(
    text: str, needed: Sequence[str], *, allowed: frozenset[str] | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield line and values of each row of a CSV; raise ValueError for wrong columns.

    `needed` are the columns that must be there, `allowed` those that may be, None for any.
    """
    reader: Any = csv.DictReader(io.StringIO(text))
    columns = reader.fieldnames or []
    missing = [name for name in needed if name not in columns]
    if missing:
        raise ValueError(f"column {', '.join(missing)} is missing")
    unknown = sorted(set(columns) - allowed) if allowed is not None else []
    if unknown:
        raise ValueError(f"column {', '.join(unknown)} is unknown")
    for row in reader:
        yield reader.line_num, {key: (value or "").strip() for key, value in row.items() if key}


def _seconds(text: str) -> float:
    """Return seconds from a number or a duration such as 1h30m."""
    try:
        found = float(text)
    except ValueError:
        found = nanoseconds(text) / 1e9
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{text!r} is not a time of 0 or more")
    return found


def _accelerators(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(f"{text!r} is not a number of accelerators")
    return number


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
