"""`hyperjob restart` and `migrate`: ask the controller once, and see that it has taken it.

A request is an annotation, `<token> [sub-job…]`; the controller acts on a token once and records it
in the status. The command decides nothing but which sub-jobs are meant.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import click

from hyperjob.api.meta import Object
from hyperjob.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.kubectl.names import name_argument, names_argument
from hyperjob.cli.verbs.changing import Done, each, patch, waiting
from hyperjob.cli.verbs.following import summary_of, until
from hyperjob.cli.verbs.selection import choose
from hyperjob.cli.views.summary import SubJob, Summary, read
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import Conflict
from hyperjob.kube.resources import HYPERJOBS

_TAKEN_SECONDS: Final = 10.0
_TRIES: Final = 5
_DEFAULT: Final = (
    "Wait until the sub-jobs run again; --no-wait does not even wait until the controller has"
    " taken it.  [default: until it is taken, 10s at most]"
)

Choice = Callable[[Summary], Sequence[SubJob]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for; `choose` gives the sub-jobs meant, none for all."""

    kind: str
    annotation: str
    word: str
    choose: Choice


@click.command()
@names_argument(required=True)
@access()
@click.option(
    "--job",
    "jobs",
    metavar="JOB",
    multiple=True,
    help="Only this sub-job or replicated job; may be given several times.",
)
@waiting(_DEFAULT)
@out.output(out.JSON, out.YAML, out.NAME)
def restart(
    names: Sequence[str],
    access: Access,
    jobs: Sequence[str],
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    """Start HyperJobs, or some of their sub-jobs, from the start; no restart is counted.

    Example: kubectl hyperjob restart llm-training --job trainer-0 --wait
    """
    request = Request(
        kind="restart",
        annotation=RESTART_REQUEST,
        word="restarted",
        choose=lambda summary: choose(summary, jobs) if jobs else (),
    )
    run(_ask(access, names, request, wait=wait, timeout=timeout, dry_run=dry_run, form=form))


@click.command()
@name_argument()
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@access()
@click.option("--from", "cluster", metavar="CLUSTER", help="Only sub-jobs that are there now.")
@waiting(_DEFAULT)
@out.output(out.JSON, out.YAML, out.NAME)
def migrate(
    name: str,
    jobs: Sequence[str],
    access: Access,
    cluster: str | None,
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    """Move sub-jobs to other clusters; they start again there and keep away from where they were.

    Example: kubectl hyperjob migrate llm-training --from gpu-east
    """
    if not jobs and not cluster:
        raise click.UsageError(
            "give the sub-jobs to move, or --from CLUSTER for all that are there"
        )
    request = Request(
        kind="migrate",
        annotation=MIGRATE_REQUEST,
        word="moved",
        choose=lambda summary: movable(summary, jobs, cluster),
    )
    run(_ask(access, [name], request, wait=wait, timeout=timeout, dry_run=dry_run, form=form))


def movable(summary: Summary, words: Sequence[str], cluster: str | None) -> list[SubJob]:
    """Choose what to move; FailureError when nothing stands on the cluster, or on any."""
    chosen = choose(summary, words) if words else list(summary.jobs)
    alive = [job for job in chosen if job.cluster and not job.has_ended]
    there = [job for job in alive if cluster in (None, job.cluster)]
    if not there:
        where = f"on cluster {cluster}" if cluster else "on a cluster"
        stand = ", ".join(f"{job.name} on {job.cluster}" for job in alive) or "none is on any"
        raise FailureError(f"no sub-job to move stands {where}: {stand}")
    if words and not cluster and len(there) < len(chosen):
        idle = ", ".join(job.name for job in chosen if job not in there)
        raise FailureError(f"cannot be moved, for they stand on no cluster or have ended: {idle}")
    return there


def standing(summary: Summary, request: Request) -> str:
    """Give the request of this kind that nobody has taken yet; empty when there is none."""
    words = summary.annotations.get(request.annotation, "").split()
    taken = summary.requests.get(request.kind, "")
    return words[0] if words and words[0] != taken else ""


async def _ask(
    access: Access,
    names: Sequence[str],
    request: Request,
    *,
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    async def change(kube: Kube, namespace: str, name: str) -> Done:
        token = new_token(datetime.now(UTC))
        found, meant = await _annotate(kube, namespace, name, request, token, dry_run=dry_run)
        if dry_run or wait is False:
            return found, "asked for"
        alone = len(names) == 1
        found = await _taken(kube, namespace, name, request, token, alone=alone) or found
        if wait:
            again = _again(kube, namespace, name, request, meant, seconds=timeout, alone=alone)
            found = await again or found
        return found, request.word

    await each(access, names, change, form=form, dry_run=dry_run)


def new_token(now: datetime) -> str:
    """Make a token that tells when it was asked, and that nobody else makes in the same moment."""
    return f"{now.strftime('%Y-%m-%dT%H:%M:%SZ')}-{secrets.token_hex(2)}"


async def _annotate(
    kube: Kube, namespace: str, name: str, request: Request, token: str, *, dry_run: bool
) -> tuple[Object, Sequence[SubJob]]:
    """Write the request on the HyperJob as it was read; again when it changed meanwhile."""
    for attempt in range(1, _TRIES + 1):
        hyperjob = await kube.get(HYPERJOBS, name, namespace=namespace)
        summary = read(hyperjob)
        if summary.has_ended:
            raise FailureError(
                f"{out.title(name)} is {summary.phase}: a HyperJob that has ended is never run"
                " again; create it anew",
                code=Code.NEVER,
            )
        if summary.deleting:
            raise FailureError(
                f"{out.title(name)} is being deleted: kubectl hyperjob why {name} -n {namespace}",
                code=Code.NEVER,
            )
        meant = request.choose(summary)
        if earlier := standing(summary, request):
            raise FailureError(
                f"a {request.kind} of {out.title(name)} was asked for before ({earlier}) and is not"
                f" taken yet: kubectl hyperjob why {name} -n {namespace}; to withdraw it: kubectl"
                f" annotate hj {name} -n {namespace} {request.annotation}-",
                code=Code.NOT_YET,
            )
        value = " ".join([token, *(job.name for job in meant)])
        body: Object = {
            "metadata": {
                "resourceVersion": hyperjob["metadata"]["resourceVersion"],
                "annotations": {request.annotation: value},
            }
        }
        try:
            changed = await patch(kube, namespace, name, body, dry_run=dry_run)
        except Conflict:
            if attempt == _TRIES:
                raise
            continue
        return changed, meant or summary.jobs
    raise AssertionError("the last try returns or raises")


async def _taken(
    kube: Kube, namespace: str, name: str, request: Request, token: str, *, alone: bool
) -> Object | None:
    """Wait until the controller has recorded the token."""

    def holds(hyperjob: Object | None) -> bool:
        return summary_of(hyperjob, name).requests.get(request.kind) == token

    try:
        return await until(
            kube,
            namespace,
            name,
            holds,
            what="has taken the request",
            seconds=_TAKEN_SECONDS,
            alone=alone,
        )
    except FailureError as error:
        if error.exit_code != Code.NOT_YET:
            raise
        raise FailureError(
            f"the {request.kind} of {out.title(name)} is asked for, but no controller has taken it"
            f" within {_TAKEN_SECONDS:g}s: kubectl hyperjob why {name} -n {namespace}",
            code=Code.NOT_YET,
        ) from None


async def _again(
    kube: Kube,
    namespace: str,
    name: str,
    request: Request,
    meant: Sequence[SubJob],
    *,
    seconds: float,
    alone: bool,
) -> Object | None:
    """Wait until all sub-jobs meant run, made again since."""
    before = {job.name: job.attempt for job in meant}

    def holds(hyperjob: Object | None) -> bool:
        summary = summary_of(hyperjob, name)
        if summary.has_ended:
            if summary.phase == "Completed":
                return True
            raise FailureError(f"{out.title(name)} is {summary.phase}", code=Code.NEVER)
        made = [job for job in summary.jobs if job.name in before]
        return bool(made) and all(
            job.attempt > before[job.name] and job.phase in ("Running", "Completing", "Completed")
            for job in made
        )

    what = f"has {request.word} sub-jobs running"
    return await until(kube, namespace, name, holds, what=what, seconds=seconds, alone=alone)
