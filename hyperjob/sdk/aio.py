"""The SDK for asyncio. `sync` makes the SDK without asyncio of these classes."""

import asyncio
import contextlib
import itertools
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import yaml

from hyperjob.client import requests, suspending
from hyperjob.client.events import events_of
from hyperjob.client.goals import Goal, parse_goal, reach
from hyperjob.client.logs.attempts import is_present, kept_lines, last_failure
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.logs.standing import ChosenLogs
from hyperjob.client.summary import Summary
from hyperjob.client.waiting import Progress, silent
from hyperjob.client.why.evidence import Explanation
from hyperjob.client.why.explain import explain
from hyperjob.client.why.gather import gather
from hyperjob.local.lifeline import lifeline
from hyperjob.local.parts import StackError
from hyperjob.local.plane import PlaneOptions, local_plane
from hyperjob.sdk.errors import (
    HyperJobError,
    NeverReachedError,
    SourceError,
    UnreachableError,
    translated,
    warn,
)
from hyperjob.sdk.lines import LogLine, line_of, row_of
from hyperjob.sdk.machine import machine_of, prepare, require_sources
from hyperjob.sdk.packages import requirements_of
from hyperjob.sdk.program import Machine, Train
from hyperjob.sdk.training import TrainerOptions, trainer, with_its_parameters
from hyperjob.sdk.view import Access, JobView, Reading
from hyperjob_core.api.lines import LogLine as Line
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import KIND
from hyperjob_core.api.v1alpha1 import HyperJob
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.tasks import cancel
from hyperjob_engine.model.training import parse

if TYPE_CHECKING:
    from hyperjob.client.plan.judge import Judgement

_FIELD_MANAGER = "hyperjob-sdk"
_MOST_LOGS = 200
_PROPAGATION = {"propagationPolicy": "Background"}


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
    ) -> AsyncIterator[Self]:
        """Run a whole installation on this machine, with pods as processes, and connect to it.

        `clusters` is a number, names, or the path of a clusters file; each cluster has one node of
        `gpus` accelerators. `images` maps images to virtual environments or commands; all others
        run in the environment of this Python. `directory` stores logs and volumes; without it they
        are removed with the installation. The installation ends with the block, or with this
        process, whatever ends the process. Raises UnreachableError without the distribution
        hyperjob[sandbox].
        """
        require_sources()
        try:
            async with lifeline() as line:
                where = line.folder if directory is None else Path(directory)
                where.mkdir(parents=True, exist_ok=True)
                options = PlaneOptions(
                    clusters=_clusters_file(clusters, gpus, where),
                    directory=where,
                    pods="processes",
                    images=dict(images or {}),
                )
                async with (
                    local_plane(options, line) as plane,
                    cls(kubeconfig=plane.kubeconfig, namespace=namespace) as client,
                ):
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

    async def submit(self, hyperjob: Object | HyperJob | str | Path) -> "AsyncJob":
        """Create a HyperJob from a document, a model or the path of a YAML file with one document.

        Raise SourceError for a document without a name, and InvalidError with all invalid fields
        where the API server refuses the HyperJob.
        """
        document = _document(hyperjob)
        namespace = document["metadata"].get("namespace") or self.namespace
        with translated():
            made = await self.kube.create(HYPERJOBS, document, namespace=namespace)
        return AsyncJob(self, made)

    async def plan(self, hyperjob: Object | HyperJob | str | Path) -> "Judgement":
        """Return the clusters of a HyperJob that starts now, or why it would wait or be refused.

        The plan includes clusters, queues and waiting HyperJobs, and submits nothing. `hyperjob`
        is a parameter of `submit`, or a result of `trainer`.
        """
        # Importing the rules of admission and placement takes a third of a second.
        from hyperjob.client.plan.judge import judge
        from hyperjob.client.plan.reading import read_world

        document = _document(hyperjob)
        with translated():
            world = await read_world(
                self.kube, namespace=self.namespace, hyperjobs=[document], left_out=silent
            )
        return await asyncio.to_thread(judge, document, world)

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


