"""The SDK without asyncio: an event loop in a separate thread runs every call."""

import asyncio
import atexit
import contextlib
import sys
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from types import AsyncGeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from hyperjob.client.expected import ExpectedStart
from hyperjob.client.summary import Summary
from hyperjob.client.training import Goodput, Training
from hyperjob.client.waiting import Progress, silent
from hyperjob.client.why.evidence import Explanation
from hyperjob.sdk import render
from hyperjob.sdk.aio import AsyncClient, AsyncJob, LogLine
from hyperjob.sdk.training import TrainerOptions, trainer
from hyperjob_core.api.meta import Object
from hyperjob_core.api.v1alpha1 import HyperJob

if TYPE_CHECKING:
    from hyperjob.client.plan.judge import Judgement

_T = TypeVar("_T")
_LOOK_SECONDS: Final = 0.01


class _Loop:
    """An event loop in a thread; one for each client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="hyperjob-sdk", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine and return its result; KeyboardInterrupt cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            with contextlib.suppress(BaseException):
                future.result(timeout=5)
            raise

    def iterate(self, source: AsyncIterator[_T]) -> Iterator[_T]:
        """Iterate over an asynchronous iterator."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            if not self._loop.is_closed():
                self.run(_closed(source))

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(source: AsyncIterator[_T]) -> _T:
    return await anext(source)


async def _closed(source: AsyncIterator[object]) -> None:
    """Close an asynchronous generator after its cancelled step has ended."""
    if isinstance(source, AsyncGeneratorType):
        while source.ag_running:  # noqa: ASYNC110, a generator has no event for it
            await asyncio.sleep(_LOOK_SECONDS)
        await source.aclose()


class Client:
    """A connection to a Karmada API server, as AsyncClient without asyncio.

    The client is a context manager; without `with`, `close` or the end of Python closes it.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
    ) -> None:
        self._open(AsyncClient(kubeconfig=kubeconfig, context=context, namespace=namespace))

    @classmethod
    def local(
        cls,
        *,
        clusters: int | Sequence[str] | Path = 2,
        gpus: int = 8,
        images: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        namespace: str | None = None,
    ) -> Self:
        """Run a whole installation on this machine, with pods as processes.

        The parameters are those of `AsyncClient.local`; the installation ends with the client.
        """
        opening = AsyncClient.local(
            clusters=clusters, gpus=gpus, images=images, directory=directory, namespace=namespace
        )
        made = cls.__new__(cls)
        made._open(opening)  # noqa: SLF001, a constructor of this very class
        return made

    def _open(self, opening: contextlib.AbstractAsyncContextManager[AsyncClient]) -> None:
        self._loop = _Loop()
        self._opening = opening
        self._ends: asyncio.Event | None = None
        try:
            self._client = self._loop.run(self._start())
        except BaseException:
            self._loop.close()
            raise
        atexit.register(self.close)

    async def _start(self) -> AsyncClient:
        """Open the client in a task that also closes it, since a cancel scope belongs to a task."""
        self._ends = asyncio.Event()
        started: asyncio.Future[AsyncClient] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(started, self._ends))
        await asyncio.wait((started, self._task), return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        return await started

    async def _hold(self, started: "asyncio.Future[AsyncClient]", ends: asyncio.Event) -> None:
        async with self._opening as client:
            started.set_result(client)
            await ends.wait()

    def close(self) -> None:
        """Close all connections, and end a local installation."""
        atexit.unregister(self.close)
        if self._ends is not None:
            self._loop.run(self._stop())
            self._ends = None
            self._loop.close()

    async def _stop(self) -> None:
        assert self._ends is not None
        self._ends.set()
        await self._task

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def kubeconfig(self) -> str | Path | None:
        """Return the kubeconfig, None for kubectl's default."""
        return self._client.kubeconfig

    @property
    def namespace(self) -> str:
        """Return the namespace for names without a namespace."""
        return self._client.namespace

    def train(
        self, train: Callable[..., Any] | str | Path, **options: Unpack[TrainerOptions]
    ) -> "Job":
        """Submit a training; the parameters are those of `trainer`."""
        return self.submit(trainer(train, **options))

    def submit(self, hyperjob: Object | HyperJob | str | Path) -> "Job":
        """Create a HyperJob from a document, a model or the path of a YAML file."""
        return Job(self._loop, self._loop.run(self._client.submit(hyperjob)))

    def plan(self, hyperjob: Object | HyperJob | str | Path) -> "Judgement":
        """Return the clusters of a HyperJob that starts now, or why it would wait or be refused.

        The plan includes clusters, queues and waiting HyperJobs, and submits nothing. `hyperjob`
        is a parameter of `submit`, or a result of `trainer`.
        """
        return self._loop.run(self._client.plan(hyperjob))

    def get(self, name: str, *, namespace: str | None = None) -> "Job":
        """Return a HyperJob by name; raise NotFoundError."""
        return Job(self._loop, self._loop.run(self._client.get(name, namespace=namespace)))

    def list(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        queue: str | None = None,
        labels: str | None = None,
    ) -> "list[Job]":
        """List HyperJobs; `queue` and `labels` (a label selector) restrict the list."""
        found = self._client.list(
            namespace=namespace, all_namespaces=all_namespaces, queue=queue, labels=labels
        )
        return [Job(self._loop, each) for each in self._loop.run(found)]


