"""The SDK's client and job on an API server in memory: requests, waits, and the errors raised."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from hyperjob.sdk.aio import AsyncClient, _clusters_file
from hyperjob.sdk.errors import (
    HyperJobError,
    NeverReachedError,
    NotFoundError,
    NotReachedError,
)
from hyperjob.sdk.job import AsyncJob, row_of
from hyperjob_core.api.lines import LogLine as Line
from hyperjob_core.api.lines import parse
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.resources import HYPERJOBS
from tests.support.apiserver import refusal
from tests.unit.cli.fleet import Fleet, Object, accepting, running
from tests.unit.cli.objects import hyperjob


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    server = Fleet()
    server.hyperjob(running())
    server.hyperjob(hyperjob("Completed", queue="other"), "done")

    server.serve(monkeypatch)
    return server


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[AsyncClient]:
    async with AsyncClient() as found:
        yield found


@pytest.fixture
async def job(client: AsyncClient) -> AsyncJob:
    return await client.get("llm")


async def test_hyperjobs_are_listed_by_namespace_queue_and_labels(
    client: AsyncClient, fleet: Fleet
) -> None:
    labelled = hyperjob("Running", metadata={"namespace": "other", "labels": {"a": "b"}})
    fleet.put(HYPERJOBS, labelled)

    async def names(**how: Any) -> list[str]:
        return sorted(f"{each.namespace}/{each.name}" for each in await client.list(**how))

    assert await names() == ["ml/done", "ml/llm"]
    assert await names(namespace="other") == ["other/llm"]
    assert await names(all_namespaces=True) == ["ml/done", "ml/llm", "other/llm"]
    assert await names(all_namespaces=True, labels="a=b") == ["other/llm"]
    assert await names(queue="other") == ["ml/done"]
    assert await names(queue="none") == []


DOCUMENT = {"metadata": {"name": "new"}, "spec": {"replicatedJobs": []}}


async def test_a_document_is_submitted_into_its_namespace(
    client: AsyncClient, fleet: Fleet, tmp_path: Path
) -> None:
    made = await client.submit(DOCUMENT)
    assert (made.namespace, made.name) == ("ml", "new")
    stored = fleet.stored("new")
    assert stored["apiVersion"] == "training.volcano.sh/v1alpha1"
    there = {"metadata": {"name": "new", "namespace": "other"}, "spec": {}}
    assert (await client.submit(there)).namespace == "other"
    path = tmp_path / "one.yaml"
    path.write_text("---\n" + yaml.safe_dump({**DOCUMENT, "metadata": {"generateName": "g-"}}))
    fleet.calls.clear()
    with pytest.raises(KeyError):  # the server in memory makes no names
        await client.submit(path)
    assert len(fleet.calls) == 1, "a document without a name may have a prefix"


def test_the_clusters_of_a_local_installation_are_a_number_names_or_a_file(tmp_path: Path) -> None:
    def clusters(given: Any, gpus: int = 8) -> Any:
        document = yaml.safe_load(_clusters_file(given, gpus, tmp_path).read_text())
        return [
            (each["name"], each["nodes"][0]["count"], each["nodes"][0]["allocatable"])
            for each in document["clusters"]
        ]

    amounts = {"cpu": "1000", "memory": "1Ti", "nvidia.com/gpu": 8}
    assert clusters(2) == [("local-1", 1, amounts), ("local-2", 1, amounts)]
    assert clusters(["a"], 3) == [("a", 1, {**amounts, "nvidia.com/gpu": 3})]
    mine = tmp_path / "mine.yaml"
    assert _clusters_file(mine, 8, tmp_path) == mine


async def test_a_wait_returns_the_status_and_keeps_the_object(job: AsyncJob, fleet: Fleet) -> None:
    assert (await job.wait("Running")).phase == "Running"
    fleet.hyperjob(hyperjob("Completed"))
    assert job.phase == "Running"
    assert (await job.wait()).phase == "Completed"
    assert job.phase == "Completed"
    assert (await job.wait("condition=Completed")).phase == "Completed"


async def test_a_wait_that_fails_reads_the_hyperjob_again(job: AsyncJob, fleet: Fleet) -> None:
    with pytest.raises(ValueError, match="timeout=-1: expected seconds, and 0 for no limit"):
        await job.wait(timeout=-1)
    with pytest.raises(NotReachedError, match="timed out after"):
        await job.wait(timeout=0.05)
    assert issubclass(NotReachedError, TimeoutError)
    fleet.hyperjob(hyperjob("Failed", reason="JobFailed"))
    with pytest.raises(NeverReachedError, match="is Failed"):
        await job.wait()
    assert job.phase == "Failed"
    fleet.remove(HYPERJOBS, "ml/llm")
    with pytest.raises(NotFoundError):
        await job.wait("Running")
    assert job.phase == "Failed", "the last object stays"
    with pytest.raises(NotFoundError):
        await job.refresh()


async def test_a_wait_tells_its_progress_and_ends_what_it_shows(
    job: AsyncJob, fleet: Fleet
) -> None:
    def told(line: str) -> None:
        lines.append(line)
        fleet.put(HYPERJOBS, {**fleet.stored(), "status": hyperjob("Completed")["status"]})

    lines: list[str] = []
    assert (await job.wait(show=True, progress=told)).phase == "Completed"
    (line,) = lines
    assert line.startswith("llm is Running")
    assert line.endswith("waiting until it is Completed")


async def test_a_watch_ends_with_the_hyperjob(job: AsyncJob, fleet: Fleet) -> None:
    seen = []
    async for summary in job.watch():
        seen.append(summary.phase)
        if len(seen) == 1:
            fleet.put(HYPERJOBS, {**fleet.stored(), "status": hyperjob("Completed")["status"]})
    assert seen == ["Running", "Completed"]
    assert job.phase == "Completed"


async def test_a_watch_of_a_hyperjob_does_not_follow_another_of_its_name(
    job: AsyncJob, fleet: Fleet
) -> None:
    seen = []
    async for summary in job.watch():
        seen.append(summary.phase)
        fleet.remove(HYPERJOBS, "ml/llm")
        fleet.hyperjob({**running(), "metadata": {**running()["metadata"], "labels": {"a": "b"}}})
        new = fleet.stored()
        fleet.put(HYPERJOBS, {**new, "metadata": {**new["metadata"], "uid": "another"}})
        assert len(seen) < 9
    assert seen == ["Running"]


async def test_suspend_and_resume_wait_for_their_phase_unless_told_not_to(
    job: AsyncJob, fleet: Fleet
) -> None:
    assert (await job.suspend(wait=False)).phase == "Running"
    assert fleet.stored()["spec"]["suspend"] is True
    fleet.hyperjob(running())
    accepting(fleet)
    assert (await job.suspend()).phase == "Suspended"
    assert (await job.resume()).phase == "Running"
    assert fleet.stored()["spec"]["suspend"] is False


async def test_a_restart_and_a_move_wait_for_the_controller_and_for_running_sub_jobs(
    job: AsyncJob, fleet: Fleet
) -> None:
    accepting(fleet, attempt=2)
    assert [each.number for each in (await job.restart("trainer-1")).jobs] == [3, 3]
    value = fleet.stored()["metadata"]["annotations"][RESTART_REQUEST]
    assert value.split()[1:] == ["llm-trainer-1"]
    await job.migrate(cluster="east", wait=False)
    value = fleet.stored()["metadata"]["annotations"][MIGRATE_REQUEST]
    assert value.split()[1:] == ["llm-trainer-0"]


async def test_a_restart_that_never_runs_again_is_out_of_time(job: AsyncJob, fleet: Fleet) -> None:
    accepting(fleet)
    with pytest.raises(NotReachedError, match="llm runs again"):
        await job.restart("trainer-0", timeout=0.05)
    with pytest.raises(HyperJobError, match="no sub-job 'x'"):
        await job.migrate("x")


async def test_a_deletion_waits_until_the_hyperjob_is_gone(job: AsyncJob, fleet: Fleet) -> None:
    await job.delete(timeout=60)
    assert fleet.get(HYPERJOBS, "ml/llm") is None
    with pytest.raises(NotFoundError):
        await job.delete()


async def test_a_deletion_leaves_a_new_hyperjob_of_the_same_name(
    job: AsyncJob, fleet: Fleet
) -> None:
    new = {**fleet.stored()["metadata"], "uid": "new"}
    fleet.put(HYPERJOBS, {**fleet.stored(), "metadata": new})
    with pytest.raises(NotFoundError, match='"llm" not found'):
        await job.delete()
    assert fleet.stored()["metadata"]["uid"] == "new"


async def test_a_deletion_ends_although_a_new_hyperjob_takes_the_name_at_once(
    job: AsyncJob, fleet: Fleet
) -> None:
    def again(kind: str, old: Object | None, new: Object | None) -> None:
        if kind == HYPERJOBS.kind and old is not None and new is None:
            fleet.create(HYPERJOBS, old)

    fleet.listen(again)
    before = fleet.stored()["metadata"]["uid"]
    await job.delete(timeout=60)
    assert fleet.stored()["metadata"]["uid"] != before


async def test_a_deletion_with_finalizers_is_out_of_time_and_not_waited_for_unless_asked(
    job: AsyncJob, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "remove", lambda *_: None)
    await job.delete(wait=False)
    with pytest.raises(NotReachedError):
        await job.delete(timeout=0.05)


async def test_events_are_those_of_the_api_server_or_its_error(job: AsyncJob, fleet: Fleet) -> None:
    assert await job.events() == []
    fleet.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no events") if resource.plural == "events" else None
    )
    with pytest.raises(HyperJobError, match="no events"):
        await job.events()


async def test_logs_that_cannot_be_are_refused_before_any_request(job: AsyncJob) -> None:
    with pytest.raises(ValueError, match="logs: give follow or previous, not both"):
        await anext(job.logs(follow=True, previous=True))
    with pytest.raises(ValueError, match=r"search='\(' is no regular expression"):
        await anext(job.logs(search="("))


def source(rank: int | None) -> Any:
    class Source:
        cluster, pod, container = "east", "p", "c"

    Source.rank = rank  # type: ignore[attr-defined]
    return Source


def test_a_progress_line_is_a_row_with_what_it_reports() -> None:
    def row(rank: int | None, **fields: Any) -> Object:
        text = b"2026-01-01T01:02:03Z " + orjson.dumps({"hyperjob": fields} | fields)
        found = parse(Line.of(text))
        assert found is not None
        return row_of(source(rank), found)

    full = row(0, step=5, steps=9, saved=4, metrics={"loss": 0.5})
    assert full == {
        "time": datetime(2026, 1, 1, 1, 2, 3, tzinfo=UTC),
        "rank": 0,
        "step": 5,
        "steps": 9,
        "saved": 4,
        "loss": 0.5,
    }
    assert row(None, step=5).keys() == {"time", "step"}
