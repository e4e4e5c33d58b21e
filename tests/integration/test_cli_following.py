"""`hyperjob logs -f` follows what starts later, against an API server with a member behind it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_sandbox.apiserver.verbs import podlogs
from tests.support.cliworld import ENDED, NAMESPACE, CliWorld, hyperjob, status

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]


async def test_following_goes_on_with_pods_that_start_later_and_ends_with_the_hyperjob(
    world: CliWorld,
) -> None:
    async def set_jobs(phase: str, *clusters: str) -> None:
        jobs = [{"cluster": cluster, "phase": phase} for cluster in clusters]
        await world.set_status(HYPERJOBS, "live", status("live", phase, *jobs))

    now = datetime.now(UTC).isoformat()
    await world.make(HYPERJOBS, hyperjob("live"), status("live", "Queued", {}, {}))
    world.watched.clear()
    following = asyncio.create_task(world.run("logs", "live", "-f", "-c", "main", "--tail=1"))
    await world.watched.wait()
    await world.pod("live-trainer-0-worker-0", {"terminated": ENDED})
    await set_jobs("Running", "east")
    await world.pod("live-trainer-1-worker-0", {"running": {"startedAt": now}})
    await set_jobs("Running", "east", "east")
    before = await world.asked_member("get", "live-trainer-1-worker-0/log")
    once = {"startedAt": now, "finishedAt": datetime.now(UTC).isoformat(), "exitCode": 3}
    await world.pod("live-trainer-1-worker-0", {"terminated": once}, phase="Running")
    await world.asked_member("list", "/", after=before)
    later = datetime.now(UTC) + timedelta(seconds=5)
    again = {"startedAt": later.isoformat(), "exitCode": 0}
    again["finishedAt"] = (later + timedelta(seconds=3)).isoformat()
    await world.pod(
        "live-trainer-1-worker-0", {"terminated": again}, restarts=1, before={"terminated": once}
    )
    await set_jobs("Completed", "east", "east")
    done = await following
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    first, second = (
        [line.split("] ")[1] for line in lines if line.startswith(f"[east/live-trainer-{index}-")]
        for index in range(2)
    )
    whole = ["started on node-1 (simulated)", "step 1", "step 2", "step 3", "ended with exit code"]
    assert first == [*whole[:4], f"{whole[4]} 0"]
    assert second[0] == whole[0]
    assert second.count(f"{whole[4]} 3") == 1, "of the run before"
    assert [line for line in second if line != f"{whole[4]} 3"][-5:] == first
    assert "no pod of live has a log yet: kubectl hyperjob why live -n ml" in done.stderr


async def test_following_ends_when_the_hyperjob_is_deleted(world: CliWorld) -> None:
    jobs = status("brief", "Running", {"cluster": "east"})
    await world.make(HYPERJOBS, hyperjob("brief"), jobs)
    await world.pod("brief-trainer-0-worker-0", {"terminated": ENDED}, phase="Running")
    world.watched.clear()
    following = asyncio.create_task(world.run("logs", "brief", "-f", "--tail=-1"))
    await world.watched.wait()
    await world.asked_member("get", "brief-trainer-0-worker-0/log")
    await world.kube.delete(HYPERJOBS, "brief", namespace=NAMESPACE)
    done = await following
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5


async def test_waiting_for_a_step_reads_the_logs_before_the_status_has_it(
    world: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[int] = [59]
    simulated = podlogs.entries

    def with_progress(*pod: Any, **options: Any) -> list[Any]:
        said = (json.dumps({"hyperjob": {"step": step}}) for step in printed)
        return simulated(*pod, **options) + [(datetime.now(UTC), line) for line in said]

    monkeypatch.setattr(podlogs, "entries", with_progress)
    now = datetime.now(UTC).isoformat()
    await world.make(HYPERJOBS, hyperjob("steps"), status("steps", "Running", {"cluster": "east"}))
    await world.pod("steps-trainer-0-worker-0", {"running": {"startedAt": now}})
    waiting = asyncio.create_task(world.run("wait", "steps", "--for=step=60", "--timeout=60s"))
    await world.asked_member("get", "steps-trainer-0-worker-0/log")
    assert not waiting.done()
    printed.append(61)
    done = await waiting
    assert (done.exit_code, done.stderr) == (0, "")
    assert "steps condition met" in done.stdout