class Job:
    """A HyperJob of an API server, as AsyncJob without asyncio."""

    def __init__(self, loop: _Loop, job: AsyncJob) -> None:
        self._loop = loop
        self._job = job

    @property
    def name(self) -> str:
        """Return the name of the HyperJob."""
        return self._job.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the HyperJob."""
        return self._job.namespace

    @property
    def raw(self) -> Object:
        """Return the object that was last read."""
        return self._job.raw

    @property
    def status(self) -> Summary:
        """Return the status that was last read: phase, reason, message, clusters, sub-jobs."""
        return self._job.status

    @property
    def phase(self) -> str:
        """Return the phase that was last read."""
        return self._job.phase

    @property
    def training(self) -> Training | None:
        """Return the progress of the training when last read; None where it reports none."""
        return self._job.training

    @property
    def goodput(self) -> Goodput | None:
        """Return the HyperJob's time by use, and its goodput, as of the status last read."""
        return self._job.goodput

    @property
    def expected_start(self) -> ExpectedStart | None:
        """Return the expected start when last read; None without an estimate."""
        return self._job.expected_start

    def refresh(self) -> Summary:
        """Read the HyperJob again; raise NotFoundError after its deletion."""
        return self._loop.run(self._job.refresh())

    def wait(
        self, state: str = "Completed", *, timeout: float = 0, progress: Progress = silent
    ) -> Summary:
        """Wait until the HyperJob is in a phase such as Running; `delete` waits for its deletion.

        `timeout` is in seconds, 0 is no limit. Raise NotReachedError when time is up,
        NeverReachedError when the HyperJob cannot reach the state. Ctrl-C ends the wait; the
        HyperJob keeps running.
        """
        with self._going_on():
            return self._loop.run(self._job.wait(state, timeout=timeout, progress=progress))

    def logs(
        self,
        *,
        follow: bool = False,
        job: Sequence[str] = (),
        cluster: str | None = None,
        task: str | None = None,
        tail: int | None = None,
        previous: bool = False,
    ) -> Iterator[LogLine]:
        """Yield the lines of the pods' logs; with `follow` until the HyperJob has ended."""
        lines = self._job.logs(
            follow=follow, job=job, cluster=cluster, task=task, tail=tail, previous=previous
        )
        with self._going_on():
            yield from self._loop.iterate(lines)

    def why(self) -> Explanation:
        """Explain why the HyperJob is not running."""
        return self._loop.run(self._job.why())

    def events(self) -> list[Object]:
        """Return the Events of the HyperJob."""
        return self._loop.run(self._job.events())

    def suspend(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Remove its pods from all clusters; the HyperJob stays."""
        return self._loop.run(self._job.suspend(wait=wait, timeout=timeout))

    def resume(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Resume the HyperJob."""
        return self._loop.run(self._job.resume(wait=wait, timeout=timeout))

    def restart(self, *job: str, wait: bool = True, timeout: float = 0) -> Summary:
        """Restart these sub-jobs, or all of them."""
        return self._loop.run(self._job.restart(*job, wait=wait, timeout=timeout))

    def migrate(
        self, *job: str, cluster: str | None = None, wait: bool = True, timeout: float = 0
    ) -> Summary:
        """Move these sub-jobs, or those on `cluster`, to other clusters."""
        moving = self._job.migrate(*job, cluster=cluster, wait=wait, timeout=timeout)
        return self._loop.run(moving)

    def delete(self, *, wait: bool = True, timeout: float = 0) -> None:
        """Delete the HyperJob and its objects in all clusters."""
        self._loop.run(self._job.delete(wait=wait, timeout=timeout))

    def __repr__(self) -> str:
        return repr(self._job)

    def _repr_html_(self) -> str:
        return render.html_of(self.status)

    def __rich__(self) -> object:
        return render.rich_of(self.status)

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Print after Ctrl-C that the HyperJob keeps running, and how to stop it."""
        try:
            yield
        except KeyboardInterrupt:
            print(
                f"\nHyperJob {self.namespace}/{self.name} keeps running. To stop it:"
                " job.suspend() or"
                f" job.delete(), or: kubectl delete hj {self.name} -n {self.namespace}",
                file=sys.stderr,
            )
            raise
