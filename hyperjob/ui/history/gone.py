"""A deleted HyperJob: its name and a summary of its spans. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hyperjob.ui.history.spans import Span
from hyperjob.ui.history.store import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedHyperJob:
    """A deleted HyperJob.

    `phase`, `reason` and `message` are of its last span, `begin` is the begin of its first span,
    None without spans; `attempts` is the largest number of attempts of a sub-job.
    """

    known: Known
    phase: str
    reason: str
    message: str
    begin: datetime | None
    clusters: Sequence[str]
    attempts: int

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return f"{self.known.namespace}/{self.known.name}"


def gone_of(known: Known, spans: Sequence[Span]) -> DeletedHyperJob:
    """Return a deleted HyperJob from its spans, which are in order of track and time."""
    own = [span for span in spans if not span.job]
    last = own[-1] if own else None
    return DeletedHyperJob(
        known=known,
        phase=last.phase if last is not None else "",
        reason=last.reason if last is not None else "",
        message=last.message if last is not None else "",
        begin=min((span.begin for span in spans), default=None),
        clusters=sorted({span.cluster for span in spans if span.cluster}),
        attempts=max((span.attempt for span in spans), default=1),
    )
