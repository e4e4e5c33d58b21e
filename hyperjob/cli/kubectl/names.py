"""Names of HyperJobs on the command line, and those that the API server offers to complete."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hyperjob.api.names import GROUP
from hyperjob.cli.kubectl.access import Access
from hyperjob.kube.errors import ConfigError, KubeError
from hyperjob.kube.resources import HYPERJOBS

_PREFIXES = frozenset({"hj", "hyperjob", "hyperjobs", f"hyperjob.{GROUP}", f"hyperjobs.{GROUP}"})
_COMPLETION_SECONDS = 3.0

_F = TypeVar("_F", bound=Callable[..., Any])


class HyperJobName(click.ParamType[str]):
    """A name, also as `kubectl get -o name` prints it."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Strip `hyperjob.training.volcano.sh/`; another kind is a usage error."""
        kind, slash, name = str(value).rpartition("/")
        if (slash and kind.lower() not in _PREFIXES) or not name:
            self.fail(f"{value!r} names no HyperJob: give a name, or hj/NAME", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the HyperJobs of the namespace; nothing when they cannot be read in time."""
        given = ctx.params
        access = Access(
            kubeconfig=given.get("kubeconfig"),
            context=given.get("context"),
            namespace=given.get("namespace"),
            request_timeout=_COMPLETION_SECONDS,
        )
        taken = given.get(param.name or "") or ()
        with suppress(KubeError, ConfigError):
            return [
                CompletionItem(name, help=phase)
                for name, phase in asyncio.run(_offered(access))
                if name.startswith(incomplete) and name not in taken
            ]
        return []


async def _offered(access: Access) -> list[tuple[str, str]]:
    async with access.connect() as kube:
        listed = await kube.list(HYPERJOBS, namespace=access.home(kube))
    return [
        (
            item["metadata"]["name"],
            str(((item.get("status") or {}).get("state") or {}).get("phase") or ""),
        )
        for item in listed.items
    ]


def name_argument() -> Callable[[_F], _F]:
    """Give a command one HyperJob."""
    return click.argument("name", type=HyperJobName())


def names_argument(*, required: bool) -> Callable[[_F], _F]:
    """Give a command HyperJobs."""
    return click.argument(
        "names", metavar="[NAME]..." if not required else "NAME...", nargs=-1, required=required,
        type=HyperJobName(),
    )  # fmt: skip
