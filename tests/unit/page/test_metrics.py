"""The curves of a HyperJob come from the logs of its pods, a line for each rank and attempt."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from hyperjob.client.summary import read
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.memory import Call, MemoryServer
from hyperjob_page.pages import metrics
from hyperjob_page.pages.metrics import MetricsChoice, Progress, progress_of
from tests.unit.cli.objects import hyperjob, sub_job

UID = "u1"


def printed(*steps: int, second: int = 0, loss: float = 1.0) -> bytes:
    """Return progress lines, one each second."""
    form = '2026-01-02T03:04:{:02}Z {{"hyperjob": {{"step": {}, "metrics": {{"loss": {}}}}}}}\n'
    return "".join(form.format(second + n, step, loss) for n, step in enumerate(steps)).encode()


class Member(MemoryServer):
    """Karmada with one member: the log of each pod by the number of its rank, or an error."""

    def __init__(self, *logs: bytes | KubeError | asyncio.Event) -> None:
        super().__init__(now=lambda: datetime(2026, 1, 2, tzinfo=UTC))
        self.logs = logs
        self.tails: list[str] = []

    def answer(self, call: Call) -> Any:
        if call.subresource != "proxy":
            return super().answer(call)
        return {"items": [pod(rank) for rank in range(len(self.logs))]}

    async def stream(
        self, path: str, *, params: Mapping[str, str], **more: Any
    ) -> AsyncGenerator[bytes, None]:
        self.tails.append(params["tailLines"])
        log = self.logs[int(path.removesuffix("/log").rpartition("-")[2])]
        if isinstance(log, KubeError):
            raise log
        if isinstance(log, asyncio.Event):
            await log.wait()
            return
        yield log


def pod(rank: int) -> dict[str, Any]:
    offset = {"name": "HYPERJOB_RANK_OFFSET", "value": "0"}
    return {
        "metadata": {
            "name": f"llm-trainer-0-worker-{rank}",
            "uid": str(rank),
            "labels": {"volcano.sh/task-index": str(rank)},
        },
        "spec": {"containers": [{"name": "main", "env": [offset]}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"running": {}}}],
        },
    }


def running(**job: Any) -> dict[str, Any]:
    made = hyperjob("Running", sub_job(**{"phase": "Running", "cluster": "east", **job}))
    made["metadata"]["uid"] = UID
    return made


async def progress(
    member: Member, *ranks: int, **job: Any
) -> tuple[dict[str, list[int]], list[str]]:
    """Return the steps of each line, and the remarks."""
    lines, remarks = await progress_of(Kube(member), read(running(**job)), ranks)
    return {line.name: steps(line) for line in lines}, remarks


def steps(line: Progress) -> list[int]:
    return [point.step for point in line.points]


async def test_each_rank_has_a_line_of_its_present_attempt() -> None:
    member = Member(b"2026-01-02T03:04:00Z starts\n" + printed(1, 2), printed(1, 3))
    assert await progress(member, attempt=1) == (
        {"rank 0, attempt 2": [1, 2], "rank 1, attempt 2": [1, 3]},
        [],
    )


async def test_the_chosen_ranks_alone_are_read() -> None:
    member = Member(printed(1), printed(2), printed(3))
    assert await progress(member, 1, 2) == (
        {"rank 1, attempt 1": [2], "rank 2, attempt 1": [3]},
        [],
    )
    assert len(member.tails) == 2


async def test_lines_that_changed_places_are_no_new_begin_and_a_restart_is_one() -> None:
    swapped = printed(3) + printed(2) + printed(4, second=1)
    member = Member(swapped + printed(1, 2, second=20))
    assert (await progress(member))[0] == {"rank 0, attempt 1": [3, 4, 1, 2]}


async def test_a_long_log_is_thinned_and_ends_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    many = b"".join(printed(step, second=step % 60) for step in range(5000))
    ((name, found),) = (await progress(Member(many)))[0].items()
    assert name == "rank 0, attempt 1"
    assert (found[0], found[-1]) == (0, 4999)
    assert 200 <= len(found) <= 401
    monkeypatch.setattr(metrics, "_BYTES", 2**20 // 4)
    cut, remarks = await progress(Member(many))
    assert cut[name][-1] < 4999
    assert remarks == ["the rest after 0.25 MiB is not read"]


async def test_a_log_that_does_not_answer_holds_up_no_visitor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "_SECONDS", 0.2)
    lines, remarks = await progress(Member(printed(1), asyncio.Event()))
    assert remarks == ["the rest after 0.2 s is not read"]
    assert lines in ({}, {"rank 0, attempt 1": [1]})


@pytest.mark.parametrize(
    ("query", "choice"),
    [
        ("", MetricsChoice()),
        ("rank=3,+1&axis=time", MetricsChoice(ranks=(3, 1), axis="time")),
        ("rank=x&axis=other", MetricsChoice()),
    ],
)
def test_the_address_names_ranks_and_axis(query: str, choice: MetricsChoice) -> None:
    assert MetricsChoice.of(make_mocked_request("GET", f"/metrics?{query}")) == choice
