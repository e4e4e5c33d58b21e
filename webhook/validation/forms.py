"""Checks of one text each, reported at its path with Kubernetes' message for its form.

Only the form; whether the thing named exists is asked elsewhere.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, TOO_LONG, rule

MAX_ANNOTATIONS: Final = 256 * 1024

FORM = rule(
    "V8",
    INVALID,
    "{message}",
    "a name, label, key, port or variable has a form that Kubernetes does not take",
    "the message says which characters and lengths are allowed, and shows an example",
)
ANNOTATIONS_TOO_LONG = rule(
    "V8",
    TOO_LONG,
    f"may not be more than {MAX_ANNOTATIONS} bytes",
    "the annotations together are too large",
    "move large values to a ConfigMap",
)

Check = Callable[[str], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

# Most texts are as they should be, and these tell so in one step. They may take fewer texts than
# the checks themselves, never more.
_FINE: Final[Mapping[Check, Callable[[str], object]]] = {
    formats.dns1123_label: re.compile(_LABEL).fullmatch,
    formats.dns1123_subdomain: re.compile(rf"(?!.{{254}}){_LABEL}(\.{_LABEL})*").fullmatch,
    formats.label_value: re.compile(rf"({_NAME})?").fullmatch,
    formats.qualified_name: re.compile(rf"((?!.{{200}}){_LABEL}(\.{_LABEL})*/)?{_NAME}").fullmatch,
    formats.relaxed_env_var_name: re.compile("[A-Za-z0-9_.-]+").fullmatch,
    formats.port_name: re.compile("[a-z]{1,15}").fullmatch,
}


def check(form: Check, value: str, path: Path, report: Report, *steps: str | int) -> bool:
    """Report what is wrong with the form of a text below `path`; returns whether nothing is."""
    fine = _FINE.get(form)
    if fine is not None and fine(value):
        return True
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
    """Check the keys of annotations, whose case does not matter, and their size."""
    size = 0
    for key in sorted(annotations):
        size += len(key) + len(annotations[key])
        if _FINE[formats.qualified_name](key):
            continue
        for message in formats.qualified_name(key.lower()):
            report.add(FORM, path, key, message=message)
    if size > MAX_ANNOTATIONS:
        report.add(ANNOTATIONS_TOO_LONG, path)
