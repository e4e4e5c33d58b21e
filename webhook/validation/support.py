"""The fields of the API that this release's controller does not act on yet.

No field is ever accepted and ignored, so these are refused. The rules for the fields themselves
are complete and apply as soon as a field is switched on here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Which additions the controller acts on."""

    suspend: bool = True
    failure_policy: bool = True
    success_policy: bool = True
    depends_on: bool = True
    ttl_seconds_after_finished: bool = True
    split_static: bool = True
    split_auto: bool = True
    plugins: bool = True
    template_scale: bool = True
    """Whether an edit of task sizes reaches sub-jobs that exist."""


ALL: Final = Features(**{field.name: True for field in fields(Features)})
SUPPORTED: Final = Features()
_COMPLETE: Final = SUPPORTED == ALL

UNSUPPORTED = rule(
    "S1",
    FORBIDDEN,
    "this release does not act on it yet; {instead}",
    "the field is part of the API, and nothing in this release would act on it",
    "do what the message says, or install a release that acts on the field",
)


def validate_support(spec: Object, path: Path, report: Report, *, features: Features) -> None:
    """Refuse every field that nothing would act on."""
    if features is SUPPORTED and _COMPLETE:
        return
    for field, instead in _unsupported(spec, path, features):
        report.add(UNSUPPORTED, field, instead=instead)


def _unsupported(spec: Object, path: Path, features: Features) -> Iterator[tuple[Path, str]]:
    if spec.get("suspend") and not features.suspend:
        yield path.child("suspend"), "leave it out, and create the HyperJob when it may start"
    if spec.get("failurePolicy") and not features.failure_policy:
        yield path.child("failurePolicy"), "leave it out, and use `policies` of the templateSpec"
    if spec.get("successPolicy") and not features.success_policy:
        yield path.child("successPolicy"), "leave it out: the HyperJob completes with all sub-jobs"
    if spec.get("ttlSecondsAfterFinished") is not None and not features.ttl_seconds_after_finished:
        yield path.child("ttlSecondsAfterFinished"), "leave it out, and delete the HyperJob"
    if spec.get("plugins") and not features.plugins:
        yield path.child("plugins"), "leave it out, and use `plugins` of the templateSpec"
    for index, job in enumerate(spec.get("replicatedJobs") or ()):
        yield from _unsupported_in_job(job, path.child("replicatedJobs").index(index), features)


def _unsupported_in_job(job: Object, path: Path, features: Features) -> Iterator[tuple[Path, str]]:
    split = job.get("splitPolicy") or {}
    sized = bool(split.get("accelerators") or split.get("acceleratorType"))
    instead = "leave it out, and set `replicas` and the size of the tasks"
    if split.get("mode") == "auto":
        if not features.split_auto:
            yield path.child("splitPolicy"), instead
    elif sized and not features.split_static:
        yield path.child("splitPolicy"), instead
    if job.get("dependsOn") and not features.depends_on:
        yield path.child("dependsOn"), "leave it out: all replicatedJobs start together"
