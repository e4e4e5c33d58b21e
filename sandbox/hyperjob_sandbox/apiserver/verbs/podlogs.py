"""The log of a container that never runs: made from the times in its pod's status.

The same pod at the same time has the same log, and a log only ever grows.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import timestamp
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_STEP = timedelta(seconds=1)
_STEPS = 10_000
_FOLLOW_SECONDS = 0.5

Entry = tuple[datetime, str]


def log(core: Core, call: Call, *, closing: Callable[[], bool]) -> Reply | Stream:
    """Answer `kubectl logs`, with `follow` until the container's run has ended."""
    info, pod, now = call.info, core.live(call).obj, datetime.now(UTC)
    previous, timestamps = info.flag("previous"), info.flag("timestamps")
    container = container_of(pod, info.query.get("container", ""))
    everything = entries(pod, container, now, previous=previous)
    first = text(chosen(everything, info, now), timestamps=timestamps)
    if previous or not info.flag("follow"):
        return Reply(200, first, "text/plain")

    async def follow() -> AsyncIterator[bytes]:
        yield first
        shown, run = len(everything), _restarts(pod, container)
        while not closing() and (live := core.find(call.resource, info.namespace, info.name)):
            over = _restarts(live.obj, container) > run
            later = entries(live.obj, container, datetime.now(UTC), previous=over)[shown:]
            if later:
                yield text(later, timestamps=timestamps)
                shown += len(later)
            if over or has_ended(live.obj, container):
                return
            await asyncio.sleep(_FOLLOW_SECONDS)

    return Stream(follow(), "text/plain")


def container_of(pod: Object, wanted: str) -> str:
    """Name the container that is asked for; 400 when it is none, or one of several is meant."""
    name = pod["metadata"]["name"]
    names = [str(item["name"]) for item in (pod.get("spec") or {}).get("containers") or ()]
    init = [str(item["name"]) for item in (pod.get("spec") or {}).get("initContainers") or ()]
    if wanted and wanted not in (*names, *init):
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
    run = last if previous else state.get("running") or state.get("terminated") or last
    said = f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    if not run and previous:
        raise errors.bad_request(f"previous terminated {said} not found")
    if not run:
        why = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise errors.bad_request(f"{said} is waiting to start: {why}")
    started, finished = _time(run.get("startedAt")) or now, _time(run.get("finishedAt"))
    node = (pod.get("spec") or {}).get("nodeName") or "no node"
    steps = min(max(0, int(((finished or now) - started) / _STEP)), _STEPS)
    found: list[Entry] = [(started, f"started on {node} (simulated)")]
    found += [(started + _STEP * number, f"step {number}") for number in range(1, steps + 1)]
    if finished is not None:
        found.append((finished, f"ended with exit code {run.get('exitCode', 0)}"))
    return found


def chosen(found: Sequence[Entry], info: RequestInfo, now: datetime) -> Sequence[Entry]:
    """Leave out what the query leaves out; 400 for what is no number or no time."""
    since, tail = info.number("sinceSeconds"), info.number("tailLines")
    if moment := info.query.get("sinceTime"):
        begin = timestamp(moment)
        if begin is None:
            raise errors.bad_request(f"sinceTime must be a time in RFC 3339: {moment}")
        found = [entry for entry in found if entry[0] >= begin]
    if since is not None:
        found = [entry for entry in found if entry[0] >= now - timedelta(seconds=since)]
    return found if tail is None else found[max(0, len(found) - tail) :]


def text(found: Sequence[Entry], *, timestamps: bool = False) -> bytes:
    """Print entries."""
    lines = [
        f"{moment.strftime('%Y-%m-%dT%H:%M:%S.%f000Z')} {said}\n" if timestamps else f"{said}\n"
        for moment, said in found
    ]
    return "".join(lines).encode()


def has_ended(pod: Object, container: str) -> bool:
    """Tell whether a container's log grows no more."""
    return "terminated" in (_status(pod, container).get("state") or {})


def _restarts(pod: Object, container: str) -> int:
    return int(_status(pod, container).get("restartCount") or 0)


def _status(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    told = (status.get(name) or [] for name in ("containerStatuses", "initContainerStatuses"))
    return next((item for each in told for item in each if item.get("name") == container), {})


def _time(value: object) -> datetime | None:
    return datetime.fromisoformat(str(value)) if value else None
