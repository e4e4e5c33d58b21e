"""The SDK for asyncio, and what a local installation prepares on this machine.

`sync` makes the SDK without asyncio of these classes.
"""

import asyncio
import contextlib
import itertools
import os
import secrets
import sys
import types
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import yaml

from hyperjob.client.errors import NO_SANDBOX
from hyperjob.client.waiting import silent
from hyperjob.sdk import start
from hyperjob.sdk.errors import (
    HyperJobError,
    NeverReachedError,
    SourceError,
    UnreachableError,
    translated,
    warn,
)
from hyperjob.sdk.folder import requirements_of
from hyperjob.sdk.job import AsyncJob
from hyperjob.sdk.parameters import Above0, require_known, require_types, shown
from hyperjob.sdk.program import Machine, Train
from hyperjob.sdk.template import require_whole
from hyperjob.sdk.training import TrainerOptions, trainer, with_its_parameters
from hyperjob.sdk.view import Access
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.tasks import cancel

if TYPE_CHECKING:
    from hyperjob.client.plan.judge import Judgement

_FIELD_MANAGER = "hyperjob-sdk"


class AsyncClient(Access):
    """A connection to a Karmada API server; an async context manager."""

    def _begin(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._kube: Kube | None = None
        self._machine: Machine | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def local(
        cls,
        *,
        clusters: int | Sequence[str] | Path = 2,
        gpus: int = 8,
        images: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        namespace: str | None = None,
        cluster_lost_seconds: float = 300,
    ) -> AsyncIterator[Self]:
        """Run a whole installation on this machine, with pods as processes, and connect to it.

        `clusters` is a number, names, or the path of a clusters file; each cluster has one node of
        `gpus` accelerators. `images` maps images to virtual environments or commands; all others
        run in the environment of this Python. `directory` stores logs and volumes; without it they
        are removed with the installation. After `cluster_lost_seconds` without an answer a cluster
        counts as lost. The installation has a web page, `page`. It ends with the block, or with
        this process, whatever ends the process. Raises UnreachableError without the distribution
        hyperjob-sandbox.
        """
        require_types(
            {"clusters": int | Sequence[str] | Path, "gpus": int, "cluster_lost_seconds": Above0},
            {"clusters": clusters, "gpus": gpus, "cluster_lost_seconds": cluster_lost_seconds},
        )
        require_whole("gpus", gpus, least=0)
        require_sources()
        try:
            from hyperjob_sandbox.local.lifeline import lifeline
            from hyperjob_sandbox.local.parts import StackError
            from hyperjob_sandbox.local.plane import PlaneOptions, local_plane
        except ModuleNotFoundError:
            raise UnreachableError(NO_SANDBOX) from None
        try:
            async with lifeline() as line:
                where = line.folder if directory is None else Path(directory)
                try:
                    where.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise SourceError(f"directory={str(where)!r}: {error.strerror}") from None
                options = PlaneOptions(
                    clusters=_clusters_file(clusters, gpus, where),
                    directory=where,
                    pods="processes",
                    images=dict(images or {}),
                    cluster_lost_seconds=cluster_lost_seconds,
                )
                # Importing the page takes a third of a second.
                from hyperjob_page.serve import served_here

                async with (
                    local_plane(options, line) as plane,
                    cls(kubeconfig=plane.kubeconfig, namespace=namespace) as client,
                    served_here(client.kube) as page,
                ):
                    client.page = page
                    client._machine = machine_of(line.folder, images or {})
                    yield client
        except StackError as error:
            raise UnreachableError(str(error)) from None

    async def __aenter__(self) -> Self:
        with translated():
            self._kube = await self._stack.enter_async_context(
                Kube.connect(
                    kubeconfig=self.kubeconfig,
                    context=self._context,
                    user_agent=_FIELD_MANAGER,
                    warn=warn,
                )
            )
        self.namespace = self.namespace or self._kube.namespace
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def kube(self) -> Kube:
        """Return the Kubernetes client, for requests about any resource."""
        if self._kube is None:
            raise HyperJobError("the client is not open: use it as `async with AsyncClient()`")
        return self._kube

    @with_its_parameters
    async def train(self, train: Train, **options: Unpack[TrainerOptions]) -> "AsyncJob":
        """Submit a training; a local installation installs its packages first."""
        require_known("train", options, TrainerOptions.__annotations__)
        hyperjob = trainer(train, _machine=self._machine, **options)
        if self._machine is not None:
            await prepare(requirements_of(options.get("packages")), self._machine)
        return await self.submit(hyperjob)

    async def sweep(
        self,
        train: Train,
        grid: Mapping[str, Sequence[Any]],
        *,
        parallel: int = 4,
        **options: Unpack[TrainerOptions],
    ) -> "list[dict[str, Any]]":
        """Train a function once for each combination of arguments, and return a row for each.

        `grid` has the values of each argument; `parallel` HyperJobs exist at a time that have not
        ended. The options are those of `train`, with arguments of all runs in `args`. Each HyperJob
        has the label `sweep`. A row has the arguments, the `job` and the `phase` of the HyperJob,
        and the `step` and the metrics that it reported last. The function chooses no values: a
        library for optimization can call `train` with its own.
        """
        args, labels = options.get("args") or {}, options.get("labels") or {}
        if not callable(train) or not isinstance(args, Mapping):
            raise SourceError("a sweep calls a function, whose args are a dict")
        _require_grid(grid, args, options.get("name"), parallel)
        label = {"sweep": f"{getattr(train, '__name__', 'sweep')}-{secrets.token_hex(3)}"}
        room = asyncio.Semaphore(parallel)

        async def run(values: tuple[Any, ...]) -> dict[str, Any]:
            point = dict(zip(grid, values, strict=True))
            chosen = options.copy()
            chosen["args"], chosen["labels"] = {**args, **point}, {**labels, **label}
            async with room:
                job = await self.train(train, **chosen)
                with contextlib.suppress(NeverReachedError):
                    await job.wait("Completed")
                last: Mapping[str, object] = {}
                with contextlib.suppress(HyperJobError):
                    last = next(reversed(await job.metrics()), {})
            return {**point, "job": job.name, "phase": job.phase, **last}

        runs = [asyncio.create_task(run(values)) for values in itertools.product(*grid.values())]
        try:
            return await asyncio.gather(*runs)
        finally:
            await cancel(runs)

    async def submit(self, hyperjob: Object | str | Path) -> "AsyncJob":
        """Create a HyperJob from a document or the path of a YAML file with one document.

        Raise SourceError for a document without a name, and InvalidError with all invalid fields
        where the API server refuses the HyperJob.
        """
        document = _document(hyperjob)
        namespace = document["metadata"].get("namespace") or self.namespace
        with translated():
            made = await self.kube.create(HYPERJOBS, document, namespace=namespace)
        return AsyncJob(self, made)

    async def plan(self, hyperjob: Object | str | Path) -> "Judgement":
        """Return the clusters of a HyperJob that starts now, or why it would wait or be refused.

        The plan includes clusters, queues and waiting HyperJobs, and submits nothing. `hyperjob`
        is a parameter of `submit`, or a result of `trainer`.
        """
        # Importing the rules of admission and placement takes a third of a second.
        from hyperjob.client.plan.judge import judge
        from hyperjob.client.plan.snapshot import read_snapshot

        document = _document(hyperjob)
        with translated():
            snapshot = await read_snapshot(
                self.kube, namespace=self.namespace, hyperjobs=[document], left_out=silent
            )
        return await asyncio.to_thread(judge, document, snapshot)

    async def get(self, name: str, *, namespace: str | None = None) -> "AsyncJob":
        """Return a HyperJob by name; raise NotFoundError."""
        with translated():
            found = await self.kube.get(HYPERJOBS, name, namespace=namespace or self.namespace)
        return AsyncJob(self, found)

    async def list(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        queue: str | None = None,
        labels: str | None = None,
    ) -> "list[AsyncJob]":
        """List HyperJobs; `queue` and `labels` (a label selector) restrict the list."""
        where = None if all_namespaces else namespace or self.namespace
        with translated():
            found = await self.kube.list(HYPERJOBS, namespace=where, label_selector=labels)
        jobs = [AsyncJob(self, each) for each in found.items]
        if queue is None:
            return jobs
        return [job for job in jobs if queue in {group.queue for group in job.status.groups}]


def _require_grid(
    grid: Mapping[str, Sequence[Any]], args: Mapping[str, Any], name: str | None, parallel: int
) -> None:
    """Raise ValueError for a grid that names no run, or the same one twice."""
    require_whole("parallel", parallel, least=1)
    for key, values in grid.items():
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
            raise ValueError(
                f"grid[{key!r}]={shown(values)}: expected a list of values, such as"
                f" [{shown(values)}]"
            )
        if key in args:
            raise ValueError(f"{key} is in grid and in args: leave it out of args")
    if not grid:
        raise ValueError(
            'the grid is empty: give the values of arguments, as in {"lr": [0.1, 0.2]}'
        )
    if name is not None:
        raise ValueError("a sweep names its HyperJobs itself: leave name= out, and use labels=")


def _document(hyperjob: Object | str | Path) -> Object:
    """Return the document of a HyperJob; raise SourceError for anything else."""
    if not isinstance(hyperjob, str | Path):
        return _with_metadata(hyperjob, "the HyperJob")
    path = Path(hyperjob)
    try:
        found = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{path}: not YAML: {error}") from None
    if len(found) != 1:
        raise SourceError(f"{path}: expected one HyperJob, found {len(found)} documents")
    return _with_metadata(found[0], str(path))


def _with_metadata(document: object, what: str) -> Object:
    """Return a document with the fields that its request needs; the API server checks the rest."""
    if not isinstance(document, Mapping):
        raise SourceError(f"{what}: expected a mapping, found {type(document).__name__}")
    if document.get("kind", KIND) != KIND:
        raise SourceError(f"{what}: expected kind {KIND}, found {document['kind']!r}")
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not (
        metadata.get("name") or metadata.get("generateName")
    ):
        raise SourceError(f"{what} has no metadata.name: `trainer` returns a whole HyperJob")
    return {"apiVersion": API_VERSION, "kind": KIND, **document}


def _clusters_file(clusters: int | Sequence[str] | Path, gpus: int, directory: Path) -> Path:
    """Return the clusters file; write one for a number or the names of clusters."""
    if isinstance(clusters, Path):
        return clusters
    names = [f"local-{n + 1}" for n in range(clusters)] if isinstance(clusters, int) else clusters
    amounts = {"cpu": "1000", "memory": "1Ti", "nvidia.com/gpu": gpus}
    document = {
        "clusters": [
            {"name": name, "nodes": [{"count": 1, "allocatable": amounts}]} for name in names
        ]
    }
    path = directory / "clusters.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


_INSTALL: Final = (
    "import sys, pathlib; from hyperjob.sdk.start import environment;"
    " environment(sys.argv[1], pathlib.Path(sys.argv[2]))"
)
_LINES: Final = 8


def machine_of(folder: Path, images: Mapping[str, str]) -> Machine:
    """Return the machine of a local installation with a temporary folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hyperjob"
    return Machine(snapshots=folder, cache=cache, images=images)


def require_sources() -> None:
    """Raise SourceError where this program comes from standard input and has functions.

    Python cannot read the source of these functions again.
    """
    main = sys.modules.get("__main__")
    if hasattr(sys, "ps1"):
        return
    for name, value in vars(main).items():
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == "<stdin>":
            raise SourceError(
                f"{name}: Python cannot read the source of a program on its standard input: write"
                " the program into a file"
            )


async def prepare(requirements: Sequence[str], machine: Machine) -> None:
    """Install packages into their environment in the cache; raise SourceError with pip's words."""
    text = "\n".join(requirements)
    if not text or (start.place_of(text, machine.cache) / "complete").exists():
        return
    print(f"hyperjob: installs {', '.join(requirements)}", file=sys.stderr)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _INSTALL, text, str(machine.cache)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-_LINES:]
        raise SourceError("\n".join(("pip cannot install the packages:", *last)))
