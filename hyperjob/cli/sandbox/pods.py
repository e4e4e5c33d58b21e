"""The options `--pods` and `--image`, alike for `sandbox up` and `demo`."""

from collections.abc import Callable
from typing import Any

import click


def pod_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--pods` and `--image` to a command; it gets `pods` and the mapping `images`."""
    command = click.option(
        "--image",
        "images",
        multiple=True,
        metavar="NAME=ENVIRONMENT",
        callback=_images,
        help="Virtual environment or command prefix that stands in for an image where pods are"
        " processes; may be given more than once, * is a wildcard.  [default: this Python]",
    )(command)
    return click.option(
        "--pods",
        type=click.Choice(["simulated", "processes"]),
        help="Whether containers are simulated or run as processes of this machine."
        "  [default: as the clusters file says: simulated]",
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
