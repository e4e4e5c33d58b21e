"""Suspend, resume, restart and move HyperJobs, and wait for the result.

A restart and a move are requests: an annotation, `<token> [sub-job…]`. The controller acts once on
each token and records it in the status.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.errors import ClientError, NeverError, NotYetError
from hyperjob.client.reading import Target
from hyperjob.client.summary import Summary, choose, read
from hyperjob.client.waiting import Progress, silent, summary_of, until
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.client import PatchType, again_on_conflict
from hyperjob_core.kube.resources import HYPERJOBS, Resource
from hyperjob_core.text import did_you_mean

_TAKEN_SECONDS: Final = 10.0
_TRIES: Final = 5

Choice = Callable[[Summary], Sequence[JobStatus]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKind:
    """A kind of request; `choose` gives its sub-jobs, an empty sequence for all of them.

    `word` says in a command's output what has happened to the HyperJob: `hyperjob/llm moved`.
    """

    kind: str
    annotation: str
    word: str
    choose: Choice


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A written request: the HyperJob, the token, and the sub-jobs before the request."""

    hyperjob: Object
    token: str
    jobs: Sequence[JobStatus]


def restart(jobs: Sequence[str] = ()) -> RequestKind:
    """Return a request to restart these sub-jobs or replicated jobs, or the whole HyperJob."""
    return RequestKind(
        kind="restart",
        annotation=RESTART_REQUEST,
        word="restarted",
        choose=lambda summary: choose(summary, jobs) if jobs else (),
    )


def migrate(jobs: Sequence[str] = (), *, cluster: str | None = None) -> RequestKind:
    """Return a request to move sub-jobs to other clusters: these ones, of them those on `cluster`.

    Without `jobs` all sub-jobs on `cluster` move, and with neither argument all sub-jobs that are
    on any cluster.
    """
    return RequestKind(
        kind="migrate",
        annotation=MIGRATE_REQUEST,
        word="moved",
        choose=lambda summary: movable(summary, jobs, cluster),
    )


def movable(summary: Summary, words: Sequence[str], cluster: str | None) -> list[JobStatus]:
    """Return the sub-jobs to move: those that `words` select and that are on `cluster`.

    Without words all sub-jobs are selected, and without a cluster any cluster counts. ClientError
    when there is none, or when, without a cluster, a selected one is on no cluster or has ended.
    """
    chosen = choose(summary, words) if words else list(summary.jobs)
    alive = [job for job in chosen if job.cluster and not job.has_ended]
    there = [job for job in alive if cluster in (None, job.cluster)]
    if not there:
        where = f"on cluster {cluster}" if cluster else "on a cluster"
        near = did_you_mean(cluster or "", (job.cluster for job in alive))
        stand = (
            ", ".join(f"{job.name} on {job.cluster}" for job in alive)
            or "no sub-job is on a cluster"
        )
        raise ClientError(f"no sub-job to move is {where}: {stand}{near}")
    if words and not cluster and len(there) < len(chosen):
        idle = ", ".join(job.name for job in chosen if job not in there)
        raise ClientError(f"these sub-jobs are on no cluster or have ended: {idle}")
    return there


