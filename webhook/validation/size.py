"""How large a HyperJob may be: checked first, as all else takes time in proportion to it."""

import orjson

from hyperjob.api.limits import MAX_ALL_TASKS, MAX_SPEC_BYTES, count_tasks
from hyperjob.api.meta import Object
from webhook.validation.fieldpath import METADATA, SPEC
from webhook.validation.report import Report
from webhook.validation.rules import TOO_LONG, TOO_MANY, rule

TASKS = rule(
    "X6.too-many-tasks",
    TOO_MANY,
    f"must have at most {MAX_ALL_TASKS} items",
    "all templates together have more tasks than one review can judge in its time",
    "make several HyperJobs",
)
BYTES = rule(
    "X6.too-large",
    TOO_LONG,
    f"may not be more than {MAX_SPEC_BYTES} bytes",
    "the spec, or the metadata, is larger than what etcd takes of a whole object by default",
    "make several HyperJobs, or move long texts to ConfigMaps",
)


def validate_size(raw: Object, report: Report, *, at_most: int | None = None) -> bool:
    """Check the size of the whole; returns whether the parts can be looked at.

    `at_most` are the bytes that the HyperJob cannot exceed, where they are known.
    """
    spec = raw.get("spec")
    if (tasks := count_tasks(spec)) > MAX_ALL_TASKS:
        report.add(TASKS, SPEC.child("replicatedJobs"), tasks)
    elif at_most is None or at_most > MAX_SPEC_BYTES:
        for path, part in ((SPEC, spec), (METADATA, raw.get("metadata"))):
            if _bytes(part) > MAX_SPEC_BYTES:
                report.add(BYTES, path)
    return not report.refusals


def _bytes(spec: object) -> int:
    try:
        return len(orjson.dumps(spec))
    except TypeError:
        return 0  # nested too deep, or no text: what is said about the shape is enough
