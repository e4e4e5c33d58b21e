"""What the SDK prepares on this machine: its folders, its sources, and packages of the program."""

import asyncio
import os
import stat
import sys
import types
from pathlib import Path

import pytest

from hyperjob.sdk import start
from hyperjob.sdk.aio import machine_of, prepare, require_sources
from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.program import Machine
from hyperjob.sdk.training import trainer

WANTED = ("torch==2", "numpy")


def function(filename: str) -> object:
    namespace: dict[str, object] = {}
    exec(compile("def train(): pass", filename, "exec"), namespace)
    return namespace["train"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(snapshots=tmp_path / "snapshots", cache=tmp_path / "cache", images={})


def python(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Run these lines of a shell in place of Python; `$3` is the text of the requirements."""
    path = folder / "python"
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(path))


def test_torchrun_has_a_port_of_its_own_where_all_pods_are_on_one_machine(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    here = Machine(snapshots=tmp_path, cache=tmp_path, images={"torch:2": "/venv"})

    def flags(machine: Machine | None) -> list[str]:
        made = trainer(script, framework="torchrun", image="torch:2", _machine=machine)
        return made["spec"]["plugins"]["pytorch"]

    assert flags(None) == []
    found = {flag for _ in range(5) for flag in flags(here)}
    assert len(found) > 1
    assert all(flag.startswith("--port=") for flag in found)


def test_environments_are_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    made = machine_of(tmp_path, {"a": "b"})
    assert made == Machine(
        snapshots=tmp_path, cache=tmp_path / "own" / "hyperjob", images={"a": "b"}
    )
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert machine_of(tmp_path, {}).cache == tmp_path / ".cache" / "hyperjob"


@pytest.mark.parametrize(
    ("filename", "interactive", "refused"),
    [("<stdin>", False, True), ("<stdin>", True, False), ("train.py", False, False)],
)
def test_a_function_on_standard_input_has_no_source(
    filename: str, interactive: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = types.ModuleType("__main__")
    main.train = function(filename)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.delattr(sys, "ps1", raising=False)
    if interactive:  # Python keeps what a person types
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    if refused:
        with pytest.raises(SourceError, match=r"^train: Python cannot read the source .* a file$"):
            require_sources()
    else:
        require_sources()


async def test_nothing_is_installed_without_packages_or_where_they_are(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python(tmp_path, monkeypatch, "exit 1")
    await prepare([], machine)
    folder = start.place_of("\n".join(WANTED), machine.cache)
    folder.mkdir(parents=True)
    with pytest.raises(SourceError):  # an installation that has ended before its end
        await prepare(WANTED, machine)
    (folder / "complete").touch()
    await prepare(WANTED, machine)


async def test_packages_are_installed_into_the_cache(
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = tmp_path / "given"
    python(tmp_path, monkeypatch, f"printf '%s|%s' \"$3\" \"$4\" > '{given}'")
    await prepare(WANTED, machine)
    assert given.read_text() == f"torch==2\nnumpy|{machine.cache}"
    assert capsys.readouterr().err == "hyperjob: installs torch==2, numpy\n"


async def test_an_error_has_the_last_lines_of_pip(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python(tmp_path, monkeypatch, "seq 1 20 >&2", "exit 3")
    with pytest.raises(SourceError) as caught:
        await prepare(WANTED, machine)
    assert str(caught.value).splitlines() == [
        "pip cannot install the packages:",
        *(str(number) for number in range(13, 21)),
    ]


async def test_a_cancelled_installation_leaves_no_process(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    python(tmp_path, monkeypatch, f"echo $$ > '{started}'", "exec sleep 600")
    task = asyncio.create_task(prepare(WANTED, machine))
    async with asyncio.timeout(60):
        process = int(await asyncio.to_thread(started.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
