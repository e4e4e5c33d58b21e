"""How a demo ends by a signal: its keys go at once, then its parts, then its folder."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from hyperjob_sandbox_cli.demo import ended_by_signals, remove_keys


def test_only_logs_stay_when_the_keys_are_removed(tmp_path: Path) -> None:
    for name in ("karmada.kubeconfig", "ready", "webhook.log", "tls/tls.key", "pods/a/secret"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    remove_keys(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["webhook.log"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_the_first_signal_removes_keys_and_then_cancels_and_a_second_does_not_interrupt(
    number: signal.Signals,
) -> None:
    course: list[str] = []
    running = asyncio.Event()

    async def work() -> None:
        try:
            running.set()
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)  # the loop reads the second signal
            await asyncio.sleep(0)
            course.append("parts have ended")

    task = asyncio.create_task(ended_by_signals(work(), first=lambda: course.append("keys")))
    await running.wait()
    os.kill(os.getpid(), number)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert course == ["keys", "parts have ended"]
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().remove_signal_handler(each)
