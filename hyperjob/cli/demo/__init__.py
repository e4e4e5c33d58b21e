"""`hyperjob demo`: the whole road on this machine, as a user would have it."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from hyperjob.cli.folders import ENDING
from hyperjob.cli.sandbox.options import cluster_options

_T = TypeVar("_T")

EXAMPLES = (
    "llm-training.yaml",
    "ascend-heterogeneous-training.yaml",
    "torchrun-gang.yaml",
    "mpi-gang.yaml",
    "queue.yaml",
)

TRAINING = ("training.yaml",)
"""What runs where pods are processes of this machine."""


@click.command()
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="HyperJobs to run instead of the examples; may be given more than once.",
)
@cluster_options
@click.option(
    "--keep/--no-keep",
    default=None,
    help="Go on running afterwards.  [default: on a terminal, yes]",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where kubeconfigs and logs go.  [default: a new temporary folder, removed at the end]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120,
    show_default=True,
    help="Seconds that may pass without a change of any HyperJob.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def demo(
    manifests: tuple[Path, ...],
    clusters: Path | None,
    volcano_global: bool | None,
    pods: str | None,
    images: dict[str, str],
    speed: float | None,
    keep: bool | None,
    directory: Path | None,
    timeout: float,
    output: str,
) -> None:
    """Watch HyperJobs being admitted, split, queued, placed, run and finished.

    Starts an embedded Karmada with its members, the webhook and the controller as processes of
    their own, applies HyperJobs with kubectl and shows them until they end. Exits with 0 when
    all completed, 1 when one failed or nothing changed for too long, 2 when a part did not come up.

    Example: hyperjob demo --speed 2 -f my-hyperjob.yaml
    """
    from hyperjob.cli.data import data_file
    from hyperjob.cli.demo.run import Demo, Options
    from hyperjob.cli.embedded import SandboxConfigError, load
    from hyperjob.cli.kubectl.output import TerminalConsole
    from hyperjob.local.parts import StackError
    from hyperjob.local.plane import PlaneOptions

    file = clusters or data_file("examples/clusters.yaml")
    try:
        config = load(file)
    except SandboxConfigError as error:
        raise click.ClickException(str(error)) from None
    if volcano_global is None:
        volcano_global = config.volcano_global.enabled
    # What the other examples run is in their images, and a process has none.
    processes = (pods or config.pods) == "processes"
    examples = TRAINING if processes else EXAMPLES
    where = directory or Path(tempfile.mkdtemp(prefix="hyperjob-demo-"))
    where.mkdir(parents=True, exist_ok=True)
    options = Options(
        plane=PlaneOptions(
            clusters=file,
            directory=where,
            volcano_global=volcano_global,
            pods=pods,
            images=images,
            speed=speed,
        ),
        manifests=manifests or tuple(data_file(f"examples/{name}") for name in examples),
        keep=sys.stdout.isatty() if keep is None else keep,
        logs=processes,
        seconds=timeout,
        output=output,
    )
    keeps_folder = directory is not None
    try:
        result = asyncio.run(
            _cancelled_by_sigterm(Demo(options, TerminalConsole(markup=True)).run())
        )
    except StackError as error:
        keeps_folder = True  # the error names a log in it
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    finally:
        if not keeps_folder:
            shutil.rmtree(where, ignore_errors=True)
    if output == "json":
        click.echo(result.to_json())
    sys.exit(0 if result.completed else 1)


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, _T]) -> _T:
    """Do the work in a task that SIGTERM and SIGHUP cancel, so that no part outlives the demo."""
    task = asyncio.ensure_future(work)
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task
