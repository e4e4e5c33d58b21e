"""`hyperjob lint`: validate HyperJobs and TrainJobs in files as admission does, without a server.

The command checks the CRD's schema as the API server does, then runs the webhook's defaulting and
validation. It makes no request, and cannot check whether clusters and queues exist.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from hyperjob.cli.lint.documents import Document, ManifestFile, UnreadableError, files_of, read
from hyperjob.client.foreign import form_of
from hyperjob_core.api.field import METADATA, ErrorType, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, GROUP, KIND
from hyperjob_core.api.trainer import (
    CLUSTER_RUNTIME_KIND,
    RUNS_AS,
    RUNS_AS_HYPERJOB,
    RUNTIME_KIND,
    TRAINER_CONTROLLER,
    TRAINER_GROUP,
    TRAINJOB_KIND,
)
from hyperjob_core.api.wire import at, mapping, string
from hyperjob_core.text import did_you_mean, is_typo, listed
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.rules import rule_of
from hyperjob_trainjobs.decide import judge, runs_as_hyperjob

LIST_KIND: Final = f"{KIND}List"
_KUBECTL: Final = "kubectl"
"""The rule of a warning about what kubectl does with a file."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS: Final = 262_144
"""The bytes of all annotations of an object that an API server stores."""
_METADATA: Final = frozenset(
    (
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)


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
    """A HyperJob or a TrainJob, and the errors and warnings of admission for it."""

    name: str
    line: int
    errors: tuple[LintFinding, ...]
    warnings: tuple[LintFinding, ...]
    kind: str = KIND


@dataclass(frozen=True, slots=True)
class Checked:
    """A file, its HyperJobs, and why it could not be read."""

    name: str
    documents: tuple[CheckedDocument, ...] = ()
    problem: str = ""
    jobs: tuple[str, ...] = ()
    """What the jobs of other kinds are, and what to do with them."""
    others: tuple[str, ...] = ()
    """The kinds of the other objects."""


Runtimes = Mapping[tuple[str, str], Object]
"""Runtimes of Trainer, by kind and name."""


def runtimes_of(sources: Iterable[ManifestFile]) -> Runtimes:
    """Return the runtimes of Trainer in all files."""
    return {
        (kind, string(at(document.content, "metadata", "name"))): document.content
        for source in sources
        for document in source.documents
        if (kind := _of_trainer(document.content)) in (CLUSTER_RUNTIME_KIND, RUNTIME_KIND)
    }


def check(source: ManifestFile, runtimes: Runtimes) -> Checked:
    """Return the findings for the HyperJobs of a file, and for the TrainJobs of `runtimes`."""
    found, jobs, kinds = [], [], []
    for document in source.documents:
        content = document.content
        if is_hyperjob(content):
            found.append(_checked_document(document))
        elif (runtime := runtimes.get(_runtime_of(content))) is not None:
            found.append(_checked_trainjob(document, runtime))
        else:
            jobs.append(_foreign(document, source.name))
            kinds.append(str(content.get("kind") or "object"))
    return Checked(source.name, tuple(found), jobs=(*filter(None, jobs),), others=tuple(kinds))


def _of_trainer(content: Object) -> str:
    """Return the kind of an object of Trainer; empty for another object."""
    group = string(content.get("apiVersion")).partition("/")[0]
    return string(content.get("kind")) if group == TRAINER_GROUP else ""


def _runtime_of(content: Object) -> tuple[str, str]:
    """Return kind and name of the runtime of a TrainJob; empty texts for another object."""
    if _of_trainer(content) != TRAINJOB_KIND:
        return "", ""
    reference = mapping(at(content, "spec", "runtimeRef"))
    return string(reference.get("kind")) or CLUSTER_RUNTIME_KIND, string(reference.get("name"))


def _checked_trainjob(document: Document, runtime: Object) -> CheckedDocument:
    """Return what the webhook would say about a TrainJob that runs as a HyperJob."""
    trainjob = document.content
    namespace: Object = {"metadata": {"labels": {RUNS_AS: RUNS_AS_HYPERJOB}}}
    decided = judge(trainjob, None, runtime, namespace, NOTHING_KNOWN)
    errors = [_error(document, TRAINJOB_KIND, each, each.remedy) for each in decided.errors]
    texts = [f"its HyperJob: {text}" for text in decided.warnings]
    manager = string(at(trainjob, "spec", "managedBy")) or TRAINER_CONTROLLER
    if manager != TRAINER_CONTROLLER:
        texts.append(f"spec.managedBy is {manager}: HyperJob leaves the TrainJob alone")
    elif not runs_as_hyperjob(trainjob, runtime, None):
        texts.append(
            f"runs as a HyperJob only in a namespace with the label {RUNS_AS}={RUNS_AS_HYPERJOB}:"
            " neither the TrainJob nor its runtime has it"
        )
    warnings = [LintFinding(TRAINJOB_KIND, document.line, text) for text in texts]
    name = _full_name(trainjob)
    return CheckedDocument(
        name, document.line, _in_order(errors), _in_order(warnings), TRAINJOB_KIND
    )


def _foreign(document: Document, name: str) -> str:
    """Return what a job of another kind is, and what to do with it; empty for another object."""
    form = form_of(document.content)
    if form is None:
        return ""
    advice = form.advice or f"hyperjob convert -f {name} prints its HyperJob"
    kind, runtime = _runtime_of(document.content)
    if runtime:
        advice += f"; give the file of {kind} {runtime} too, and lint checks it"
    whose = _full_name(document.content) or "(no name)"
    return f"{name}:{document.line}: {form.title} {whose}: is no HyperJob; {advice}"


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
    report = inspect(content, context=NOTHING_KNOWN, strict=True)
    errors = head_errors(document)
    errors += [_error(document, each.rule.id, each.error, each.remedy) for each in report.refusals]
    warnings = kubectl_warnings(document)
    for found in report.remarks:
        line = document.line_of(found.text.partition(": ")[0])
        warnings.append(LintFinding(found.rule.id, line, found.text, remedy=found.rule.remedy))
    return CheckedDocument(
        _full_name(content), document.line, _in_order(errors), _in_order(warnings)
    )


def _in_order(findings: list[LintFinding]) -> tuple[LintFinding, ...]:
    """Return each finding once, in the order of lines."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda found: found.line))


def head_errors(document: Document) -> list[LintFinding]:
    """Check what the API server checks of a request: apiVersion, kind, the fields of metadata."""
    found, content, unknown = [], document.content, rule_of("T3.unknown")
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        given = content.get(field)
        if given == wanted or (not given and any(is_typo(key, field) for key in content)):
            continue  # a misspelt name has an error of its own
        reason, message = ErrorType.REQUIRED, "Required value"
        if given:
            reason = ErrorType.NOT_SUPPORTED
            message = f'Unsupported value: "{given}": supported values: "{wanted}"'
        line = document.line_of(field)
        found.append(
            LintFinding("T4.enum", line, f"{field}: {message}", field, reason.value, message)
        )
    metadata = content.get("metadata")
    for name in metadata if isinstance(metadata, dict) else ():
        if name not in _METADATA:
            error = unknown.at(METADATA.child(name), hint=did_you_mean(name, _METADATA))
            found.append(_error(document, unknown.id, error, ""))
    return found


def kubectl_warnings(document: Document) -> list[LintFinding]:
    """Return what kubectl drops without a word, and that `kubectl apply` cannot store an object."""
    found = [LintFinding(_KUBECTL, each.line, each.text) for each in document.remarks]
    size = _applied_bytes(document.content)
    if size > _MAX_ANNOTATIONS:
        text = (
            f"kubectl apply cannot store this object: it copies the object into the annotation"
            f" {_LAST_APPLIED}, and the annotations then have {size} of at most {_MAX_ANNOTATIONS}"
            f" bytes"
        )
        remedy = (
            "use kubectl apply --server-side or kubectl create, or move long texts to a ConfigMap"
        )
        found.append(LintFinding(_KUBECTL, document.line, text, remedy=remedy))
    return found


def _applied_bytes(content: Object) -> int:
    """Return the bytes of an object's annotations after `kubectl apply`."""
    metadata = mapping(content.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    own = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    named = {"namespace": "default", **metadata, "annotations": own}
    copied = json.dumps({**content, "metadata": named}, separators=(",", ":"), ensure_ascii=False)
    escaped = sum(map(copied.count, "<>&")) * len("u003c")  # Go writes each as six characters
    texts = (text for pair in own.items() for text in pair if isinstance(text, str))
    size = sum(len(each.encode()) for each in (_LAST_APPLIED, copied, *texts))
    return size + escaped + len("\n")


def _error(document: Document, rule: str, error: FieldError, remedy: str) -> LintFinding:
    line = document.line_of(error.field)
    return LintFinding(rule, line, str(error), error.field, error.type.value, error.body, remedy)


def _full_name(content: Object) -> str:
    metadata = mapping(content.get("metadata"))
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


OK, REFUSED, UNREADABLE = 0, 1, 2


@click.command()
@click.argument(
    "files", type=click.Path(allow_dash=True), metavar="FILE...", nargs=-1, required=True
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--allow-none", is_flag=True, help="Accept files and folders that contain no HyperJob."
)
def lint(files: tuple[str, ...], output: str, allow_none: bool) -> None:
    """Validate HyperJobs in files as admission does; `-` is standard input.

    A TrainJob is validated if its runtime is in one of the files too.

    In a folder, the command validates every .yaml, .yml and .json file, without subfolders.

    Exit code 0: admission would accept all HyperJobs; 1: admission would refuse a HyperJob, or a
    file or folder contains no HyperJob; 2: a file cannot be read.

    Example: hyperjob lint job.yaml
    """
    given = {name: files_of(name) for name in files}
    sources = [_source(name) for names in given.values() for name in names]
    runtimes = runtimes_of(each for each in sources if isinstance(each, ManifestFile))
    checked = [
        check(each, runtimes) if isinstance(each, ManifestFile) else each for each in sources
    ]
    (print_json if output == "json" else print_text)(checked)
    code = _exit_code(checked)
    empty = [] if allow_none else _without_any(given, checked)
    for text in (text for each in checked for text in each.jobs):
        click.echo(text, err=True)
    for name in empty:
        kinds = [kind for each in checked if each.name in given[name] for kind in each.others]
        but = f", but {listed(list(dict.fromkeys(kinds)))}" if kinds else ""
        hint = "--allow-none accepts that"
        click.echo(f"error: {name}: contains no HyperJob{but}; {hint}", err=True)
    sys.exit(code or (REFUSED if empty else OK))


def _without_any(given: Mapping[str, Sequence[str]], checked: Sequence[Checked]) -> list[str]:
    """Return the names of files and folders that were read and contain no HyperJob."""
    without = {each.name for each in checked if not each.documents and not each.problem}
    return [name for name, files in given.items() if without.issuperset(files)]


def _source(name: str) -> ManifestFile | Checked:
    """Read a file; the result is a Checked with the reason if it cannot be read."""
    try:
        return read(name)
    except UnreadableError as error:
        return Checked(name, problem=str(error))


def _exit_code(results: Iterable[Checked]) -> int:
    code = OK
    for result in results:
        if result.problem:
            return UNREADABLE
        if any(document.errors for document in result.documents):
            code = REFUSED
    return code


def print_text(results: Sequence[Checked]) -> None:
    """Print one line for each finding, with file and line as compilers do, and a summary."""
    for result in results:
        name = "<stdin>" if result.name == "-" else result.name
        for document in result.documents:
            _print_document(name, document)
        if result.problem:
            click.echo(f"error: {name}: {result.problem}", err=True)


def _print_document(name: str, document: CheckedDocument) -> None:
    for kind, findings in (("error", document.errors), ("warning", document.warnings)):
        for found in findings:
            click.echo(f"{name}:{found.line}: {kind}: {found.text} [{found.rule}]")
            if found.remedy:
                click.echo(f"    remedy: {found.remedy}")
    what = f"{name}:{document.line}: {document.kind} {document.name or '(no name)'}"
    verdict = "would be refused" if document.errors else "would be accepted"
    click.echo(f"{what}: {verdict}{_counts(document)}")


def _counts(document: CheckedDocument) -> str:
    counts = [
        f"{len(findings)} {noun}{'' if len(findings) == 1 else 's'}"
        for findings, noun in ((document.errors, "error"), (document.warnings, "warning"))
        if findings
    ]
    return f", {', '.join(counts)}" if counts else ""


def print_json(results: Sequence[Checked]) -> None:
    """Print the results as one JSON object."""
    documents = [document for result in results for document in result.documents]
    answer = {
        "errors": sum(len(document.errors) for document in documents),
        "warnings": sum(len(document.warnings) for document in documents),
        "files": [_file(result) for result in results],
    }
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def _file(result: Checked) -> dict[str, Any]:
    hyperjobs = [
        {
            "kind": document.kind,
            "name": document.name,
            "line": document.line,
            "errors": [_without(asdict(found), "text") for found in document.errors],
            "warnings": [
                _without({**asdict(found), "message": found.text}, "text", "field", "reason")
                for found in document.warnings
            ],
        }
        for document in result.documents
    ]
    problem = {"problem": result.problem} if result.problem else {}
    return {"file": result.name, **problem, "hyperJobs": hyperjobs}


def _without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in names}
