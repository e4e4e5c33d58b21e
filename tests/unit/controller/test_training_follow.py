"""The logs of stopping sub-jobs, which are open before the deletion of their pods."""

import pytest

from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.model.planned import Plan
from tests.support.apiserver import refusal
from tests.unit.controller.test_training_reader import KEY, Bench, seen, text
from tests.unit.engine.builders import job

PODS = [f"a/hj-trainer-0-worker-{number}" for number in range(20)]
STOP = {
    "cause": "Suspended",
    "since": "2026-01-02T03:04:00Z",
    "until": "2026-01-02T03:05:00Z",
    "jobs": ["hj-trainer-0"],
}


def known(bench: Bench) -> SubJobTraining:
    return bench.reader.trainings(KEY)["hj-trainer-0"]


def stops(bench: Bench, pods: int) -> None:
    """Decide a stop of a sub-job before any line of it was read; it is not written yet."""
    running = seen(job(phase="Running", gpus=pods))
    bench.reader.planned(running, Plan(status={**running.hyperjob.status, "stop": STOP}))


async def test_the_deletion_waits_until_the_logs_of_all_pods_are_open() -> None:
    async with Bench(interval=60) as bench:
        bench.logs.hung.add(PODS[1])
        bench.logs.answers[PODS[2]] = text(1, 7)
        stops(bench, 3)
        await bench.until(lambda: known(bench).step == 7)
        assert not known(bench).followed
        bench.logs.released.set()
        await bench.until(lambda: known(bench).followed)
        assert (KEY, 0.0) in bench.woken, "a pass deletes the sub-job now"
        assert not known(bench).ended


@pytest.mark.parametrize("number", [3, 19])
async def test_each_pod_is_looked_at_for_the_one_that_reports(number: int) -> None:
    async with Bench(interval=60) as bench:
        bench.logs.answers[PODS[number]] = text(1, 7) + text(2, 8, ', "saved": 8')
        bench.logs.holding.set()
        stops(bench, 20)
        await bench.until(lambda: known(bench).ended)
        assert (known(bench).step, known(bench).saved_step) == (8, 8)


async def test_a_container_that_starts_after_all_is_followed_too() -> None:
    async with Bench(interval=60) as bench:
        bench.logs.answers[PODS[0]] = refusal(400, "BadRequest")
        stops(bench, 1)
        await bench.until(lambda: known(bench).followed)
        assert not known(bench).ended
        bench.logs.answers[PODS[0]] = text(1, 7, ', "saved": 7')
        bench.logs.holding.set()
        await bench.until(lambda: known(bench).ended)
        assert known(bench).saved_step == 7
