"""kubectl's arguments of a command: API server, namespace, HyperJobs by name or selector.

The shell completes names from the API server: a request takes 3 s at most; where it fails, the
completion has no candidates.
"""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from hyperjob import __version__
from hyperjob.cli.files import file_option, gathered, options
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.exits import Code
from hyperjob.client.durations import parse_duration
from hyperjob.client.errors import words
from hyperjob.client.reading import Found, hyperjobs, with_hint
from hyperjob_core.api.names import GROUP
from hyperjob_core.api.trainer import TRAINER_GROUP
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError, KubeError, NotFound
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, NAMESPACES, Resource

if TYPE_CHECKING:
    from hyperjob.client.summary import Summary

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


class Parsed(click.ParamType[_T]):
    """A value that a function reads from a text; its ValueError is a usage error."""

    def __init__(self, name: str, read: Callable[[str], _T]) -> None:
        self.name = name
        self._read = read

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> _T:
        """Return the value; a default may be one already."""
        if not isinstance(value, str):
            return cast("_T", value)
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION: Final = Parsed("duration", parse_duration)
"""A duration in seconds, in the form of kubectl's flags: 30s, 5m."""


def access(*, everywhere: bool = False, namespaced: bool = True) -> Callable[[_F], _F]:
    """Return a decorator that adds kubectl's flags of access, as the argument `access`.

    A command about objects without a namespace takes none: `namespaced=False`.
    """
    scope = [*([_namespace] if namespaced else []), *([_everywhere] if everywhere else [])]
    return options(*scope, _kubeconfig, _context, gathered("access", Access))


_everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
_kubeconfig = file_option(
    "--kubeconfig",
    text="kubeconfig of the Karmada API server.  [default: $KUBECONFIG, the pod's own account,"
    " ~/.kube/config]",
)
_context = click.option("--context", metavar="NAME", help="Context of that kubeconfig.")


_USER_AGENT: Final = f"kubectl-hyperjob/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The flags of access; `namespace` None is the namespace of the kubeconfig's context."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Kube]:
        """Open a client; raises ConfigError where no kubeconfig or service account is found.

        NotFound of the block leaves it with the name that is probably meant.
        """
        async with Kube.connect(
            kubeconfig=self.kubeconfig, context=self.context, user_agent=_USER_AGENT
        ) as kube:
            try:
                yield kube
            except NotFound as error:
                raise await with_hint(kube, error, self.home(kube)) from None

    def scope(self, kube: Kube) -> str | None:
        """Return the namespace to list; None for all namespaces."""
        return None if self.all_namespaces else self.home(kube)

    def home(self, kube: Kube) -> str:
        """Return the namespace of objects that the command line names."""
        return self.namespace or kube.namespace

    def command(self, text: str) -> str:
        """Return a text whose commands have the flags for the same API server."""
        return aimed(text, self.flags)

    @property
    def flags(self) -> str:
        """Return the flags of the API server; empty for the default one."""
        flags = (("--kubeconfig", self.kubeconfig), ("--context", self.context))
        return " ".join(f"{flag} {shlex.quote(str(value))}" for flag, value in flags if value)


_COMMAND: Final = re.compile(
    r"(^|[^\w/-])"
    # kubectl accepts no flags before the name of a plugin.
    r"(kubectl hyperjob (queue )?[\w-]+|kubectl|hyperjob (install|preflight|after-restore)"
    r"|hyperjob-certs inject)"
    r"(?![\w-])"
)


