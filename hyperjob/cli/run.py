"""`hyperjob run`: submit a training from a shell, as `train` of the SDK does."""

from contextlib import aclosing
from pathlib import Path
from typing import Any, get_args

import click

from hyperjob.cli.files import options
from hyperjob.cli.kubectl import exits
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, Parsed, access
from hyperjob.cli.logs import Printer
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.summary import read
from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.program import Framework
from hyperjob.sdk.training import trainer
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.resources import HYPERJOBS

_TEXTS = (
    ("--name", "Name.  [default: that of the program with six random digits]"),
    ("--accelerator", "Resource of --gpus.  [default: nvidia.com/gpu]"),
    ("--cpu", "CPU of each pod."),
    ("--memory", "Memory of each pod, such as 16Gi."),
    ("--image", "Image of the containers.  [default: python:3.12-slim]"),
    ("--workdir", "Folder whose Python files the pods get.  [default: that of the script]"),
    ("--shared-memory", "Size of /dev/shm, such as 8Gi."),
    ("--queue", "Queue of the sub-jobs."),
    ("--priority-class", "PriorityClass of the sub-jobs."),
    ("--checkpoint", "Directory or URL of the checkpoints."),
    ("--time-limit", "Run time after which the HyperJob fails, such as 2h."),
)
_NUMBERS = (
    ("--replicas", "Pods in all clusters together.  [default: one for each cluster]"),
    ("--gpus", "Accelerators of each pod."),
    ("--max-restarts", "How often all sub-jobs start again after a failure."),
    ("--quorum", "Least number of clusters that train on while the others restart."),
    ("--grace-seconds", "Seconds from SIGTERM to SIGKILL of each pod."),
)
_LISTS = (
    ("--package", "packages", "Requirement for pip, or one file of requirements."),
    ("--include", "include", "Other file of the folder for the pods, or a pattern."),
    ("--env-from-secret", "env_from_secret", "Secret whose keys become variables."),
    ("--toleration", "tolerations", "Toleration, such as key=value:NoSchedule."),
)
_PAIRS = (
    ("--env", "env", "NAME=VALUE", "Variable of the containers."),
    ("--label", "labels", "KEY=VALUE", "Label of the HyperJob."),
    ("--volume", "volumes", "PATH=CLAIM", "PersistentVolumeClaim at a path."),
    ("--node-selector", "node_selector", "KEY=VALUE", "Label of the nodes."),
)


def _pair(text: str) -> tuple[str, str]:
    key, sign, rest = text.partition("=")
    if not key or not sign:
        raise ValueError(f"{text!r} has no =")
    return key, rest


_options = options(
    *(click.option(flag, metavar="TEXT", help=text) for flag, text in _TEXTS),
    *(click.option(flag, type=int, metavar="N", help=text) for flag, text in _NUMBERS),
    *(
        click.option(flag, name, multiple=True, metavar="TEXT", help=f"{text} Repeatable.")
        for flag, name, text in _LISTS
    ),
    *(
        click.option(
            flag,
            name,
            type=Parsed("pair", _pair),
            multiple=True,
            metavar=form,
            help=f"{text} Repeatable.",
        )
        for flag, name, form, text in _PAIRS
    ),
)
"""The parameters of the SDK's `trainer` as options."""


@click.command()
@click.argument("words", metavar="PROGRAM [-- ARGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "--module", metavar="NAME", help="Run this module instead of a script.")
@click.option("--clusters", default="1", metavar="N|NAMES", help="Number of clusters, or names.")
@click.option("--framework", type=click.Choice(get_args(Framework)), help="[default: python]")
@_options
@access()
@click.option("-f", "--follow", is_flag=True, help="Print the logs until the HyperJob ends.")
@out.output(out.JSON, out.YAML, out.NAME)
def run(
    words: tuple[str, ...],
    module: str | None,
    clusters: str,
    access: Access,
    follow: bool,
    form: str,
    **given: Any,  # noqa: ANN401 - the parameters of the SDK
) -> None:
    """Submit a Python script or a module as a HyperJob, with the files of its folder.

    The options are the parameters of the SDK's `train`. With -o yaml or json the command prints the
    HyperJob and sends nothing.

    Exit code with -f: 0 if the HyperJob completes, 4 if it fails.

    Example: hyperjob run train.py --gpus 8 --clusters 2 --follow -- --lr 0.1
    """
    if not words and module is None:
        raise click.UsageError("give a script, or -m and a module")
    program, args = (f"-m {module}", words) if module else (words[0], words[1:])
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    chosen |= {name: dict(chosen[name]) for _, name, *_ in _PAIRS if name in chosen}
    where: int | list[str] = int(clusters) if clusters.isdigit() else clusters.split(",")
    number = where if isinstance(where, int) else len(where)
    packages = chosen.get("packages", ())
    if len(packages) == 1 and Path(packages[0]).is_file():
        chosen["packages"] = packages[0]
    chosen.setdefault("replicas", number)
    chosen["namespace"] = access.namespace
    try:
        hyperjob = trainer(program, args=list(args), clusters=where, **chosen)
    except (SourceError, ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None
    if form in (out.JSON, out.YAML):
        out.objects([hyperjob], form, single=True)
        return

    async def submit() -> None:
        async with access.connect() as kube:
            home = access.home(kube)
            made = await kube.create(HYPERJOBS, hyperjob, namespace=home)
            name = made["metadata"]["name"]
            title = f"hyperjob.training.volcano.sh/{name}"
            out.say([title if form == out.NAME else f"{title} created"])
            if not follow:
                return
            found = Following(kube, read(made), Wanted(hides=True), say=out.remark)
            printer = Printer(prefix=True, timestamps=False, as_json=False)
            async with aclosing(found.lines()) as lines:
                async for source, line in lines:
                    printer.print(source, line)
            last = read(await kube.get(HYPERJOBS, name, namespace=home))
        if last.phase != Phase.COMPLETED:
            out.remark(f"{title} is {last.phase}: {last.message}")
            raise SystemExit(exits.Code.NEVER)

    exits.run(submit())
