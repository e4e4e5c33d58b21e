"""The lifeline of a local installation: a pipe whose end says that the owner's process is gone.

`keeper` reads the pipe and ends the installation, also after SIGKILL of the owner.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hyperjob_sandbox.local.parts import StackError

_held: Final[set[int]] = set()
"""The owner's ends of all lifelines of this process."""


@dataclass(frozen=True, slots=True)
class Lifeline:
    """The process group of an installation, and a temporary folder that ends with it."""

    group: int
    folder: Path


@contextlib.asynccontextmanager
async def lifeline() -> AsyncIterator[Lifeline]:
    """Hold a lifeline for the length of the block; raise StackError.

    At the end of the block, and at any death of this process, the keeper kills the processes of
    the group and removes the folder.
    """
    reading, writing = os.pipe()
    _held.add(writing)
    try:
        try:
            keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py"))),
                stdin=reading,
                stdout=asyncio.subprocess.PIPE,
                process_group=0,
            )
        finally:
            os.close(reading)
        assert keeper.stdout is not None
        folder = os.fsdecode((await keeper.stdout.readline()).rstrip(b"\n"))
        if not folder:
            raise StackError(f"the keeper of the installation ended with {await keeper.wait()}")
        try:
            yield Lifeline(keeper.pid, Path(folder))
        finally:
            _let_go(writing)
            # The keeper's child holds this pipe until it has removed the folder.
            await keeper.stdout.read()
            await keeper.wait()
    finally:
        _let_go(writing)


def _let_go(writing: int) -> None:
    if writing in _held:
        _held.remove(writing)
        os.close(writing)


def _forget() -> None:
    """Close the ends that a forked child inherits: the child may outlive the owner."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_forget)
