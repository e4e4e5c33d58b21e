"""The logs of a HyperJob are followed through cut streams and restarts, each line once."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.summary import read
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.memory import Call, MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.virtualtime import run
from tests.unit.cli.objects import hyperjob, sub_job

LINES = [b"2026-01-02T03:04:%02d.5Z line %d\n" % (second, second) for second in range(60)]
JOB = sub_job(phase="Running", cluster="east")


class Member(MemoryServer):
    """Karmada with one member, whose pods and streams of logs are scripts.

    A script has the bytes of a stream, seconds to wait, errors, and functions to call.
    """

    def __init__(self, *streams: Sequence[Any]) -> None:
        super().__init__(now=lambda: datetime(2026, 1, 2, tzinfo=UTC))
        self.pods = [pod()]
        self.streams = list(streams)
        self.asked: list[Mapping[str, str]] = []
        self.create(HYPERJOBS, hyperjob("Running", JOB))

    def answer(self, call: Call) -> Any:
        return {"items": self.pods} if call.subresource == "proxy" else super().answer(call)

    def end(self) -> None:
        self.change(HYPERJOBS, "ml/llm", hyperjob("Completed", {**JOB, "phase": "Completed"}))

    async def stream(
        self, path: str, *, params: Mapping[str, str], **more: Any
    ) -> AsyncGenerator[bytes, None]:
        if "watch" in params:
            async with aclosing(super().stream(path, params=params, **more)) as events:
                async for event in events:
                    yield event
        self.asked.append(params)
        for each in self.streams.pop(0) if self.streams else ():
            match each:
                case bytes():
                    yield each
                case float():
                    await asyncio.sleep(each)
                case KubeError():
                    raise each
                case _:
                    each()


def pod(restarts: int = 0, state: str = "running", uid: str = "1") -> dict[str, Any]:
    main = {"name": "main", "restartCount": restarts, "state": {state: {}}}
    return {
        "metadata": {"name": "llm-trainer-0-worker-0", "uid": uid},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "containerStatuses": [main]},
    }


def follow(member: Member, *, seconds: float = 600) -> tuple[list[str], list[str], bool]:
    """Return the lines, the remarks, and whether a log failed; the HyperJob ends by then."""

    async def all_of_them() -> tuple[list[str], list[str], bool]:
        remarks: list[str] = []
        asyncio.get_running_loop().call_later(seconds, member.end)
        async with Kube(member) as kube:
            summary = read(await kube.get(HYPERJOBS, "llm", namespace="ml"))
            following = Following(kube, summary, Wanted(), limit=50, say=remarks.append)
            async with aclosing(following.lines()) as lines:
                found = [line.decode() async for _, line in lines]
        return found, remarks, following.failed

    return run(all_of_them())


def numbers(lines: Sequence[str]) -> list[int]:
    return [int(line.rpartition(" ")[2]) for line in lines]


def test_a_stream_that_ends_while_the_container_runs_is_continued() -> None:
    """Two streams without a new line end at once: only the pod shows that the container runs."""
    member = Member([LINES[1]], [LINES[1]], [LINES[1], LINES[2]], [LINES[2]])
    member.streams.append([LINES[2], 30.0, LINES[3], 900.0])
    found, remarks, failed = follow(member)
    assert (numbers(found), remarks, failed) == ([1, 2, 3], [], False)
    assert member.asked[4]["sinceTime"] == "2026-01-02T03:04:02Z"


@pytest.mark.parametrize("uid", ["1", "2"])
def test_a_restart_continues_the_log_of_its_container(uid: str) -> None:
    def end() -> None:
        member.pods = [pod(0, "terminated")]

    def restart() -> None:
        member.pods = [pod(1, uid=uid)]
        member.streams = [[LINES[2], LINES[5], 900.0]]

    member = Member([LINES[1], LINES[2], 9.0, end], [LINES[2], restart])
    found, remarks, failed = follow(member)
    assert (numbers(found), remarks, failed) == ([1, 2, 5], [], False)
    assert [asked.get("sinceTime", "")[-3:] for asked in member.asked][:3] == ["", "02Z", "02Z"]


def test_a_container_that_has_ended_is_read_once() -> None:
    member = Member([LINES[1]], [LINES[1]])
    member.pods = [pod(0, "terminated")]
    assert numbers(follow(member)[0]) == [1]
    assert len(member.asked) == 2, "the second stream shows that the first one was complete"


def test_a_log_that_is_refused_is_read_and_said_once() -> None:
    member = Member([from_status(make_status(403, "no right to pods/log"), "GET log")])
    found, remarks, failed = follow(member)
    assert (found, failed) == ([], True)
    assert [each for each in remarks if "no right" in each] == [
        "east/llm-trainer-0-worker-0: Error from server (Forbidden): no right to pods/log"
    ]
    assert len(member.asked) == 1
