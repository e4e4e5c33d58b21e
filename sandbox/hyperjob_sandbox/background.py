"""What a part of the embedded control plane is: set up whole or not at all, and taken down whole.

It must never leave a task behind that it does not await.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self


class Background:
    """Tasks with an owner: started one by one, ended and awaited together."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

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

    async def stop(self) -> None:
        """Cancel all tasks and wait for them; raises what one died of, if `until` has not."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result


class Part(ABC):
    """An async context manager with tasks in the background.

    `_set_up` enters on the stack all that has to end with the part, in any number of steps: when
    one of them fails, those before it are undone.
    """

    def __init__(self) -> None:
        self._background = Background()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._set_up(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def failure(self) -> None:
        """Wait for a task in the background to die, and raise what it died of."""
        await self._background.until(asyncio.Event().wait())

    @abstractmethod
    async def _set_up(self, stack: AsyncExitStack) -> None:
        """Start the part."""
