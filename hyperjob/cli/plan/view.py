"""Print a judgement as a table or JSON."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from hyperjob.client.expected import expected_start_value
from hyperjob.client.plan.judge import Judgement, Verdict
from hyperjob.client.plan.pieces import Piece, unsuitable
from hyperjob.table import indented, table
from hyperjob_core.api.meta import Object
from hyperjob_core.text import once
from hyperjob_engine.queueing.verdict import share_text
from hyperjob_engine.resources import amount_only

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
        (piece.name, piece.cluster or _NONE, _size(piece), _pods(piece), text)
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
    return {
        "namespace": judgement.namespace,
        "name": judgement.name,
        "line": judgement.line,
        "verdict": str(judgement.verdict),
        "message": judgement.message,
        "errors": list(judgement.errors),
        "warnings": list(judgement.warnings),
        "queues": [_queue_value(judgement, name) for name in judgement.queues],
        **_position(judgement),
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
    waits = judgement.verdict is not Verdict.FITS
    for name, text in judgement.queues.items():
        share = judgement.shares.get(name)
        uses = (
            f", {'uses' if waits else 'then uses'} {share_text(share)}" if share is not None else ""
        )
        lines.append(Text(f"queue {name} {text or 'is Open'}{uses}"))
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


def _position(judgement: Judgement) -> Object:
    line = judgement.waits_in
    if line is None:
        return {}
    return {"position": {"queue": line.queue, "place": line.place, "of": line.length}}


def _pods(piece: Piece) -> str:
    return f"{piece.fewest} to {piece.pods}" if piece.fewest < piece.pods else str(piece.pods)


def _size(piece: Piece) -> str:
    return f"{piece.accelerators} {piece.accelerator}" if piece.accelerators else _NONE


def _few(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = [f"+{len(names) - _SHOWN}"] if len(names) > _SHOWN else []
    return ",".join([*names[:_SHOWN], *more])
