"""The options of `sandbox up` and `demo` for the simulated clusters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `clusters`, `volcano_global`, `pods`, `images` and `speed` to a command."""
    command = click.option(
        "--speed",
        type=click.FloatRange(min=0.01),
        help="Factor by which simulated time runs faster.",
    )(command)
    command = click.option(
        "--image",
        "images",
        multiple=True,
        metavar="NAME=ENVIRONMENT",
        callback=_images,
        help="Virtual environment or command prefix in place of an image, where pods are"
        " processes; * is a wildcard; may be given more than once.  [default: this Python]",
    )(command)
    command = click.option(
        "--pods",
        type=click.Choice(["simulated", "processes"]),
        help="Simulate containers, or run them as processes of this machine.  [default: the"
        " clusters file's choice, else simulated]",
    )(command)
    command = click.option(
        "--volcano-global/--no-volcano-global",
        default=None,
        help="Admit by Volcano Global's queues, or by the built-in queues.  [default: the"
        " clusters file's choice, else built-in]",
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
