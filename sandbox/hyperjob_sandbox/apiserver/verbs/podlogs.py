"""What the log of a container that never runs would say: made from the times in the pod's status.

Pure: the same pod at the same time has the same log, and a log only ever grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors

_STEP = timedelta(seconds=1)
_STEPS = 10_000

Entry = tuple[datetime, str]


@dataclass(frozen=True, slots=True)
class Options:
    """Which entries are printed, and how."""

    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], now: datetime) -> Self:
        """Read the query of a request for a log; 400 for what is no number."""
        tail, since = _number(query, "tailLines"), _number(query, "sinceSeconds")
        return cls(
            tail=tail,
            since=None if since is None else now - timedelta(seconds=since),
            timestamps=query.get("timestamps", "") in ("true", "1"),
        )

    @property
    def rest(self) -> "Options":
        """Give the options for what comes later, of which nothing is cut off."""
        return replace(self, tail=None, since=None)


def container_of(pod: Object, wanted: str) -> str:
    """Name the container that is asked for; 400 when it is none, or one of several is meant."""
    name = pod["metadata"]["name"]
    spec = pod.get("spec") or {}
    names = [str(item["name"]) for item in spec.get("containers") or ()]
    if wanted and wanted not in names:
        raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(names) != 1:
        raise errors.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    return wanted or names[0]


def entries(pod: Object, container: str, now: datetime, *, previous: bool = False) -> list[Entry]:
    """List a container's log so far; 400 when it has not started, or not twice."""
    status = _status(pod, container)
    state = status.get("state") or {}
    last = (status.get("lastState") or {}).get("terminated")
    name = pod["metadata"]["name"]
    if previous:
        if not last:
            raise errors.bad_request(
                f'previous terminated container "{container}" in pod "{name}" not found'
            )
        return _run(pod, last, now)
    run = state.get("running") or state.get("terminated") or last
    if not run:
        why = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise errors.bad_request(
            f'container "{container}" in pod "{name}" is waiting to start: {why}'
        )
    return _run(pod, run, now)


def has_ended(pod: Object, container: str) -> bool:
    """Tell whether a container's log grows no more."""
    return "terminated" in (_status(pod, container).get("state") or {})


def restarts(pod: Object, container: str) -> int:
    """Count the runs of a container before the present one."""
    return int(_status(pod, container).get("restartCount") or 0)


def text(found: Sequence[Entry], options: Options) -> bytes:
    """Print entries."""
    chosen = [each for each in found if options.since is None or each[0] >= options.since]
    if options.tail is not None:
        chosen = chosen[max(0, len(chosen) - options.tail) :]
    return "".join(_line(each, timestamps=options.timestamps) for each in chosen).encode()


def _run(pod: Object, run: Object, now: datetime) -> list[Entry]:
    """List what one run of a container says: its start, a step each second, its end."""
    started = _time(run.get("startedAt")) or now
    finished = _time(run.get("finishedAt"))
    node = (pod.get("spec") or {}).get("nodeName") or "no node"
    found: list[Entry] = [(started, f"started on {node} (simulated)")]
    end = finished or now
    steps = min(max(0, int((end - started) / _STEP)), _STEPS)
    found += [(started + _STEP * number, f"step {number}") for number in range(1, steps + 1)]
    if finished is not None:
        found.append((finished, f"ended with exit code {run.get('exitCode', 0)}"))
    return found


def _status(pod: Object, container: str) -> Object:
    told: list[Object] = (pod.get("status") or {}).get("containerStatuses") or []
    return next((item for item in told if item.get("name") == container), {})


def _line(entry: Entry, *, timestamps: bool) -> str:
    moment, said = entry
    return f"{moment.strftime('%Y-%m-%dT%H:%M:%S.%f000Z')} {said}\n" if timestamps else f"{said}\n"


def _time(value: object) -> datetime | None:
    return datetime.fromisoformat(str(value)) if value else None


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit()):
        raise errors.bad_request(f"{name} must be a number, not {value!r}")
    return int(value)
