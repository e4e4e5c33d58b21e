"""`hyperjob demo`: install HyperJob in an embedded Karmada, apply HyperJobs and show them."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hyperjob_sandbox_cli.folders import ENDING
from hyperjob_sandbox_cli.sandbox.options import cluster_options

if TYPE_CHECKING:
    from hyperjob_sandbox_cli.demo.run import Demo, DemoResult

_T = TypeVar("_T")

EXAMPLES = (
    "llm-training.yaml",
    "ascend-heterogeneous-training.yaml",
    "torchrun-gang.yaml",
    "mpi-gang.yaml",
    "queue.yaml",
)

_SECONDS: Final = 600.0
"""The time without a change of any HyperJob after which the demo fails."""

TRAINING = ("training.yaml",)
"""The example that the demo applies where pods are processes of this machine."""


@click.command()
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="HyperJobs to apply instead of the examples; may be given more than once.",
)
@cluster_options
@click.option(
    "--keep/--no-keep",
    default=None,
    help="Keep the control plane running afterwards.  [default: on a terminal, yes]",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for kubeconfigs and logs.  [default: a new temporary folder, removed at the end]",
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
    output: str,
) -> None:
    """Watch HyperJobs run across simulated clusters, from admission to their end.

    The command starts an embedded Karmada with its members, and the webhook and the controller as
    separate processes, applies HyperJobs with kubectl and shows them until they end.

    Exit code 0: all HyperJobs have completed; 1: a HyperJob has failed, or no HyperJob changed
    for 10 minutes; 2: a process did not start.

    Example: hyperjob demo --speed 2 -f my-hyperjob.yaml
    """
    from hyperjob.cli.files import data_file
    from hyperjob.cli.kubectl.output import TerminalConsole
    from hyperjob_sandbox.clusters import SandboxConfigError, load
    from hyperjob_sandbox.local.plane import PlaneOptions
    from hyperjob_sandbox_cli.demo.run import Demo, Options

    file = clusters or data_file("examples/clusters.yaml")
    try:
        config = load(file)
    except SandboxConfigError as error:
        raise click.ClickException(str(error)) from None
    if volcano_global is None:
        volcano_global = config.volcano_global.enabled
    # The programs of the other examples are in their images, and a process has no image.
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
        seconds=_SECONDS,
        output=output,
    )
    show = Demo(options, TerminalConsole(markup=True))
    result = _played(show, where, keeps_folder=directory is not None)
    if output == "json":
        click.echo(result.to_json())
    sys.exit(0 if result.completed else 1)


def _played(show: "Demo", where: Path, *, keeps_folder: bool) -> "DemoResult":
    """Return the result of the demo; exit where it does not start or is interrupted.

    The folder is removed at the end, unless it is to be kept or has the log of an error.
    """
    from hyperjob_sandbox.local.parts import StackError

    forget = _keep if keeps_folder else partial(remove_keys, where)
    try:
        return asyncio.run(ended_by_signals(show.run(), first=forget))
    except StackError as error:
        forget()
        keeps_folder = True  # the error names a log file in the folder
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        if not keeps_folder:
            shutil.rmtree(where, ignore_errors=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _keep() -> None:
    """Keep the folder as it is: the user named it."""


def remove_keys(where: Path) -> None:
    """Remove certificates, kubeconfigs and pods from a demo's folder; the logs stay."""
    for each in where.iterdir():
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        elif each.suffix != ".log":
            each.unlink(missing_ok=True)


async def ended_by_signals(work: Coroutine[Any, Any, _T], *, first: Callable[[], None]) -> _T:
    """Run `work` in a task that the first signal cancels: every process ends with the demo.

    `first` is called as soon as the signal arrives: the processes may take seconds to end, and the
    sender of the signal may not wait for them. Later signals are ignored.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def end() -> None:
        if not task.cancelling():
            first()
            task.cancel()

    for number in (signal.SIGINT, *ENDING):
        loop.add_signal_handler(number, end)
    return await task