async def ask(target: Target, request: RequestKind) -> WrittenRequest:
    """Write the request as an annotation of the HyperJob; read it again after each conflict.

    NeverError when the HyperJob has ended or is being deleted; NotYetError when the controller has
    not accepted an earlier request of this kind; ClientError when the request has no sub-job.
    """
    token = f"{rfc3339(datetime.now(UTC))}-{secrets.token_hex(2)}"

    async def write() -> WrittenRequest:
        hyperjob = await target.get()
        summary = read(hyperjob)
        if summary.has_ended:
            raise NeverError(
                f"{target.title} is {summary.phase}: a HyperJob that has ended never runs"
                " again; delete it, then apply it again"
            )
        if summary.deleting:
            raise NeverError(f"{target.title} is being deleted: {target.why}")
        if summary.suspend and request.kind == "restart":
            raise NeverError(
                f"{target.title} is suspended: it has no sub-job to restart; to start it: kubectl"
                f" hyperjob resume {target.name} -n {target.namespace}"
            )
        meant = request.choose(summary)
        earlier = summary.annotations.get(request.annotation, "").partition(" ")[0]
        if earlier not in ("", summary.requests.get(request.kind)):
            raise NotYetError(
                f"the controller has not accepted an earlier {request.kind} of {target.title}"
                f" ({earlier}) yet: {target.why}; to withdraw it: kubectl annotate hj {target.name}"
                f" -n {target.namespace} {request.annotation}-"
            )
        value = " ".join([token, *(job.name for job in meant)])
        body: Object = {
            "metadata": {
                "resourceVersion": hyperjob["metadata"]["resourceVersion"],
                "annotations": {request.annotation: value},
            }
        }
        changed = await patch(target, body)
        return WrittenRequest(changed, token, tuple(meant or summary.jobs))

    return await again_on_conflict(write, tries=_TRIES)


async def taken(
    target: Target,
    request: RequestKind,
    asked: WrittenRequest,
    *,
    progress: Progress = silent,
) -> Object | None:
    """Wait at most 10 s until the controller has recorded the token in the status.

    Return the HyperJob. Raises NotYetError when time is up, NeverError after its deletion.
    """

    def holds(hyperjob: Object | None) -> bool:
        return summary_of(hyperjob, target.name).requests.get(request.kind) == asked.token

    try:
        return await until(
            target,
            holds,
            what="has accepted the request",
            seconds=_TAKEN_SECONDS,
            progress=progress,
        )
    except NotYetError:
        raise NotYetError(
            f"no controller has accepted the {request.kind} of {target.title} within"
            f" {_TAKEN_SECONDS:g}s: {target.why}"
        ) from None


async def running_again(
    target: Target, asked: WrittenRequest, *, seconds: float, progress: Progress = silent
) -> Object | None:
    """Wait until every sub-job of the request runs in a later attempt, or the HyperJob completes.

    A request for a HyperJob without sub-jobs waits for all sub-jobs that it gets. `seconds` 0 is no
    limit. Raises NotYetError when time is up, NeverError when the HyperJob fails or is deleted.
    """
    before = {job.name: job.number for job in asked.jobs}

    def holds(hyperjob: Object | None) -> bool:
        summary = summary_of(hyperjob, target.name)
        if summary.has_ended:
            if summary.phase == "Completed":
                return True
            raise NeverError(f"{target.title} is {summary.phase}")
        made = [job for job in summary.jobs if job.name in before or not before]
        return bool(made) and all(
            job.number > before.get(job.name, 0)
            and job.phase in ("Running", "Completing", "Completed")
            for job in made
        )

    what = "runs again" if len(before) < 2 else f"has {len(before)} sub-jobs running again"
    return await until(target, holds, what=what, seconds=seconds, progress=progress)


FIELD_MANAGER: Final = "kubectl-hyperjob"


async def patch(target: Target, body: Object, *, resource: Resource = HYPERJOBS) -> Object:
    """Send a JSON merge patch; return the object as the API server stored it."""
    return await target.kube.patch(
        resource,
        target.name,
        body,
        kind=PatchType.MERGE,
        namespace=target.namespace,
        field_manager=FIELD_MANAGER,
    )


async def suspend(target: Target, *, on: bool = True) -> tuple[Object, bool]:
    """Set `spec.suspend` to `on`; return the HyperJob and whether the value changed.

    NeverError when the HyperJob has ended.
    """
    found = await target.get()
    before = read(found)
    if before.has_ended:
        raise NeverError(
            f"{target.title} is {before.phase}: a HyperJob that has ended cannot be suspended or"
            " resumed"
        )
    if before.suspend == on:
        return found, False
    body: Object = {"spec": {"suspend": on}}
    return await patch(target, body), True
