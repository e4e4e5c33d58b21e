"""Validate the HyperJobs of a file: the webhook's errors and warnings, with line numbers."""

from dataclasses import dataclass
from typing import Any, Final

from hyperjob.cli.lint.documents import Document, ManifestFile
from hyperjob_core.api.field import ErrorType, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, GROUP, KIND
from hyperjob_core.hints import is_typo
from hyperjob_rules.defaulting import default
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect

LIST_KIND: Final = f"{KIND}List"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """An error or a warning that admission would return."""

    rule: str
    line: int
    text: str
    field: str = ""
    reason: str = ""
    message: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A HyperJob, and the errors and warnings of admission for it."""

    name: str
    line: int
    errors: tuple[LintFinding, ...]
    warnings: tuple[LintFinding, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A file, its HyperJobs, and why it could not be read."""

    name: str
    documents: tuple[CheckedDocument, ...] = ()
    problem: str = ""


def check(source: ManifestFile) -> Checked:
    """Return the findings for the HyperJobs of a file."""
    ours = (document for document in source.documents if is_hyperjob(document.content))
    return Checked(source.name, tuple(map(_checked_document, ours)))


def is_hyperjob(content: Object) -> bool:
    """Return whether an object is a HyperJob, or is probably meant to be a HyperJob.

    Misspellings count: `kind: Hyperjob`, and any kind in HyperJob's API group or a similar group.
    """
    kind, version = content.get("kind"), content.get("apiVersion")
    group = version.partition("/")[0] if isinstance(version, str) else ""
    return (
        kind == KIND
        or (isinstance(kind, str) and is_typo(kind, KIND))
        or (group == GROUP and kind != LIST_KIND)
        or (kind is None and is_typo(group, GROUP))
    )


def _checked_document(document: Document) -> CheckedDocument:
    """Return what admission would say about a HyperJob that an API server without others gets."""
    content = document.content
    report = inspect(default(content), context=NOTHING_KNOWN, strict=True)
    errors = [
        LintFinding(
            found.rule.id,
            document.line_of(found.error.field),
            str(found.error),
            *_cause_of(found.error),
            remedy=found.rule.remedy,
        )
        for found in report.refusals
    ]
    warnings = [
        LintFinding(
            found.rule.id,
            document.line_of(found.text.partition(": ")[0]),
            found.text,
            remedy=found.rule.remedy,
        )
        for found in report.remarks
    ]
    errors = [*head_errors(document), *errors]
    return CheckedDocument(
        _full_name(content), document.line, _in_order(errors), _in_order(warnings)
    )


def _in_order(findings: list[LintFinding]) -> tuple[LintFinding, ...]:
    """Return each finding once, in the order of lines."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda found: found.line))


def head_errors(document: Document) -> list[LintFinding]:
    """Check apiVersion and kind, which the API server checks against the path of a request."""
    found = []
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        given = document.content.get(field)
        if given == wanted:
            continue
        reason, message = ErrorType.REQUIRED, "Required value"
        if given:
            reason = ErrorType.NOT_SUPPORTED
            message = f'Unsupported value: "{given}": supported values: "{wanted}"'
        line = document.line_of(field)
        found.append(LintFinding("T4", line, f"{field}: {message}", field, reason.value, message))
    return found


def _cause_of(error: FieldError) -> tuple[str, str, str]:
    """Return field, reason and message of an error."""
    return error.field, error.type.value, error.body


def _full_name(content: Object) -> str:
    metadata: Any = content.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)
