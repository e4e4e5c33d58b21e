"""How soon the reader knows of a hang and of a slow rank, with the interval of the chart."""

import asyncio
import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from hyperjob_core.virtualtime import run
from hyperjob_engine.model.training import straggler
from tests.unit.controller.test_training_reader import KEY, T0, Bench, job, seen, text

INTERVAL = 30.0
NEVER = 10_000.0


class Training:
    """The logs of two pods of two ranks that wait for the last one, slow from second `fault` on."""

    def __init__(self, step: float, after: float, *, fault: float, behind: float = 0.0) -> None:
        self._step, self._after, self._fault, self._behind = step, after, fault, behind

    def get(self, name: str, _: bytes) -> bytes:
        lines = self._lines(int(name.split("-")[2]))
        return b"".join(line for at, line in lines if at <= asyncio.get_running_loop().time())

    def _lines(self, pod: int) -> Iterator[tuple[float, bytes]]:
        at, slow, number = 0.0, 0, 0
        while at < self._fault + 100:
            yield at, text(at - self._behind, number, f', "sampled": {0.8 if slow else 0.1}')
            if slow >= 3:  # then also the other ranks of a pod print how long they wait
                rank = f'"rank": {2 * pod + 1}, "sampled": {0.02 if pod else 0.8}'
                yield at + 1, text(at + 1, 0).replace(b'"step": 0', rank.encode())
            slow += at >= self._fault
            at, number = at + (self._after if at >= self._fault else self._step), number + 1


def bench(training: Training, *, pods: int) -> Bench:
    """Return a reader of a training, in virtual time."""

    def now() -> datetime:
        return T0 + timedelta(seconds=asyncio.get_running_loop().time())

    made = Bench(interval=INTERVAL, now=now)
    made.logs.answers = training  # type: ignore[assignment]  # all that is asked of it
    made.planned(seen(*(job(f"hj-trainer-{n}", phase="Running", gpus=1) for n in range(pods))))
    return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("step", "after"), [(1, 5), (1, 8), (2, 6), (1, NEVER), (5, NEVER)])
def test_a_slow_rank_and_a_hang_are_known_after_45_seconds(
    step: float, after: float, seed: int
) -> None:
    fault = 100 + 3 * seed  # at any time since the last read

    async def notice() -> float:
        loop = asyncio.get_running_loop()
        async with bench(Training(step, after, fault=fault), pods=2) as made:
            while loop.time() < fault + 100:
                found = straggler(made.reader.waits(KEY), steps_per_second=None)
                if made.reader.hang(KEY) is not None or (found is not None and found.rank == 3):
                    return loop.time() - fault
                await asyncio.sleep(0.5)
        return NEVER

    random.seed(seed)
    assert run(notice()) <= 45


@pytest.mark.parametrize("behind", [0.0, 8.0, 25.0])
def test_a_training_at_its_pace_is_read_once_an_interval(behind: float) -> None:
    async def reads() -> int:
        async with bench(Training(5, 5, fault=NEVER, behind=behind), pods=1) as made:
            await asyncio.sleep(300)
            before = len(made.logs.asked)
            await asyncio.sleep(900)
            return len(made.logs.asked) - before

    random.seed(7)
    assert run(reads()) <= 900 / (0.9 * INTERVAL) + 1
