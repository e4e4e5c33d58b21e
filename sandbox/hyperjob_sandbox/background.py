"""A part of the embedded control plane: set up whole or not at all, and taken down whole."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self


class Part(ABC):
    """An async context manager with tasks in the background.

    `_set_up` enters on the stack all that has to end with the part, in any number of steps: when
    one of them fails, those before it are undone. The tasks end before all of it.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as undo:
            stack = await undo.enter_async_context(AsyncExitStack())
            undo.push_async_callback(self.stop)
            await self._set_up(stack)
            self._stack = undo.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @abstractmethod
    async def _set_up(self, stack: AsyncExitStack) -> None:
        """Start the part."""

    def start(self, work: Coroutine[None, None, None], *, name: str) -> None:
        """Run something in the background."""
        self._tasks.append(asyncio.create_task(work, name=name))

    async def until(self, work: Coroutine[None, None, object]) -> None:
        """Wait for the end of `work`; raises what it or a task dies of meanwhile."""
        waiting = asyncio.ensure_future(work)
        try:
            pending = {waiting, *self._tasks}
            while waiting in pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                self._tasks = [task for task in self._tasks if task not in done]
                for task in done:
                    task.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def failure(self) -> None:
        """Wait for a task in the background to die, and raise what it died of."""
        await self.until(asyncio.Event().wait())

    async def stop(self) -> None:
        """Cancel all tasks and wait for them; raises what one died of, if `until` has not."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
