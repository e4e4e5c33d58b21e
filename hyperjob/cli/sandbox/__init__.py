"""`hyperjob sandbox`: the embedded control plane and its members, without webhook or controller."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hyperjob.cli.data import data_file
from hyperjob.cli.folders import ENDING, folder
from hyperjob.cli.sandbox.options import cluster_options
from hyperjob.local.ready import READY_FILE
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_core.tasks import cancel

if TYPE_CHECKING:
    from hyperjob.cli.embedded import SandboxConfig, Topology


@click.group()
def sandbox() -> None:
    """Run the embedded Karmada control plane alone."""


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
    help="Run Karmada's and the members' controllers against this API server instead of the"
    " embedded API server.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free port",
    help="Port of the Karmada API server.",
)
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
    output: str,
) -> None:
    """Start the embedded control plane, print its kubeconfigs, and run until Ctrl-C.

    Example: hyperjob sandbox up --clusters clusters.yaml
    """
    from hyperjob.cli.embedded import SandboxConfigError, changed, load

    try:
        config = load(clusters or data_file("examples/clusters.yaml"))
        changes: dict[str, object] = {"images": {**images, **config.images}}
        if pods is not None:
            changes["pods"] = pods
        if speed is not None:
            changes["speed"] = speed
        if volcano_global is not None:
            changes["volcano_global"] = config.volcano_global.model_copy(
                update={"enabled": volcano_global}
            )
        config = changed(config, **changes)
    except SandboxConfigError as error:
        raise click.ClickException(str(error)) from None
    try:
        with folder(directory, prefix="hyperjob-") as where:
            asyncio.run(_run(config, where, api=kubeconfig, port=port, output=output))
    except (OSError, KubeError, ConfigError) as error:
        raise click.ClickException(str(error)) from None


async def _run(
    config: "SandboxConfig", directory: Path, *, api: Path | None, port: int, output: str
) -> None:
    from hyperjob.cli.embedded import Topology

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, *ENDING):
        loop.add_signal_handler(signum, stop.set)
    # Scripts wait for this file: a file of an earlier run must not announce this run as ready.
    (directory / READY_FILE).unlink(missing_ok=True)
    async with Topology(config, directory, api=api, port=port) as topology:
        _announce(topology, output)
        (directory / READY_FILE).touch()
        failing = asyncio.create_task(topology.failure())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((failing, stopping), return_when=asyncio.FIRST_COMPLETED)
            if failing.done():
                failing.result()
        finally:
            await cancel([failing, stopping])


def _announce(topology: "Topology", output: str) -> None:
    if output == "json":
        ready = {
            "kubeconfig": str(topology.kubeconfig),
            "members": {
                name: str(cluster.kubeconfig) for name, cluster in topology.clusters.items()
            },
        }
        click.echo(json.dumps(ready, indent=2))
    else:
        click.echo("The Karmada control plane and its members are ready.\n")
        for name, cluster in topology.clusters.items():
            click.echo(f"  {name:24} {cluster.kubeconfig}")
        click.echo(f"\nexport KUBECONFIG={topology.kubeconfig}\nkubectl get clusters\n")
        if topology.machine is not None:
            click.echo(topology.machine.description + "\n")
        click.echo("No webhook and no controller runs: `hyperjob demo --keep` starts them too.")
        click.echo("Ctrl-C stops the control plane.")
    sys.stdout.flush()
