"""The end of a local installation: with its block, and at any death of its owner."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperjob_sandbox.local import lifeline as module
from hyperjob_sandbox.local.lifeline import lifeline
from hyperjob_sandbox.local.parts import StackError

SLEEP = "import sys, time; print('up', flush=True); time.sleep(600)"
OWNER = f"""
import asyncio, sys
from hyperjob_sandbox.local.lifeline import lifeline
async def own():
    async with lifeline() as line:
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", {SLEEP!r}, process_group=line.group)
        print(line.folder, flush=True)
        await asyncio.sleep(600)
asyncio.run(own())
"""


async def started(*words: str, group: int | None = None) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *words), stdout=asyncio.subprocess.PIPE, process_group=group
    )


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - a folder has no event
            await asyncio.sleep(0.01)


async def line_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


async def test_processes_and_folder_end_with_the_block() -> None:
    async with lifeline() as line:
        process = await started("-c", SLEEP, group=line.group)
        assert await line_of(process) == "up"
        (line.folder / "deep").mkdir()
        (line.folder / "deep" / "file").touch()
    assert await process.wait() == -signal.SIGKILL
    assert not line.folder.exists(), "the folder is gone once the block has ended"
    assert module._held == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_the_whole_group_does_not_end_the_keeper(number: signal.Signals) -> None:
    async with lifeline() as line:
        os.killpg(line.group, number)
        assert line.folder.is_dir()
    assert not line.folder.exists()


async def test_processes_and_folder_end_after_a_kill_of_the_owner() -> None:
    owner = await started("-c", OWNER)
    lines = {await line_of(owner), await line_of(owner)}
    folder = Path(next(iter(lines - {"up"})))
    assert folder.is_dir()
    owner.kill()
    assert owner.stdout is not None
    async with asyncio.timeout(60):
        assert await owner.stdout.read() == b"", "the other process holds this pipe too"
    await until(lambda: not folder.exists())
    assert await owner.wait() == -signal.SIGKILL


async def test_a_keeper_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StackError, match="the keeper of the installation ended with 1"):
        async with lifeline():
            pytest.fail("there is no installation without a keeper")
    assert module._held == set()
