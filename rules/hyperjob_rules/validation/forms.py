"""Validation of the form of names, labels, annotations and keys, with Kubernetes' messages."""

from collections.abc import Callable
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import INVALID, TOO_LONG, Report, rule

MAX_ANNOTATIONS: Final = 256 * 1024

FORM = rule(
    "V8.form",
    INVALID,
    "{message}",
    "a name, label, key, port or variable has a form that Kubernetes does not take",
    "the message says which characters and lengths are allowed, and shows an example",
)
ANNOTATIONS_TOO_LONG = rule(
    "V8.ObjectMeta.annotations.max",
    TOO_LONG,
    f"may not be more than {MAX_ANNOTATIONS} bytes",
    "the annotations together are too large",
    "move large values to a ConfigMap",
)

FormCheck = Callable[[str], list[str]]
"""A function that returns Kubernetes' error messages about a text; empty for a valid text."""


def check(form: FormCheck, value: str, path: Path, report: Report, *steps: str | int) -> bool:
    """Report the errors in the form of a text below `path`; return whether there are none."""
    messages = form(value)
    for message in messages:
        report.add(FORM, path.below(steps), value, message=message)
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
            report.add(FORM, path, key, message=message)
    if size > MAX_ANNOTATIONS:
        report.add(ANNOTATIONS_TOO_LONG, path)
