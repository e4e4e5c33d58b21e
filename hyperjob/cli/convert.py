"""`hyperjob convert`: the HyperJobs of jobs of other kinds, without an API server."""

import sys
from collections.abc import Sequence

import click

from hyperjob.cli.files import manifests_option
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.lint.documents import manifest_of
from hyperjob.client.foreign import converted, form_of
from hyperjob_core.api.meta import Object
from hyperjob_core.yamltext import to_yaml
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect


@click.command()
@manifests_option(
    "File with vcjobs, JobSets, PyTorchJobs or Kubernetes Jobs; - is standard input. May be given"
    " more than once."
)
def convert(files: Sequence[str]) -> None:
    """Print the HyperJobs of vcjobs, JobSets, PyTorchJobs and Kubernetes Jobs.

    A HyperJob has the pods, the order and the end of its job; it starts as a gang and runs on any
    cluster of the fleet. The command converts a job only if the HyperJob can express all of its
    fields, and prints the objects of other kinds to no output.

    Exit code 0: every job was converted; 1: a job has fields that a HyperJob cannot express, or
    admission would refuse its HyperJob; 2: a file cannot be read, or contains no such job.

    Example: hyperjob convert -f vcjob.yaml
    """
    if not files:
        raise FailureError("give a file with -f", code=Code.USAGE)
    made: list[Object] = []
    problems: list[str] = []
    for name in files:
        for document in manifest_of(name).documents:
            form = form_of(document.content)
            if form is None:
                continue
            hyperjob, told = converted(document.content, form)
            refusals = told.refusals
            if not refusals:
                report = inspect(hyperjob, context=NOTHING_KNOWN, strict=True)
                refusals = [str(found.error) for found in report.refusals]
            problems += [f"{name}:{document.line}: {form.title}: {each}" for each in refusals]
            made += [] if refusals else [hyperjob]
            for each in told.remarks if not refusals else ():
                click.echo(f"warning: {name}:{document.line}: {form.title}: {each}", err=True)
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    click.echo("---\n".join(to_yaml(each, sort_keys=False) for each in made), nl=False)
    if not made and not problems:
        raise FailureError(
            "the files contain no vcjob, JobSet, PyTorchJob or Kubernetes Job", code=Code.USAGE
        )
    sys.exit(1 if problems else 0)
