"""What is left of a HyperJob that was deleted: its name and what its spans say. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hyperjob.ui.history.spans import Span
from hyperjob.ui.history.store import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A HyperJob that is not there any longer.

    `phase`, `reason` and `message` are the last ones, `begin` is the first time that is known,
    None without spans; `attempts` counts the tries of the sub-job that had most.
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


def gone_of(known: Known, spans: Sequence[Span]) -> Gone:
    """Describe it by its spans, in order of track and time."""
    own = [span for span in spans if not span.job]
    last = own[-1] if own else None
    return Gone(
        known=known,
        phase=last.phase if last is not None else "",
        reason=last.reason if last is not None else "",
        message=last.message if last is not None else "",
        begin=min((span.begin for span in spans), default=None),
        clusters=sorted({span.cluster for span in spans if span.cluster}),
        attempts=max((span.attempt for span in spans), default=1),
    )
