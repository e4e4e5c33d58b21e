"""Judge the HyperJobs of files in a live control plane or in a clusters file, and print it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.lint import head_errors, is_hyperjob, kubectl_warnings
from hyperjob.cli.lint.documents import Document as FileDocument
from hyperjob.cli.lint.documents import manifest_of
from hyperjob.client.durations import expected_start_value
from hyperjob.client.plan.judge import Document, Judgement, Piece, Verdict, judge_all, unsuitable
from hyperjob.client.plan.snapshot import Snapshot, admitting, read_snapshot
from hyperjob.table import indented, table
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.api.table import write
from hyperjob_core.kube.resources import CLUSTERS, HYPERNODES, NODES, PODS, QUEUES
from hyperjob_core.text import once
from hyperjob_engine.members.facts import hypernode_fact, node_fact, pod_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.resources import amount_only
from hyperjob_queueing.verdict import share_text

_BUILT_IN = ("default", "root")
_CODES = {
    Verdict.REFUSED: Code.USAGE,
    Verdict.CANNOT_RUN: Code.NEVER,
    Verdict.HAS_ENDED: Code.NEVER,
    Verdict.WAITS: Code.NOT_YET,
    Verdict.FITS: Code.OK,
}
"""The exit code is that of the first of these verdicts that a HyperJob has."""


def planned(files: Sequence[str], clusters: Path | None, access: Access, form: str) -> Code:
    """Print the judgements of the HyperJobs of files; return the code of the gravest verdict."""
    every = [each for name in files for each in manifest_of(name).documents]
    documents = [_judged(each) for each in every if is_hyperjob(each.content)]
    if not documents:
        raise FailureError("the files contain no HyperJob", code=Code.USAGE)
    if clusters is not None:
        snapshot = from_file(clusters, namespace=access.namespace)
    else:
        snapshot = run(_from_control_plane(access, [each.content for each in documents]))
    objects = [each.content for each in every]
    queues = [each for each in objects if _is_queue(each)]
    found = judge_all(documents, snapshot.with_queues(queues).with_needed(objects))
    if form:
        out.dump({"items": [value(each) for each in found]}, form)
    for position, each in enumerate(found if not form else ()):
        out.say([*([""] if position else []), *as_table(each)])
    verdicts = {each.verdict for each in found}
    return next(code for verdict, code in _CODES.items() if verdict in verdicts)


def _judged(document: FileDocument) -> Document:
    """Return a HyperJob with what is wrong beside its fields."""
    return Document(
        content=document.content,
        line=document.line,
        errors=[item.text for item in head_errors(document)],
        warnings=[item.text for item in kubectl_warnings(document)],
    )


def _is_queue(content: Object) -> bool:
    return (content.get("apiVersion"), content.get("kind")) == (QUEUES.api_version, QUEUES.kind)


def from_file(path: Path, *, namespace: str | None) -> Snapshot:
    """Return the idle clusters of a clusters file; FailureError when it cannot be read.

    The file says whether Volcano Global or the built-in queues admit.
    """
    from hyperjob.cli.embedded import (
        clusters_file,
        hypernodes_of,
        idle_clusters,
        nodes_of,
        others_of,
    )

    config = clusters_file(path)
    admission = admitting(volcano_global=config.volcano_global.enabled)
    specs: dict[str, Object] = {name: {} for name in _BUILT_IN}
    specs |= {queue.name: queue.model_dump(exclude_none=True) for queue in config.queues}
    queues: list[Object] = [
        {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}
        for name, spec in specs.items()
    ]
    now = datetime.now(UTC)
    views = {
        each.name: view_of(
            {
                PODS: map(pod_fact, others_of(each)),
                NODES: map(node_fact, nodes_of(each)),
                HYPERNODES: map(hypernode_fact, hypernodes_of(each)),
            }
        )
        for each in config.clusters
    }
    return Snapshot(
        now=now,
        objects={CLUSTERS: idle_clusters(config), QUEUES: queues},
        views=views,
        options=Options(queue_admission=admission),
        namespace=namespace or "default",
    )


async def _from_control_plane(access: Access, hyperjobs: Sequence[Object]) -> Snapshot:
    """Read a live control plane; raises ConfigError, and KubeError when Clusters cannot be read."""
    async with access.connect() as kube:
        namespace = access.home(kube)
        return await read_snapshot(
            kube, namespace=namespace, hyperjobs=hyperjobs, left_out=out.remark
        )


_STYLES: Mapping[Verdict, str] = {
    Verdict.FITS: "bold green",
    Verdict.WAITS: "yellow",
    Verdict.CANNOT_RUN: "bold red",
    Verdict.HAS_ENDED: "bold red",
    Verdict.REFUSED: "bold red",
}
_NONE = "<none>"
_SHOWN = 3


def as_table(judgement: Judgement) -> list[Text]:
    """Return a line for the HyperJob, its sub-jobs, and the reason for each unsuitable cluster."""
    lines = [_head(judgement), *indented(_remarks(judgement))]
    if not judgement.pieces:
        return lines
    said = ["" if each.message in judgement.message else each.message for each in judgement.pieces]
    rows = [
        (
            piece.name,
            piece.cluster or _NONE,
            f"{piece.accelerators} {piece.accelerator}" if piece.accelerators else _NONE,
            _pods(piece),
            text,
        )
        for piece, text in zip(judgement.pieces, once(said), strict=True)
    ]
    lines += indented(table(("SUB-JOB", "CLUSTER", "ACCELERATORS", "PODS", "MESSAGE"), rows))
    others = [
        (cluster, _few(names), reason) for cluster, reason, names in unsuitable(judgement.pieces)
    ]
    if others:
        lines += indented(table(("NOT ON", "SUB-JOBS", "WHY"), others))
    return lines


def value(judgement: Judgement) -> Object:
    """Return a judgement as JSON values."""
    line = judgement.waits_in
    place = {} if line is None else {"queue": line.queue, "place": line.place, "of": line.length}
    return {
        "namespace": judgement.namespace,
        "name": judgement.name,
        "line": judgement.line,
        "verdict": str(judgement.verdict),
        "message": judgement.message,
        "errors": list(judgement.errors),
        "warnings": list(judgement.warnings),
        "queues": [_queue_value(judgement, name) for name in judgement.queues],
        **_chosen(judgement),
        **({"position": place} if place else {}),
        **expected_start_value(judgement.expected),
        "jobs": [
            {
                "name": piece.name,
                "replicatedJob": piece.group,
                "cluster": piece.cluster,
                "accelerator": piece.accelerator,
                "accelerators": piece.accelerators,
                "pods": piece.pods,
                "fewestPods": piece.fewest,
                "phase": piece.phase,
                "message": piece.message,
                "notOn": dict(piece.elsewhere),
            }
            for piece in judgement.pieces
        ],
    }


def _head(judgement: Judgement) -> Text:
    name = f"{judgement.namespace}/{judgement.name}"
    verdict = Text(str(judgement.verdict), style=_STYLES[judgement.verdict])
    return Text.assemble((name, "bold"), "  ", verdict, f"  {judgement.message}")


def _remarks(judgement: Judgement) -> list[Text]:
    """Return errors and warnings of admission, the expected start, and queues with shares."""
    lines = [Text(error, style="red") for error in judgement.errors]
    lines += [Text(f"warning: {text}", style="yellow") for text in judgement.warnings]
    if judgement.expectation:
        lines.append(Text(judgement.expectation))
    for group in judgement.chosen:
        of = f"{group.bounds} {group.units}" if group.bounds else "its alternatives"
        lines.append(Text(f"{group.name} takes, of {of}, {group.choice}"))
    waits = judgement.verdict is not Verdict.FITS
    for name, text in judgement.queues.items():
        share = judgement.shares.get(name)
        uses = (
            f", {'uses' if waits else 'then uses'} {share_text(share)}" if share is not None else ""
        )
        lines.append(Text(f"{text or f'queue {name} is Open'}{uses}"))
    return lines


def _queue_value(judgement: Judgement, name: str) -> Object:
    text, share = judgement.queues[name], judgement.shares.get(name)
    found: Object = {"name": name, "open": not text, "message": text}
    if share is not None:
        found |= {
            "resource": share.resource,
            "used": amount_only(share.resource, share.used),
            "share": amount_only(share.resource, share.entitled),
        }
    return found


def _chosen(judgement: Judgement) -> Object:
    found = [
        write(each.alternative) | ({"sizes": each.bounds} if each.bounds else {})
        for each in judgement.chosen
        if each.alternative is not None
    ]
    return {"alternatives": found} if found else {}


def _pods(piece: Piece) -> str:
    return f"{piece.fewest} to {piece.pods}" if piece.fewest < piece.pods else str(piece.pods)


def _few(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = [f"+{len(names) - _SHOWN}"] if len(names) > _SHOWN else []
    return ",".join([*names[:_SHOWN], *more])