class AsyncJob(JobView):
    """A HyperJob of an API server."""

    def __init__(self, client: AsyncClient, hyperjob: Object) -> None:
        super().__init__(Reading(hyperjob))
        self._client = client

    async def refresh(self) -> Summary:
        """Read the HyperJob again; raise NotFoundError after its deletion."""
        with translated():
            found = await self._kube.get(HYPERJOBS, self.name, namespace=self.namespace)
        return self._take(found)

    async def wait(
        self, state: str = "Completed", *, timeout: float = 0, progress: Progress = silent
    ) -> Summary:
        """Wait until the HyperJob is in a phase such as Running; `delete` waits for its deletion.

        `timeout` is in seconds, 0 is no limit. `progress` gets a line after each change. Raise
        NotReachedError when time is up, NeverReachedError when the HyperJob cannot reach the state.
        Ctrl-C ends the wait; the HyperJob keeps running.
        """
        try:
            goal: Goal = parse_goal(
                state if state == "delete" or "=" in state else f"phase={state}"
            )
        except ValueError as error:
            raise ValueError(str(error)) from None
        return await self._reached(
            reach(self._kube, self.namespace, self.name, goal, seconds=timeout, progress=progress)
        )

    async def logs(
        self,
        *,
        follow: bool = False,
        job: Sequence[str] = (),
        cluster: str | None = None,
        task: str | None = None,
        rank: int | Sequence[int] | None = None,
        tail: int | None = None,
        since: float | None = None,
        search: str | None = None,
        previous: bool = False,
        attempt: int | None = None,
    ) -> AsyncIterator[LogLine]:
        """Yield the lines of the pods' logs from all clusters, in the order of their times.

        `rank` selects pods by their ranks. `tail` is the number of last lines of each container,
        -1 for all: by default 10, or all of a single container. `since` is in seconds before now.
        `search` is a regular expression that a line must contain. With `follow`, yield new lines as
        they come, also of pods that start later, until the HyperJob has ended. `attempt`, from 1,
        selects an attempt: after its end the status has the last lines of its failed containers,
        such as a traceback.
        """
        ranks = None if rank is None else frozenset([rank] if isinstance(rank, int) else rank)
        wanted = Wanted(jobs=tuple(job), cluster=cluster, task=task, ranks=ranks)
        contains = re.compile(search or "")
        query = {
            "timestamps": "true",
            **({"follow": "true"} if follow else {}),
            **({"previous": "true"} if previous and not follow else {}),
            **({"sinceSeconds": str(max(1, round(since)))} if since is not None else {}),
        }
        summary = await self.refresh()
        with translated():
            if attempt is not None and not is_present(summary, wanted, attempt):
                for container, raw in kept_lines(summary, wanted, attempt):
                    if contains.search(text := raw.decode()):
                        yield LogLine(container.cluster, container.pod, container.container, text)
                return
            if follow:
                followed = Following(
                    self._kube,
                    summary,
                    wanted,
                    query=query,
                    tail=tail,
                    limit=_MOST_LOGS,
                    say=silent,
                )
                found = followed.lines()
            else:
                standing = await ChosenLogs.of(
                    self._kube, summary, wanted, query=query, tail=tail, say=silent
                )
                found = standing.in_order()
            async with aclosing(found) as lines:
                async for container, raw in lines:
                    line = line_of(container, raw)
                    if contains.search(line.text):
                        yield line
        await self._read_again()

    async def metrics(self) -> list[dict[str, float | datetime]]:
        """Return every progress line that the logs of its pods have, in the order of time.

        A row has `time`, `step`, `rank`, the metrics by their names, and `steps` and `saved` where
        the program reports them: pandas.DataFrame and polars.DataFrame take the rows. The logs of
        pods before the last restart of their sub-job are gone.
        """
        rows: list[dict[str, float | datetime]] = []
        summary = await self.refresh()
        with translated():
            standing = await ChosenLogs.of(
                self._kube,
                summary,
                Wanted(),
                query={"timestamps": "true"},
                tail=-1,
                say=silent,
            )
            async with aclosing(standing.in_order()) as lines:
                async for container, raw in lines:
                    if (found := parse(Line.of(raw))) is not None:
                        rows.append(row_of(container, found))
        return rows

    async def why(self) -> Explanation:
        """Explain why the HyperJob is not running: a headline, and causes with a next step."""
        with translated():
            evidence = await gather(self._kube, self.namespace, self.name)
        return explain(evidence)

    async def events(self) -> list[Object]:
        """Return the Events of the HyperJob from the API server."""
        with translated():
            found = await events_of(self._kube, self.raw)
            if isinstance(found, KubeError):
                raise found
        return found

    async def suspend(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Remove its pods from all clusters; the HyperJob stays. `wait` waits for the removal."""
        return await self._switch(on=True, wait=wait, timeout=timeout)

    async def resume(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Resume the HyperJob; `wait` waits until it runs."""
        return await self._switch(on=False, wait=wait, timeout=timeout)

    async def restart(self, *job: str, wait: bool = True, timeout: float = 0) -> Summary:
        """Restart these sub-jobs, or all of them; `wait` waits until they run."""
        return await self._ask(requests.restart(job), wait=wait, timeout=timeout)

    async def migrate(
        self, *job: str, cluster: str | None = None, wait: bool = True, timeout: float = 0
    ) -> Summary:
        """Move these sub-jobs, or those on `cluster`, to others; `wait` waits until they run."""
        return await self._ask(requests.migrate(job, cluster=cluster), wait=wait, timeout=timeout)

    async def delete(self, *, wait: bool = True, timeout: float = 0) -> None:
        """Delete the HyperJob and its objects in all clusters; `wait` waits for the deletion."""
        with translated():
            await self._kube.delete(HYPERJOBS, self.name, namespace=self.namespace)
            if wait:
                await reach(
                    self._kube, self.namespace, self.name, parse_goal("delete"), seconds=timeout
                )

    @property
    def _kube(self) -> Kube:
        return self._client.kube

    def _take(self, hyperjob: Object | None) -> Summary:
        self.reading.raw = hyperjob or self.raw
        return self.status

    async def _read_again(self) -> None:
        """Read the HyperJob again, if it can be read."""
        with contextlib.suppress(HyperJobError):
            await self.refresh()

    async def _reached(self, reaching: Awaitable[Object | None]) -> Summary:
        """Await a state of the HyperJob; without success its status is read again."""
        try:
            with translated():
                found = await reaching
        except NeverReachedError as error:
            await self._read_again()
            raise NeverReachedError("\n".join((str(error), *self._last_words()))) from None
        except HyperJobError:
            await self._read_again()
            raise
        return self._take(found)

    def _last_words(self) -> list[str]:
        """Return the last lines of the last failed container, such as a traceback."""
        found = last_failure(self.status)
        return [] if found is None else [f"The last lines of pod {found.label}:", found.text]

    async def _switch(self, *, on: bool, wait: bool, timeout: float) -> Summary:
        with translated():
            changed, _ = await suspending.suspend(self._kube, self.namespace, self.name, on=on)
        self._take(changed)
        if not wait:
            return self.status
        return await self._reached(
            suspending.settled(self._kube, self.namespace, self.name, on=on, seconds=timeout)
        )

    async def _ask(self, request: requests.RequestKind, *, wait: bool, timeout: float) -> Summary:
        async def answered() -> Object | None:
            asked = await requests.ask(self._kube, self.namespace, self.name, request)
            found = await requests.taken(self._kube, self.namespace, self.name, request, asked)
            if wait:
                found = await requests.running_again(
                    self._kube, self.namespace, self.name, asked, seconds=timeout
                )
            return found

        return await self._reached(answered())


def _document(hyperjob: Object | HyperJob | str | Path) -> Object:
    """Return the document of a HyperJob; raise SourceError for anything else."""
    if isinstance(hyperjob, HyperJob):
        return hyperjob.to_object()
    if not isinstance(hyperjob, str | Path):
        return _checked(hyperjob, "the HyperJob")
    path = Path(hyperjob)
    try:
        found = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: not YAML: {error}") from None
    if len(found) != 1:
        raise SourceError(f"{path}: expected one HyperJob, found {len(found)} documents")
    return _checked(found[0], str(path))


def _checked(document: object, what: str) -> Object:
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
    return dict(document)


def _clusters_file(clusters: int | Sequence[str] | Path, gpus: int, directory: Path) -> Path:
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
