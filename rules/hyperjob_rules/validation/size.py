"""Validation of a HyperJob's size, which comes first: the time of all other rules depends on it."""

import orjson

from hyperjob_core.api.field import METADATA, SPEC
from hyperjob_core.api.limits import MAX_ALL_TASKS, MAX_METADATA_KEYS, MAX_SPEC_BYTES, count_tasks
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import TOO_LONG, TOO_MANY, Report, rule

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
    "the spec, or the metadata, is larger than etcd's default limit for a whole object",
    "make several HyperJobs, or move long texts to ConfigMaps",
)


KEYS = rule(
    "X6.too-many-keys",
    TOO_MANY,
    f"must have at most {MAX_METADATA_KEYS} items",
    "an object has more labels or annotations than one review can judge in its time",
    "move labels and annotations that no selector needs to a ConfigMap",
)


def validate_size(raw: Object, report: Report, *, at_most: int | None = None) -> bool:
    """Validate the size of a HyperJob; return whether its parts may be validated.

    `at_most` is an upper bound of its size in bytes, if known.
    """
    spec = raw.get("spec")
    if (tasks := count_tasks(spec)) > MAX_ALL_TASKS:
        report.add(TASKS, SPEC.child("replicatedJobs"), tasks)
    elif at_most is None or at_most > MAX_SPEC_BYTES:
        for path, part in ((SPEC, spec), (METADATA, raw.get("metadata"))):
            if bytes_of(part) > MAX_SPEC_BYTES:
                report.add(BYTES, path)
    metadata = raw.get("metadata")
    for field in ("labels", "annotations"):
        keys = metadata.get(field) if isinstance(metadata, dict) else None
        if isinstance(keys, dict) and len(keys) > MAX_METADATA_KEYS:
            report.add(KEYS, METADATA.child(field), len(keys))
    return not report.refusals


def bytes_of(part: object) -> int:
    """Return the size of a part of an object as JSON; 0 if there is none, or no JSON for it."""
    try:
        return len(orjson.dumps(part)) if part else 0
    except TypeError:
        return 0  # nested too deep, or invalid text: the shape errors are enough
