"""A sweep trains each combination of arguments, some at a time, and returns a row for each."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperjob.sdk.aio import AsyncClient
from hyperjob.sdk.errors import HyperJobError, NeverReachedError
from tests.unit.cli.fleet import Fleet


class Job:
    """A training that ends when it is told to."""

    def __init__(self, number: int, error: Exception | None, rows: Any) -> None:
        self.name, self.phase = f"job-{number}", "Failed" if error else "Completed"
        self._error, self._rows = error, rows

    async def wait(self, state: str) -> None:
        assert state == "Completed"
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error

    async def metrics(self) -> Any:
        if isinstance(self._rows, Exception):
            raise self._rows
        return self._rows


class Trainings:
    def __init__(self) -> None:
        self.options: list[dict[str, Any]] = []
        self.running = self.most = 0
        self.errors: dict[int, Exception] = {}
        self.rows: dict[int, Any] = {}

    async def train(self, _client: Any, function: Any, **options: Any) -> Job:
        number = len(self.options)
        self.options.append(options)
        job = Job(number, self.errors.get(number), self.rows.get(number, []))
        self.running += 1
        self.most = max(self.most, self.running)
        wait = job.wait

        async def waited(state: str) -> None:
            try:
                await wait(state)
            finally:
                self.running -= 1

        job.wait = waited  # type: ignore[method-assign]
        return job


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    found = Trainings()

    async def train(client: Any, function: Any, **options: Any) -> Job:
        return await found.train(client, function, **options)

    monkeypatch.setattr(AsyncClient, "train", train)
    return found


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncClient]:
    fleet = Fleet()

    fleet.serve(monkeypatch)
    async with AsyncClient() as found:
        yield found


def work(lr: float, size: int) -> None: ...


async def test_each_combination_is_a_training_and_a_row(
    client: AsyncClient, trainings: Trainings
) -> None:
    trainings.errors[1] = NeverReachedError("it failed")
    trainings.rows = {
        0: [{"step": 1, "loss": 9.0}, {"step": 2, "loss": 1.0}],
        2: HyperJobError("x"),
    }
    rows = await client.sweep(
        work, {"lr": [0.1, 0.2], "size": [1, 2]}, args={"seed": 7}, labels={"team": "a"}, parallel=9
    )
    assert rows == [
        {"lr": 0.1, "size": 1, "job": "job-0", "phase": "Completed", "step": 2, "loss": 1.0},
        {"lr": 0.1, "size": 2, "job": "job-1", "phase": "Failed"},
        {"lr": 0.2, "size": 1, "job": "job-2", "phase": "Completed"},
        {"lr": 0.2, "size": 2, "job": "job-3", "phase": "Completed"},
    ]
    assert trainings.options[2]["args"] == {"seed": 7, "lr": 0.2, "size": 1}
    labels = [each["labels"] for each in trainings.options]
    assert all(each == labels[0] for each in labels)
    assert labels[0]["team"] == "a"
    assert labels[0]["sweep"].startswith("work-")
    await client.sweep(work, {"lr": [1]})
    assert trainings.options[-1]["labels"]["sweep"] != labels[0]["sweep"]


@pytest.mark.parametrize("parallel", [1, 3])
async def test_so_many_trainings_exist_at_a_time(
    client: AsyncClient, trainings: Trainings, parallel: int
) -> None:
    await client.sweep(work, {"size": list(range(8))}, parallel=parallel)
    assert (trainings.most, len(trainings.options)) == (parallel, 8)


async def test_an_error_of_one_training_ends_the_sweep(
    client: AsyncClient, trainings: Trainings
) -> None:
    trainings.errors[0] = HyperJobError("no answer")
    with pytest.raises(HyperJobError, match="no answer"):
        await client.sweep(work, {"size": [1, 2, 3]}, parallel=1)
    assert len(trainings.options) < 3
