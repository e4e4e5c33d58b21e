"""A list that takes much CPU time waits between its pages; other lists do not wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import orjson
import pytest

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.paging import Bounds, Decoding, read_pages
from hyperjob_core.kube.resources import PODS
from hyperjob_core.kube.transport import Params, Response
from hyperjob_core.virtualtime import run


@dataclass
class Cpu:
    """A clock of CPU time that only moves as told."""

    taken: float = 0.0
    decoding: Decoding = field(init=False)

    def __post_init__(self) -> None:
        self.decoding = Decoding(lambda: self.taken)

    def of(self, seconds: float) -> Callable[[Object], Object]:
        """Return a transform that takes so much CPU time for each object."""

        def transform(obj: Object) -> Object:
            self.taken += seconds
            return obj

        return transform


async def page(params: Params) -> Response:
    """Return the next of five pages of one Pod."""
    number = int(params.get("continue") or 0)
    pod = {"metadata": {"namespace": "ml", "name": f"p{number}", "resourceVersion": "1"}}
    rest = {"continue": str(number + 1)} if number < 4 else {}
    body = orjson.dumps({"metadata": {"resourceVersion": "1", **rest}, "items": [pod]})
    return Response(200, {}, body)


async def seconds(reading: Callable[[], Awaitable[object]]) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await reading()
    return loop.time() - began


def reading(cpu: Cpu, each: float) -> Callable[[], Awaitable[object]]:
    async def read() -> object:
        return await read_pages(
            page,
            PODS,
            "GET pods",
            limit=1,
            transform=cpu.of(each),
            bounds=Bounds(),
            decoding=cpu.decoding,
            pages=nullcontext(),
        )

    return read


def test_a_list_waits_between_its_pages_once_it_has_taken_a_second_of_cpu() -> None:
    cpu = Cpu()
    assert run(seconds(reading(cpu, 0.1))) == 0.0
    assert run(seconds(reading(Cpu(), 0.5))) == 3 * 3 * 0.5, "pages three to five wait"


def test_slow_lists_wait_for_each_other_and_no_other_list_waits_for_them() -> None:
    cpu = Cpu()

    async def beside() -> tuple[float, float, float]:
        slow = [asyncio.ensure_future(seconds(reading(cpu, 2.0))) for _ in range(2)]
        await asyncio.sleep(1.0)
        honest = await seconds(reading(cpu, 0.1))
        return honest, await slow[0], await slow[1]

    honest, *slow = run(beside())
    assert honest == 0.0
    assert max(slow) == pytest.approx(2 * 4 * 3 * 2.0), (
        "both together wait three times what they take"
    )
