"""What several topics read: forms of names, with Kubernetes' messages, quantities, and tasks.

Quantities have a memo: many containers have few different ones.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import orjson

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.quantity import Quantity
from hyperjob_rules.validation.rules import Report, bounded

MAX_ANNOTATIONS: Final = 256 * 1024

bounded("V8.ObjectMeta.annotations.max", most=MAX_ANNOTATIONS)

FormCheck = Callable[[str], list[str]]
"""A function that returns Kubernetes' error messages about a text; empty for a valid text."""


def check(form: FormCheck, value: str, path: Path, report: Report, *steps: str | int) -> bool:
    """Report the errors in the form of a text below `path`; return whether there are none."""
    messages = form(value)
    for message in messages:
        report.add("V8.form", path.below(steps), value, message=message)
    return not messages


def validate_labels(labels: Object, path: Path, report: Report) -> None:
    """Check the keys and values of labels, or of anything that selects by them."""
    for key in sorted(labels):
        check(formats.qualified_name, key, path, report)
        check(formats.label_value, labels[key], path, report)


def validate_annotations(annotations: Object, path: Path, report: Report) -> None:
    """Check the keys of annotations, whose case does not matter, and their size in bytes."""
    size = 0
    for key in sorted(annotations):
        size += len(f"{key}{annotations[key]}".encode(errors="surrogatepass"))
        for message in formats.qualified_name(key.lower()):
            report.add("V8.form", path, key, message=message)
    if size > MAX_ANNOTATIONS:
        report.add("V8.ObjectMeta.annotations.max", path)


MAX_LENGTH: Final = 32
MAX_KNOWN: Final = 4096


def parse_amount(value: str | int) -> Quantity:
    """Parse a quantity; raises ValueError with Kubernetes' message."""
    text = str(value)
    return _known(text) if len(text) <= MAX_LENGTH else Quantity.parse(text)


def try_parse_amount(value: str | int) -> Quantity:
    """Parse a quantity; a malformed one is 0 here and is reported by the check of its field."""
    try:
        return parse_amount(value)
    except ValueError:
        return Quantity()


@lru_cache(maxsize=MAX_KNOWN)
def _known(text: str) -> Quantity:
    return Quantity.parse(text)


def tasks_of(job: Object) -> Sequence[Object]:
    """Return the tasks of a replicatedJob; none without a template."""
    return (job.get("templateSpec") or {}).get("tasks") or ()


def task_names(tasks: Sequence[Object]) -> list[str]:
    """Return the names of all tasks of a template, in order."""
    return [task_name(task, index) for index, task in enumerate(tasks)]


def least_of(task: Object) -> int:
    """Return the pods of a task without which Volcano starts none of it."""
    least = task.get("minAvailable")
    return int((task.get("replicas") or 0) if least is None else least)


def pod_spec_of(task: Object) -> Object:
    """Return the spec of a task's pods; empty without a template."""
    return (task.get("template") or {}).get("spec") or {}


def written(part: object) -> bytes:
    """Return a part of an object as JSON; empty if there is none, or no JSON for it."""
    try:
        return orjson.dumps(part) if part else b""
    except orjson.JSONEncodeError:
        return b""  # nested too deep, or invalid text: the shape errors are enough
