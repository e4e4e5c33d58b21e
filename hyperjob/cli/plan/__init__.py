"""`hyperjob plan`: the clusters on which HyperJobs of a file would run now, and why.

The command runs the webhook's validation and the controller's decisions on the objects of a
control plane or of a clusters file. It writes nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hyperjob.cli.files import file_option, manifests_option
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.lint.check import head_errors, is_hyperjob
from hyperjob.cli.lint.documents import ManifestFile
from hyperjob.cli.manifests import manifest_of
from hyperjob.cli.plan import view, whatif
from hyperjob.cli.plan.sources import from_control_plane, from_file, with_clusters_of
from hyperjob.client.plan.judge import Document, Judgement, Verdict, judge_all
from hyperjob.client.plan.whatif import Prospect
from hyperjob.client.plan.whatif import what_if as predicted
from hyperjob.client.plan.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CLUSTERS, QUEUES, key_of

_TABLE, _TREE = "table", "tree"
# The exit code is that of the first of these verdicts that a HyperJob has.
_CODES = {
    Verdict.REFUSED: Code.USAGE,
    Verdict.CANNOT_RUN: Code.NEVER,
    Verdict.HAS_ENDED: Code.NEVER,
    Verdict.WAITS: Code.NOT_YET,
    Verdict.FITS: Code.OK,
}


@click.command()
@manifests_option(
    "File with HyperJobs, and with Queues that the plan treats as created; - is standard input."
    " May be given more than once; required without --what-if."
)
@click.option(
    "--what-if",
    is_flag=True,
    help="Show which HyperJobs of the control plane would start, wait, move or stop after"
    " changes: the Queues of the files, --drain and --add-clusters.",
)
@click.option(
    "--drain",
    "drained",
    metavar="CLUSTER",
    multiple=True,
    help="With --what-if: a cluster that runs no sub-jobs after the change. May be given more"
    " than once.",
)
@file_option(
    "--add-clusters",
    "added",
    text="With --what-if: a clusters file whose idle clusters are added; each replaces a cluster"
    " of the control plane with the same name.",
)
@file_option(
    "--clusters",
    text="Plan for the idle clusters of this file instead of a live control plane.",
)
@access()
@out.output(_TABLE, _TREE, out.JSON, out.YAML)
def plan(
    files: Sequence[str],
    what_if: bool,
    drained: Sequence[str],
    added: Path | None,
    clusters: Path | None,
    access: Access,
    form: str,
) -> None:
    """Show on which clusters HyperJobs would run now, and why not on the others.

    The command validates each HyperJob as admission does, then runs the controller's own code on
    the objects in memory, with the settings that the controller has on its Lease; a later HyperJob
    of the files gets the accelerators that earlier ones leave. The plan treats Queues in the files
    as created. With built-in queues a HyperJob waits in its queue, behind the HyperJobs that
    already wait. The command writes nothing.

    With --what-if the command compares the queues' decisions now with their decisions after the
    changes. A sub-job on a drained cluster loses its place and waits for another cluster.

    Exit code 0: every HyperJob of the files would start now; 1: the API server does not answer; 2:
    admission would refuse a HyperJob, or a file cannot be planned; 3: a HyperJob would wait for
    free accelerators or in its queue; 4: a HyperJob cannot run: it is too large for empty clusters
    or for its queue, its queue takes no jobs, or it has ended.

    Example: kubectl hyperjob plan -f job.yaml

    Example: kubectl hyperjob plan --what-if -f queues.yaml --drain gpu-east
    """
    _check_options(files, drained, added, what_if=what_if)
    sources = [manifest_of(name) for name in files]
    objects = [document.content for source in sources for document in source.documents]
    live = _world(access, clusters, [each for each in objects if is_hyperjob(each)])
    world = live.with_queues(_queues_of(objects)).with_needed(objects)
    documents = [each for source in sources for each in _documents(source)]
    prospects = None
    if what_if:
        found, prospects = predicted(live, _changed(world, drained, added), documents)
    else:
        found = judge_all(documents, world) if documents else []
    if not found and not what_if:
        raise FailureError("the files contain no HyperJob", code=Code.USAGE)
    _print(found, prospects, form)
    sys.exit(_code(found) if found else Code.OK)


def _check_options(
    files: Sequence[str], drained: Sequence[str], added: Path | None, *, what_if: bool
) -> None:
    """Raise FailureError for options that do not go together."""
    if not what_if and (drained or added):
        raise FailureError("--drain and --add-clusters need --what-if", code=Code.USAGE)
    if not files and not what_if:
        raise FailureError("give a file with -f, or --what-if", code=Code.USAGE)
    if what_if and not (files or drained or added):
        text = "--what-if needs a change: give -f with Queues, --drain or --add-clusters"
        raise FailureError(text, code=Code.USAGE)


def _changed(world: World, drained: Sequence[str], added: Path | None) -> World:
    """Return the world after the changes; FailureError where a drained cluster does not exist."""
    if added is not None:
        world = with_clusters_of(added, world)
    known = {key_of(cluster) for cluster in world.of(CLUSTERS)}
    for name in drained:
        if name not in known:
            raise FailureError(f"--drain: cluster {name!r} not found", code=Code.USAGE)
    return world.without(drained)


def _documents(source: ManifestFile) -> list[Document]:
    """Return the HyperJobs of a file in their order, with the errors of apiVersion and kind."""
    return [
        Document(
            content=document.content,
            line=document.line,
            errors=[item.text for item in head_errors(document)],
        )
        for document in source.documents
        if is_hyperjob(document.content)
    ]


def _queues_of(objects: Sequence[Object]) -> list[Object]:
    """Return the Queues of the files."""
    return [
        content
        for content in objects
        if (content.get("apiVersion"), content.get("kind")) == (QUEUES.api_version, "Queue")
    ]


def _world(access: Access, clusters: Path | None, hyperjobs: Sequence[Object]) -> World:
    """Return the clusters of a file, or the control plane with the objects that HyperJobs need."""
    if clusters is not None:
        return from_file(clusters, namespace=access.namespace)
    return run(from_control_plane(access, hyperjobs=hyperjobs))


def _print(found: Sequence[Judgement], others: Sequence[Prospect] | None, form: str) -> None:
    """Print the judgements, and with --what-if the HyperJobs of the control plane."""
    if form in (out.JSON, out.YAML):
        answer: Object = {"items": [view.value(each) for each in found]}
        if others is not None:
            answer["whatIf"] = [whatif.value(each) for each in others]
        out.dump(answer, form)
        return
    for position, each in enumerate(found):
        if position:
            out.say([""])
        out.say(view.as_tree(each) if form == _TREE else view.as_table(each))
    if others is not None:
        out.say([*([""] if found else []), *whatif.as_table(others)])


def _code(found: Sequence[Judgement]) -> int:
    """Return the exit code of the gravest verdict."""
    verdicts = {each.verdict for each in found}
    return next(code for verdict, code in _CODES.items() if verdict in verdicts)
