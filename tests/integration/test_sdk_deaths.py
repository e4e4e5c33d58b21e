"""No death of the client of a local installation leaves a process, a port or a folder."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.processes import wait_for

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(120)]

SECONDS = 60

SCRIPT = """
import os
from hyperjob.sdk import Client

def train():
    import tempfile, time
    tempfile.mkdtemp()
    print("training", flush=True)
    while True:
        time.sleep(0.1)

print("starting", flush=True)
with Client.local(clusters=2) as client:
    print("ready", flush=True)
    job = client.train(train, clusters=2, replicas=2)
    for line in job.logs(follow=True):
        print(line.text, flush=True)
        {then}
"""


def environment_of(pid: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def processes(folder: Path) -> list[str]:
    """Return the processes whose variables or command name the folder, pods included."""
    name = os.fsencode(folder)
    pids = [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]
    return [pid for pid in pids if name in environment_of(pid)]


def listening(pids: Sequence[str]) -> set[tuple[str, str]]:
    """Return the addresses and inodes of the TCP sockets on which processes listen."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for each in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(str(each.readlink()).removeprefix("socket:[").removesuffix("]"))
    return {each for each in sockets() if each[1] in inodes}


def sockets() -> set[tuple[str, str]]:
    """Return all listening sockets; another process may get the address of one that is closed."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {(row[1], row[9]) for row in rows if row[3] == "0A"}


def all_end(folder: Path, ports: set[tuple[str, str]]) -> None:
    wait_for(  # a process that ends closes its sockets after it has left the list
        lambda: not (processes(folder) or [*folder.iterdir()] or ports & sockets()),
        what="the end of all processes, folders and ports",
        timeout=SECONDS,
    )


def started(client: "subprocess.Popen[str]", until: str, folder: Path) -> None:
    """Wait until the client prints a line, or until the installation has created a file."""
    if "/" in until:
        pattern = f"hyperjob-*{until.rstrip('/')}"
        wait_for(lambda: [*folder.glob(pattern)], what=until, process=client, timeout=90)
        return
    assert client.stdout is not None
    assert until in (line.strip() for line in client.stdout), until


@pytest.mark.parametrize(
    ("until", "number"),
    [
        *(
            pytest.param(moment, signal.SIGINT, id=f"ctrl-c {moment}")
            for moment in (
                "/",
                "/tls/tls.crt",
                "/controller.log",
                "training",
            )
        ),
        pytest.param("/control-plane.log", signal.SIGKILL, id="sigkill at the start"),
        pytest.param("training", signal.SIGKILL, id="sigkill while training"),
        pytest.param("training", signal.SIGTERM, id="sigterm while training"),
        pytest.param("raise ValueError('mine')", None, id="exception"),
        pytest.param("os._exit(7)", None, id="os._exit"),
    ],
)
def test_nothing_is_left(until: str, number: signal.Signals | None, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(then="pass" if number else until))
    client = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        process_group=0,
    )
    try:
        started(client, until if number else "training", folder)
        ports = listening(processes(folder))
        if until == "training":
            assert len(ports) > 3, "the servers of the installation"
        if number is not None:
            # Ctrl-C in a terminal reaches the whole group of the foreground.
            os.killpg(client.pid, number)
        _, errors = client.communicate(timeout=30)
        all_end(folder, ports)
        if number is None:
            assert client.returncode == (7 if "exit" in until else 1)
            assert "exit" in until or errors.endswith("ValueError: mine\n")
        else:
            assert client.returncode == -number
            line = "Interrupted: the local installation ends.\n"
            assert errors == (line if number == signal.SIGINT else "")
    finally:
        client.kill()
        client.communicate()


def test_a_closed_terminal_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(then="pass"))
    terminal, inside = os.openpty()
    client = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        os.close(inside)
        text = b""
        while b"training" not in text:
            text += os.read(terminal, 1024)
        ports = listening(processes(folder))
        os.close(terminal)
        client.wait(SECONDS)
        all_end(folder, ports)
        assert client.returncode == -signal.SIGHUP
    finally:
        client.kill()
        client.wait()