def aimed(text: str, flags: str) -> str:
    """Return a text whose commands for the Karmada API server have these flags.

    A text with a command that names its API server, such as the host cluster's, stays unchanged.
    """
    if not flags or "--kubeconfig" in text or " --context " in text:
        return text
    certs_flags = flags.replace("--context", "--karmada-context")
    return _COMMAND.sub(
        lambda found: f"{found[0]} {certs_flags if 'certs' in found[2] else flags}", text
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The names, the namespace and the labels of the command line."""

    names: Sequence[str]
    access: Access
    selector: str | None

    def __post_init__(self) -> None:
        if self.names and (self.access.all_namespaces or self.selector):
            raise ValueError("give names, or -A and -l, not both")

    @property
    def single(self) -> bool:
        """Whether the output is one object, not a list."""
        return len(self.names) == 1

    async def read(self, kube: Kube) -> Found:
        """Read the HyperJobs; the errors of single HyperJobs are in the result."""
        namespace = self.access.scope(kube)
        return await hyperjobs(kube, self.names, namespace=namespace, selector=self.selector)


def hyperjobs_argument(*, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds [NAME]..., -A, -l and kubectl's flags, as argument `choice`."""
    names = names_argument(required=False, trainjobs=trainjobs)
    return options(names, access(everywhere=True), _selector, gathered("choice", Choice))


_selector = click.option(
    "-l", "--selector", metavar="LABELS", help="Only HyperJobs with these labels: a=b,c!=d."
)


def end(found: Found) -> None:
    """Print the errors of HyperJobs that could not be read, and exit 1 if there are any."""
    for error in found.errors:
        out.remark(words(error))
    if found.errors:
        raise SystemExit(Code.FAILED)


_PREFIXES = frozenset({"hj", "hyperjob", "hyperjobs", f"hyperjob.{GROUP}", f"hyperjobs.{GROUP}"})

_TRAINJOBS = frozenset(
    {"trainjob", "trainjobs", f"trainjob.{TRAINER_GROUP}", f"trainjobs.{TRAINER_GROUP}"}
)


class TrainJobName(str):
    """The name of a TrainJob, which its HyperJob has too."""

    __slots__ = ()


class HyperJobName(click.ParamType[str]):
    """The name of a HyperJob, or `hyperjob/NAME` as `kubectl get -o name` prints it.

    With `trainjobs` also `trainjob/NAME`, which becomes a TrainJobName.
    """

    name = "name"

    def __init__(self, *, trainjobs: bool = False) -> None:
        self._trainjobs = trainjobs

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name without its kind; another kind is a usage error."""
        kind, slash, name = str(value).rpartition("/")
        if name and self._trainjobs and kind.lower() in _TRAINJOBS:
            return TrainJobName(name)
        if (slash and kind.lower() not in _PREFIXES) or not name:
            self.fail(f"{value!r} is not the name of a HyperJob: give NAME or hj/NAME", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the HyperJobs of the namespace; empty if the API server does not answer in time."""
        return offered(ctx, param, incomplete, _hyperjobs)


def name_argument(*, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME of one HyperJob, or of a TrainJob."""
    return click.argument("name", type=HyperJobName(trainjobs=trainjobs))


def names_argument(*, required: bool, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME, given once for each HyperJob or TrainJob."""
    return click.argument(
        "names", metavar="[NAME]..." if not required else "NAME...", nargs=-1, required=required,
        type=HyperJobName(trainjobs=trainjobs), callback=_without_kind,
    )  # fmt: skip


def _without_kind(
    _ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Take `hj NAME` for NAME, as people type it for kubectl."""
    return names[1:] if len(names) > 1 and names[0].lower() in _PREFIXES else names


SECONDS = 3.0

Offer = tuple[str, str]
"""A candidate and its description."""
Ask = Callable[[Kube, Access, click.Context], Awaitable[Iterable[Offer]]]


class Offered(click.ParamType[str]):
    """A name that the shell completes from the API server's objects; any text is accepted."""

    name = "name"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the names that begin with `incomplete` and are not on the command line yet."""
        return offered(ctx, param, incomplete, self._ask)


def offered(
    ctx: click.Context, param: click.Parameter, incomplete: str, ask: Ask
) -> list[CompletionItem]:
    """List candidates from the API server that the command line names.

    They begin with `incomplete`; those that are the value of the parameter already are left out.
    """
    given = ctx.params
    access = Access(
        kubeconfig=given.get("kubeconfig"),
        context=given.get("context"),
        namespace=given.get("namespace"),
    )
    value = given.get(param.name or "") or ()
    taken = (value,) if isinstance(value, str) else value
    with suppress(KubeError, ConfigError, TimeoutError):
        return [
            CompletionItem(name, help=text)
            for name, text in asyncio.run(_asked(access, ctx, ask))
            if name.startswith(incomplete) and name not in taken
        ]
    return []


async def _asked(access: Access, ctx: click.Context, ask: Ask) -> Sequence[Offer]:
    async with asyncio.timeout(SECONDS), access.connect() as kube:
        return list(await ask(kube, access, ctx))


def _all_of(resource: Resource) -> Ask:
    async def ask(kube: Kube, _access: Access, _ctx: click.Context) -> Iterable[Offer]:
        listed = await kube.list(resource)
        return sorted((str(item["metadata"]["name"]), "") for item in listed.items)

    return ask


async def _hyperjobs(kube: Kube, access: Access, _ctx: click.Context) -> Iterable[Offer]:
    from hyperjob.client.summary import read

    listed = await kube.list(HYPERJOBS, namespace=access.home(kube))
    return ((summary.name, summary.phase) for summary in map(read, listed.items))


async def _named_hyperjobs(kube: Kube, access: Access, ctx: click.Context) -> "list[Summary]":
    """Read the HyperJobs that the command line names already."""
    from hyperjob.client.summary import read

    names = ctx.params.get("names") or [ctx.params.get("name")]
    if not any(names):
        # With an option that still lacks its value, click keeps the arguments before it in
        # ctx.args.
        several = any(param.name == "names" for param in ctx.command.params)
        names = ctx.args if several else ctx.args[:1]
    found = (name.rpartition("/")[2] for name in names)
    return [read(await kube.get(HYPERJOBS, name, namespace=access.home(kube))) for name in found]


async def _jobs(kube: Kube, access: Access, ctx: click.Context) -> Iterable[Offer]:
    found: dict[str, str] = {}
    for summary in await _named_hyperjobs(kube, access, ctx):
        for job in summary.jobs:
            found.setdefault(job.replicated_job, "replicated job")
            place = f" on {job.cluster}" if job.cluster else ""
            found[job.name.removeprefix(f"{summary.name}-")] = f"{job.phase}{place}"
    return sorted(found.items())


async def _clusters(kube: Kube, access: Access, ctx: click.Context) -> Iterable[Offer]:
    named = await _named_hyperjobs(kube, access, ctx)
    if not named:
        return await _all_of(CLUSTERS)(kube, access, ctx)
    return sorted({(cluster, "") for summary in named for cluster in summary.clusters})


JOB: Final = Offered(_jobs)
CLUSTER: Final = Offered(_clusters)
_namespace = click.option(
    "-n",
    "--namespace",
    type=Offered(_all_of(NAMESPACES)),
    metavar="NAME",
    help="Namespace.  [default: that of the kubeconfig's context]",
)
jobs_option: Final = click.option(
    "--job",
    "jobs",
    type=JOB,
    metavar="JOB",
    multiple=True,
    help="Only this sub-job or replicated job; may be given more than once.",
)
pod_options: Final = options(
    jobs_option,
    click.option("--cluster", type=CLUSTER, metavar="NAME", help="Only pods in this cluster."),
    click.option("--task", metavar="NAME", help="Only pods of this task."),
    click.option(
        "--rank",
        "ranks",
        type=click.IntRange(min=0),
        metavar="N",
        multiple=True,
        callback=lambda _ctx, _param, ranks: frozenset(ranks) or None,
        help="Only the pod of this rank; may be given more than once.",
    ),
)
container_option: Final = click.option(
    "-c", "--container", metavar="NAME", help="Container.  [default: the pod's first]"
)
