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
from hyperjob.cli.lint.check import head_errors, is_hyperjob, kubectl_warnings
from hyperjob.cli.lint.documents import ManifestFile
from hyperjob.cli.manifests import manifest_of
from hyperjob.cli.plan import view
from hyperjob.cli.plan.sources import from_control_plane, from_file
from hyperjob.client.plan.judge import Document, Judgement, Verdict, judge_all
from hyperjob.client.plan.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import QUEUES

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
    " May be given more than once."
)
@file_option(
    "--clusters",
    text="Plan for the idle clusters of this file instead of a live control plane.",
)
@access()
@out.output(_TABLE, _TREE, out.JSON, out.YAML)
def plan(files: Sequence[str], clusters: Path | None, access: Access, form: str) -> None:
    """Show on which clusters HyperJobs would run now, and why not on the others.

    The command validates each HyperJob as admission does, then runs the controller's own code on
    the objects in memory, with the settings that the controller has on its Lease; a later HyperJob
    of the files gets the accelerators that earlier ones leave. The plan treats Queues in the files
    as created. With built-in queues a HyperJob waits in its queue, behind the HyperJobs that
    already wait. The command writes nothing.

    Exit code 0: every HyperJob of the files would start now; 1: the API server does not answer; 2:
    admission would refuse a HyperJob, or a file cannot be planned; 3: a HyperJob would wait for
    free accelerators or in its queue; 4: a HyperJob cannot run: it is too large for empty clusters
    or for its queue, its queue takes no jobs, or it has ended.

    Example: kubectl hyperjob plan -f job.yaml
    """
    if not files:
        raise FailureError("give a file with -f", code=Code.USAGE)
    sources = [manifest_of(name) for name in files]
    documents = [each for source in sources for each in _documents(source)]
    if not documents:
        raise FailureError("the files contain no HyperJob", code=Code.USAGE)
    objects = [document.content for source in sources for document in source.documents]
    world = _world(access, clusters, [each for each in objects if is_hyperjob(each)])
    found = judge_all(documents, world.with_queues(_queues_of(objects)).with_needed(objects))
    _print(found, form)
    sys.exit(_code(found))


def _documents(source: ManifestFile) -> list[Document]:
    """Return the HyperJobs of a file in their order, with what is wrong beside their fields."""
    return [
        Document(
            content=document.content,
            line=document.line,
            errors=[item.text for item in head_errors(document)],
            warnings=[item.text for item in kubectl_warnings(document)],
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


def _print(found: Sequence[Judgement], form: str) -> None:
    """Print the judgements."""
    if form in (out.JSON, out.YAML):
        out.dump({"items": [view.value(each) for each in found]}, form)
        return
    for position, each in enumerate(found):
        if position:
            out.say([""])
        out.say(view.as_tree(each) if form == _TREE else view.as_table(each))


def _code(found: Sequence[Judgement]) -> int:
    """Return the exit code of the gravest verdict."""
    verdicts = {each.verdict for each in found}
    return next(code for verdict, code in _CODES.items() if verdict in verdicts)
