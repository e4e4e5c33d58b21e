"""The parent of all container processes outlives a pod whose folder is gone."""

from collections.abc import AsyncIterator
from pathlib import Path
from shutil import rmtree

import pytest

from hyperjob_sandbox.processes import hostclient
from hyperjob_sandbox.processes.hostclient import Command, ProcessHost, RefusedError


@pytest.fixture
async def host() -> AsyncIterator[ProcessHost]:
    async with ProcessHost() as made:
        yield made


def shell(script: str, log: Path) -> Command:
    path = "/usr/local/bin:/usr/bin:/bin"
    return Command(
        argv=["sh", "-c", script], env={}, cwd="/", path=path, log=log, scratch=log.parent
    )


async def test_a_container_whose_pod_has_no_folder_any_more_is_refused_alone(
    host: ProcessHost, tmp_path: Path
) -> None:
    with pytest.raises(RefusedError, match="log: No such file or directory"):
        await host.start("gone", shell("exit 0", tmp_path / "gone" / "main-0.log"))
    process = await host.start("next", shell("echo hello; exit 3", tmp_path / "main-0.log"))
    assert await process.exited == 3
    assert (tmp_path / "main-0.log").read_text().endswith("stdout F hello\n")


async def test_a_full_log_in_a_folder_that_is_gone_ends_no_other_container(
    host: ProcessHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostclient, "LOG_LIMIT", 100)
    folder = tmp_path / "pod"
    folder.mkdir()
    script = f"while [ -e {folder} ]; do sleep 0.01; done; seq 1000; exit 4"
    process = await host.start("full", shell(script, folder / "main-0.log"))
    rmtree(folder)
    assert await process.exited == 4
