"""`hyperjob suspend` and `resume`: take HyperJobs off the clusters, and let them start again."""

from collections.abc import Sequence

import click

from hyperjob.api.meta import Object
from hyperjob.api.phases import Phase
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.cli.verbs.changing import Done, each, patch, waiting
from hyperjob.cli.verbs.following import summary_of, until
from hyperjob.cli.views.summary import read
from hyperjob.kube.client import Kube
from hyperjob.kube.resources import HYPERJOBS


@click.command()
@names_argument(required=True)
@access()
@waiting("Wait until it is Suspended.  [default: no]")
@out.output(out.JSON, out.YAML, out.NAME)
def suspend(
    names: Sequence[str],
    access: Access,
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    """Take HyperJobs off the clusters and give their quota back; `resume` starts them again.

    Example: kubectl hyperjob suspend llm-training --wait
    """
    _set(names, access, suspend=True, wait=bool(wait), timeout=timeout, dry_run=dry_run, form=form)


@click.command()
@names_argument(required=True)
@access()
@waiting("Wait until it runs, or has ended.  [default: no]")
@out.output(out.JSON, out.YAML, out.NAME)
def resume(
    names: Sequence[str],
    access: Access,
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    """Start suspended HyperJobs again.

    Example: kubectl hyperjob resume llm-training
    """
    _set(names, access, suspend=False, wait=bool(wait), timeout=timeout, dry_run=dry_run, form=form)


def _set(
    names: Sequence[str],
    access: Access,
    *,
    suspend: bool,
    wait: bool,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    async def change(kube: Kube, namespace: str, name: str) -> Done:
        found = await kube.get(HYPERJOBS, name, namespace=namespace)
        before = read(found)
        if before.has_ended:
            raise FailureError(
                f"{out.title(name)} is {before.phase}: a HyperJob that has ended is neither"
                " suspended nor resumed",
                code=Code.NEVER,
            )
        if before.suspend == suspend:
            word = "already suspended" if suspend else "not suspended"
        else:
            word = "suspended" if suspend else "resumed"
            body: Object = {"spec": {"suspend": suspend}}
            found = await patch(kube, namespace, name, body, dry_run=dry_run)
        if wait and not dry_run:
            alone = len(names) == 1
            settled = _settled(kube, namespace, name, suspend=suspend, seconds=timeout, alone=alone)
            found = await settled or found
        return found, word

    run(each(access, names, change, form=form, dry_run=dry_run))


async def _settled(
    kube: Kube, namespace: str, name: str, *, suspend: bool, seconds: float, alone: bool
) -> Object | None:
    wanted = (Phase.SUSPENDED,) if suspend else (Phase.RUNNING, Phase.COMPLETED)

    def holds(hyperjob: Object | None) -> bool:
        summary = summary_of(hyperjob, name)
        if not summary.is_current:
            return False
        if summary.has_ended and summary.phase not in wanted:
            raise FailureError(f"{out.title(name)} is {summary.phase}", code=Code.NEVER)
        return summary.phase in wanted

    what = "is Suspended" if suspend else "runs"
    return await until(kube, namespace, name, holds, what=what, seconds=seconds, alone=alone)
