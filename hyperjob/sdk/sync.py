"""The SDK without asyncio: each method is the one of the asynchronous class, run in a thread.

The methods below have the parameters, the types and the docstrings of the asynchronous ones by
construction; only a coroutine becomes its result, an AsyncJob a Job, and an AsyncIterator an
Iterator.
"""

import asyncio
import atexit
import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import AsyncGeneratorType, GenericAlias, TracebackType
from typing import (
    Any,
    Concatenate,
    Final,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

from hyperjob.sdk.aio import AsyncClient
from hyperjob.sdk.errors import HyperJobError
from hyperjob.sdk.job import AsyncJob
from hyperjob.sdk.view import Access, JobView
from hyperjob_core.tasks import cancel

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Callable[..., Any])
_LOOK_SECONDS: Final = 0.01
_END_SECONDS: Final = 15.0


class _Loop:
    """An event loop in a thread; one for each client. `local`: it runs an installation."""

    def __init__(self, *, local: bool) -> None:
        self.local = local
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="hyperjob-sdk", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine and return its result.

        KeyboardInterrupt cancels the coroutine and waits for its end; a second one does not wait.
        """
        if self._loop.is_closed():
            work.close()
            raise HyperJobError("the client is closed: open another one with Client()")
        result, cancel = self.begin(work)
        try:
            return result.result()
        except KeyboardInterrupt as error:
            self.interrupted(error)
            with contextlib.suppress(BaseException):
                self._loop.call_soon_threadsafe(cancel)
                result.result(timeout=_END_SECONDS)
            raise

    def begin(self, work: Coroutine[Any, Any, _T]) -> "tuple[Future[_T], Callable[[], None]]":
        """Start a coroutine; return its result, and a function that cancels it in the loop."""
        result: Future[_T] = Future()
        tasks: list[asyncio.Task[_T]] = []

        def create() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda done: _settle(result, done))

        def cancel() -> None:
            tasks[0].cancel()

        self._loop.call_soon_threadsafe(create)
        return result, cancel

    def interrupted(self, error: KeyboardInterrupt) -> None:
        """Let Python end a script with one line after Ctrl-C if the installation ends with it."""
        if not self.local or is_interactive():
            return
        before = sys.excepthook

        def hook(
            kind: type[BaseException], value: BaseException, trace: TracebackType | None
        ) -> None:
            if value is error:
                print("Interrupted: the local installation ends.", file=sys.stderr)
            else:
                before(kind, value, trace)

        sys.excepthook = hook

    def iterate(self, source: AsyncIterator[_T]) -> Iterator[_T]:
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            if not self._loop.is_closed():
                # Python drops a KeyboardInterrupt while it closes a generator: nothing waits here.
                self.begin(_closed(source))

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()


def is_interactive() -> bool:
    """Return whether a person types into this Python, which Ctrl-C does not end."""
    return hasattr(sys, "ps1")


def _settle(result: "Future[_T]", done: "asyncio.Task[_T]") -> None:
    if done.cancelled():
        result.cancel()
    elif (error := done.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(done.result())


async def _next(source: AsyncIterator[_T]) -> _T:
    return await anext(source)


async def _closed(source: AsyncIterator[object]) -> None:
    """Close an asynchronous generator after its cancelled step has ended."""
    if isinstance(source, AsyncGeneratorType):
        while source.ag_running:  # noqa: ASYNC110, a generator has no event for it
            await asyncio.sleep(_LOOK_SECONDS)
        await source.aclose()


def _as_result(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Any, _P], _T]:
    """Return a method with the result of an asynchronous one."""

    def call(self: "Client | Job", /, *args: _P.args, **more: _P.kwargs) -> _T:
        return self._loop.run(method(self._same, *args, **more))

    return _described(call, method)


def _as_job(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, AsyncJob]],
) -> "Callable[Concatenate[Any, _P], Job]":
    """Return a method with the HyperJob of an asynchronous one."""

    def call(self: "Client", /, *args: _P.args, **more: _P.kwargs) -> "Job":
        return Job(self._loop, self._loop.run(method(self._same, *args, **more)))

    return _described(call, method, returns="Job")


def _as_jobs(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, list[AsyncJob]]],
) -> "Callable[Concatenate[Any, _P], list[Job]]":
    """Return a method with the HyperJobs of an asynchronous one."""

    def call(self: "Client", /, *args: _P.args, **more: _P.kwargs) -> "list[Job]":
        found = self._loop.run(method(self._same, *args, **more))
        return [Job(self._loop, each) for each in found]

    return _described(call, method, returns="list[Job]")


def _as_wait(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Any, _P], _T]:
    """Return a method that waits for a state, after whose Ctrl-C the HyperJob keeps running."""

    def call(self: "Job", /, *args: _P.args, **more: _P.kwargs) -> _T:
        with self._going_on():
            return self._loop.run(method(self._same, *args, **more))

    return _described(call, method)


def _as_iterator(
    method: Callable[Concatenate[Any, _P], AsyncIterator[_T]],
) -> Callable[Concatenate[Any, _P], Iterator[_T]]:
    """Return a method with an iterator over an asynchronous one."""

    def call(self: "Job", /, *args: _P.args, **more: _P.kwargs) -> Iterator[_T]:
        with self._going_on():
            yield from self._loop.iterate(method(self._same, *args, **more))

    found = get_args(get_type_hints(method)["return"])
    return _described(call, method, returns=GenericAlias(Iterator, found))


class _ClassMethod(Protocol[_P]):
    """A class method that returns an instance of its class."""

    def __get__(self, instance: object, owner: type[_T]) -> Callable[_P, _T]: ...


def _opened(
    opening: Callable[_P, AbstractAsyncContextManager[AsyncClient]],
) -> _ClassMethod[_P]:
    """Return a class method that opens a client by an asynchronous context manager."""

    def call(owner: "type[Client]", /, *args: _P.args, **more: _P.kwargs) -> "Client":
        made = owner.__new__(owner)
        made._open(opening(*args, **more), local=True)  # noqa: SLF001, a constructor of this class
        return made

    method = opening.__func__  # type: ignore[attr-defined]  # of a class method
    return cast("_ClassMethod[_P]", classmethod(_described(call, method, returns="Client")))


def _described(call: _C, method: Callable[..., Any], *, returns: object = None) -> _C:
    """Give a function the name, docstring and signature of an asynchronous method."""
    described = functools.update_wrapper(call, method)
    signature = inspect.signature(method)
    if returns is not None:
        signature = signature.replace(return_annotation=returns)
        described.__annotations__ = {**described.__annotations__, "return": returns}
    described.__signature__ = signature  # type: ignore[attr-defined]  # which `inspect` reads
    described.__qualname__ = method.__qualname__.removeprefix("Async")
    return call


class Client(Access):
    """A connection to a Karmada API server, as AsyncClient without asyncio.

    The client is a context manager; without `with`, `close` or the end of Python closes it. A
    client of `local` ends its installation.
    """

    _ends: asyncio.Event | None = None

    local = _opened(AsyncClient.local)
    train = _as_job(AsyncClient.train)
    submit = _as_job(AsyncClient.submit)
    sweep = _as_result(AsyncClient.sweep)
    plan = _as_result(AsyncClient.plan)
    get = _as_job(AsyncClient.get)
    list = _as_jobs(AsyncClient.list)

    def close(self) -> None:
        """Close all connections, and end a local installation."""
        atexit.unregister(self.close)
        if self._ends is not None:
            try:
                self._loop.run(self._stop())
            finally:
                self._ends = None
                self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            self._loop.interrupted(error)
        self.close()

    def _begin(self) -> None:
        self._open(
            AsyncClient(
                kubeconfig=self.kubeconfig,
                context=self._context,
                namespace=self.namespace,
                page=self.page,
            ),
            local=False,
        )

    def _open(self, opening: AbstractAsyncContextManager[AsyncClient], *, local: bool) -> None:
        self._loop = _Loop(local=local)
        self._opening = opening
        try:
            self._same = self._loop.run(self._start())
        except BaseException:
            self._loop.close()
            raise
        self.kubeconfig, self.namespace = self._same.kubeconfig, self._same.namespace
        self.page = self._same.page
        atexit.register(self.close)

    async def _start(self) -> AsyncClient:
        """Open the client in a task that also closes it, since a cancel scope belongs to a task."""
        self._ends = asyncio.Event()
        started: asyncio.Future[AsyncClient] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(started, self._ends))
        try:
            await asyncio.wait((started, self._task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await cancel([self._task])
            raise
        if self._task.done():
            self._task.result()
        return await started

    async def _hold(self, started: "asyncio.Future[AsyncClient]", ends: asyncio.Event) -> None:
        async with self._opening as client:
            started.set_result(client)
            await ends.wait()

    async def _stop(self) -> None:
        assert self._ends is not None
        self._ends.set()
        await self._task


class Job(JobView):
    """A HyperJob of an API server, as AsyncJob without asyncio."""

    def __init__(self, loop: _Loop, job: AsyncJob) -> None:
        super().__init__(job.reading)
        self._loop = loop
        self._same = job

    refresh = _as_result(AsyncJob.refresh)
    wait = _as_wait(AsyncJob.wait)
    logs = _as_iterator(AsyncJob.logs)
    watch = _as_iterator(AsyncJob.watch)
    metrics = _as_result(AsyncJob.metrics)
    plot = _as_result(AsyncJob.plot)
    why = _as_result(AsyncJob.why)
    events = _as_result(AsyncJob.events)
    suspend = _as_result(AsyncJob.suspend)
    resume = _as_result(AsyncJob.resume)
    restart = _as_result(AsyncJob.restart)
    migrate = _as_result(AsyncJob.migrate)
    delete = _as_result(AsyncJob.delete)

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Print after Ctrl-C that the HyperJob keeps running, and how to stop it."""
        try:
            yield
        except KeyboardInterrupt:
            if self._loop.local and not is_interactive():
                raise
            print(
                f"\nHyperJob {self.namespace}/{self.name} keeps running. To stop it:"
                " job.suspend() or"
                f" job.delete(), or: kubectl delete hj {self.name} -n {self.namespace}",
                file=sys.stderr,
            )
            raise
