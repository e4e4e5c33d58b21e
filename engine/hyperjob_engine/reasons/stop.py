"""The steps that a planned stop saved and lost, with their sentence."""

from collections.abc import Sequence

from hyperjob_core.api.checkpoint import StopCause
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, mapping, string


def stop_text(status: Object) -> str:
    """Return the steps that a planned stop saved and did not save; empty if no step is known."""
    entry = mapping(status.get("checkpoint"))
    cause, reached = string(entry.get("stopCause")), integer(entry.get("stoppedStep"))
    if reached is None or cause not in set(StopCause) or not StopCause(cause).is_planned:
        return ""
    saved = integer(entry.get("resumeStep"))
    if saved is None:
        return f"step {reached} was reached, and no sub-job has reported a checkpoint"
    if saved >= reached:
        return f"saved at step {saved}"
    return f"step {reached} was reached, and all sub-jobs have saved step {saved}"


def has_lost(status: Object) -> bool:
    """Return whether a planned stop lost steps after the last checkpoint."""
    entry = mapping(status.get("checkpoint"))
    return bool(stop_text(status)) and count(entry.get("stoppedStep")) > count(
        entry.get("resumeStep")
    )


def unkept_text(clusters: Sequence[str], refusal: str) -> str:
    """Return why the controller stops no sub-job that uses a claim in these clusters."""
    return (
        f"without its sub-job Karmada would delete the copy in {', '.join(clusters)}: the"
        f" controller does not stop the sub-job; {refusal}"
    )
