"""`hyperjob sandbox`: the embedded control plane and its members, without webhook or controller."""

import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path

import click

from hyperjob.cli.data import data_file


@click.group()
def sandbox() -> None:
    """Run the embedded control plane on its own."""


@sandbox.command()
@click.option(
    "--clusters",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Clusters, sizes, run times and failures as YAML.  [default: those of the demo]",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the kubeconfigs go.  [default: a new temporary folder]",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Drive this API server instead of the embedded one.",
)
@click.option("--speed", type=click.FloatRange(min=0.01), help="Run simulated time faster.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="Port of the Karmada API server.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def up(
    clusters: Path | None,
    directory: Path | None,
    kubeconfig: Path | None,
    speed: float | None,
    port: int,
    output: str,
) -> None:
    """Start it, print how to reach it, and run until Ctrl-C.

    Example: hyperjob sandbox up --clusters clusters.yaml
    """
    from hyperjob.sandbox.clusters import SandboxConfigError, load

    try:
        config = load(clusters or data_file("examples/clusters.yaml"))
    except SandboxConfigError as error:
        raise click.ClickException(str(error)) from None
    if speed is not None:
        config = config.model_copy(update={"speed": speed})
    where = directory or Path(tempfile.mkdtemp(prefix="hyperjob-"))
    where.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_up(config, where, kubeconfig, port, output))
    except OSError as error:
        raise click.ClickException(str(error)) from None
