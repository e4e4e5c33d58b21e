"""`hyperjob sandbox`: an installation on this machine, and the loss of its clusters."""

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hyperjob.cli.files import data_file
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import run
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_core.tasks import cancel
from hyperjob_sandbox.local.parts import READY_FILE
from hyperjob_sandbox_cli.folders import ENDING, folder
from hyperjob_sandbox_cli.sandbox.options import cluster_options

if TYPE_CHECKING:
    from hyperjob_sandbox.clusters import SandboxConfig
    from hyperjob_sandbox.local.plane import PlaneOptions


@click.group()
def sandbox() -> None:
    """Run HyperJob on an embedded Karmada with member clusters, and lose a cluster.

    Example: hyperjob sandbox up --pods processes
    """


@sandbox.command()
@cluster_options
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the kubeconfigs.  [default: a new temporary folder, removed at the end]",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="With --bare: run Karmada's and the members' controllers against this API server instead"
    " of the embedded API server.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free port",
    help="Port of the Karmada API server.",
)
@click.option(
    "--cluster-lost-timeout",
    type=click.FloatRange(0, 86400),
    default=300.0,
    show_default=True,
    help="Seconds for which a cluster is not Ready before its sub-jobs count as lost.",
)
@click.option("--bare", is_flag=True, help="Start no webhook and no controller.")
@click.option("--ready-file", default=READY_FILE, hidden=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def up(
    clusters: Path | None,
    directory: Path | None,
    kubeconfig: Path | None,
    volcano_global: bool | None,
    pods: str | None,
    images: dict[str, str],
    speed: float | None,
    port: int,
    cluster_lost_timeout: float,
    bare: bool,
    ready_file: str,
    output: str,
) -> None:
    """Start control plane, members, webhook and controller, and run until Ctrl-C.

    The command prints the kubeconfigs, and applies no HyperJob.

    Example: hyperjob sandbox up --clusters clusters.yaml
    """
    from hyperjob_sandbox.clusters import SandboxConfigError, load
    from hyperjob_sandbox.local.parts import StackError
    from hyperjob_sandbox.local.plane import PlaneOptions

    if kubeconfig is not None and not bare:
        raise click.UsageError("--kubeconfig needs --bare: install HyperJob there yourself")

    try:
        file = clusters or data_file("examples/clusters.yaml")
        config = with_options(
            load(file), images=images, pods=pods, speed=speed, volcano_global=volcano_global
        )
    except SandboxConfigError as error:
        raise click.ClickException(str(error)) from None
    try:
        with folder(directory, prefix="hyperjob-") as where:
            if bare:
                running = _run_bare(config, where / ready_file, kubeconfig, port, output)
                asyncio.run(running)
            else:
                options = PlaneOptions(
                    clusters=file,
                    directory=where,
                    volcano_global=config.volcano_global.enabled,
                    pods=pods,
                    images=images,
                    speed=speed,
                    port=port,
                    cluster_lost_seconds=cluster_lost_timeout,
                )
                asyncio.run(_run_whole(options, [each.name for each in config.clusters], output))
    except (OSError, KubeError, ConfigError, StackError) as error:
        raise click.ClickException(str(error)) from None


def with_options(
    config: "SandboxConfig",
    *,
    images: Mapping[str, str],
    pods: str | None,
    speed: float | None,
    volcano_global: bool | None,
) -> "SandboxConfig":
    """Return a clusters file with the options of the command line in place of its own values.

    None keeps the value of the file. The patterns of `images` come before those of the file.
    """
    from hyperjob_sandbox.clusters import changed

    changes: dict[str, object] = {"images": {**images, **config.images, **images}}
    if pods is not None:
        changes["pods"] = pods
    if speed is not None:
        changes["speed"] = speed
    if volcano_global is not None:
        changes["volcano_global"] = config.volcano_global.model_copy(
            update={"enabled": volcano_global}
        )
    return changed(config, **changes)


@sandbox.command("lose")
@click.argument("cluster")
@access(namespaced=False)
def lose(cluster: str, access: Access) -> None:
    """Lose a cluster: its API server stops, and the processes of its pods are killed.

    Its sub-jobs count as lost after --cluster-lost-timeout of `hyperjob sandbox up`.

    Example: hyperjob sandbox lose gpu-east
    """
    _lose(cluster, access, lost=True)


@sandbox.command("restore")
@click.argument("cluster")
@access(namespaced=False)
def restore(cluster: str, access: Access) -> None:
    """Bring a lost cluster back.

    Example: hyperjob sandbox restore gpu-east
    """
    _lose(cluster, access, lost=False)


def _lose(cluster: str, access: Access, *, lost: bool) -> None:
    from hyperjob.client.reading import with_hint
    from hyperjob_core.kube.errors import NotFound
    from hyperjob_sandbox.outages import lose

    async def change() -> None:
        async with access.connect() as kube:
            try:
                await lose(kube, cluster, lost=lost)
            except NotFound as error:
                raise await with_hint(kube, error, None) from error

    run(change())
    click.echo(f"cluster {cluster} {'is lost' if lost else 'comes back'}: kubectl get clusters")


async def _run_whole(options: "PlaneOptions", members: Sequence[str], output: str) -> None:
    """Run the whole installation until a signal; raises StackError."""
    from hyperjob_sandbox.local.lifeline import lifeline
    from hyperjob_sandbox.local.plane import local_plane

    stop = _ending_event()

    async def live() -> None:
        async with lifeline() as line, local_plane(options, line) as plane:
            _announce(options.directory, members, output)
            await plane.failure()

    await _until_signal(live(), stop)


async def _run_bare(
    config: "SandboxConfig", ready: Path, api: Path | None, port: int, output: str
) -> None:
    """Run the control plane and its members alone until a signal."""
    from hyperjob_sandbox.topology import Topology

    stop = _ending_event()
    # Scripts wait for this file: a file of an earlier run must not announce this run as ready.
    ready.unlink(missing_ok=True)
    directory = ready.parent
    async with Topology(config, directory, api=api, port=port) as topology:
        _announce(directory, list(topology.clusters), output)
        if output != "json" and topology.machine is not None:
            click.echo(topology.machine.description + "\n")
        ready.touch()
        await _until_signal(topology.failure(), stop)


def _ending_event() -> asyncio.Event:
    """Return an event that a signal to end sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, *ENDING):
        loop.add_signal_handler(signum, stop.set)
    return stop


async def _until_signal(failure: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Wait for a signal to end; raises what failed before."""
    failing, stopping = asyncio.create_task(failure), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((failing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            failing.result()
    finally:
        await cancel([failing, stopping])


def _announce(directory: Path, members: Sequence[str], output: str) -> None:
    kubeconfig = directory / "karmada.kubeconfig"
    found = {name: directory / f"{name}.kubeconfig" for name in members}
    if output == "json":
        paths = {name: str(path) for name, path in found.items()}
        click.echo(json.dumps({"kubeconfig": str(kubeconfig), "members": paths}, indent=2))
    else:
        click.echo("The Karmada control plane and its members are ready.\n")
        for name, path in found.items():
            click.echo(f"  {name:24} {path}")
        click.echo(f"\nexport KUBECONFIG={kubeconfig}\nkubectl get clusters\n")
        click.echo("Ctrl-C stops them.")
    sys.stdout.flush()
