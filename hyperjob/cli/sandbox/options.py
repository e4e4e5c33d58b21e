"""The options by which `sandbox up` and `demo` say which clusters they simulate, and how."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a command gets as `clusters`, `volcano_global`, `pods`, `images` and `speed`."""
    command = click.option(
        "--speed", type=click.FloatRange(min=0.01), help="Run simulated time faster."
    )(command)
    command = click.option(
        "--image",
        "images",
        multiple=True,
        metavar="NAME=ENVIRONMENT",
        callback=_images,
        help="Virtual environment or command prefix that replaces an image where pods are"
        " processes; may be given more than once, * is a wildcard.  [default: this Python]",
    )(command)
    command = click.option(
        "--pods",
        type=click.Choice(["simulated", "processes"]),
        help="Whether containers are simulated or run as processes of this machine."
        "  [default: as the clusters file says: simulated]",
    )(command)
    command = click.option(
        "--volcano-global/--no-volcano-global",
        default=None,
        help="Whether Volcano Global admits to queues, or HyperJob does.  [default: as the clusters"
        " file says: HyperJob]",
    )(command)
    return click.option(
        "--clusters",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Clusters, sizes, run times and failures as YAML.  [default: examples/clusters.yaml]",
    )(command)


def _images(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, environment = value.partition("=")
        if not equals or not name or not environment:
            raise click.BadParameter(f"{value!r}: expected NAME=ENVIRONMENT", context, parameter)
        found[name] = environment
    return found
