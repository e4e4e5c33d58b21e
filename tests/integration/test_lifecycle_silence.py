"""Messages between Karmada and a member get lost; a sub-job runs nevertheless, over HTTP."""

from datetime import timedelta
from pathlib import Path

import pytest

from hyperjob_controller.options import Tuning
from hyperjob_core.api.names import ASKED_AGAIN, RESTART_REQUEST
from hyperjob_core.kube.client import EventType, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import EVENTS, VCJOBS, WORKS
from hyperjob_sandbox.karmada.execution import ExecutionController
from hyperjob_sandbox.member.caches import MemberCaches
from hyperjob_sandbox.member.job_controller import JobController
from tests.support.controller import eventually
from tests.support.life import Life, Object, group, living
from tests.support.sandbox import cluster_statuses

JOB = "hj-trainer-0"
SLOW = "test.example.com/slow"


def pinned() -> Object:
    """Give a group on member1 with all that Volcano's webhook would add, as ours adds it."""
    made = group("trainer", clusterNames=["member1"], clusterPolicy="Required")
    made["templateSpec"]["minAvailable"] = 1
    made["templateSpec"]["tasks"][0] |= {"minAvailable": 1, "maxRetry": 3}
    return made


async def in_member(life: Life) -> Object | None:
    """Give the vcjob as member1 has it."""
    try:
        return await life.topology.clusters["member1"].kube.get(VCJOBS, JOB, namespace="default")
    except NotFound:
        return None


async def told(life: Life, reason: str) -> list[str]:
    """Give the notes of the Events of a reason."""
    items = (await life.kube.list(EVENTS, namespace="default")).items
    return [item["note"] for item in items if item["reason"] == reason]


async def until_running(life: Life) -> Object:
    """Wait until the sub-job runs without having spent anything; give its entry."""
    status = await life.until("hj", "Running")
    assert status["restarts"] == 0
    (entry,) = status["jobs"]
    assert (entry["phase"], entry["cluster"]) == ("Running", "member1")
    assert "silence" not in entry
    return dict(entry)


async def quiet(life: Life) -> None:
    """Wait until Karmada has written all that it has to say of the sub-job."""
    versions: list[str] = []
    while len(versions) < 2 or versions[-1] != versions[-2]:
        await cluster_statuses(4)
        works = (await life.kube.list(WORKS)).items
        versions.append(",".join(work["metadata"]["resourceVersion"] for work in works))


async def test_what_goes_with_its_predecessor_in_the_member_is_applied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old vcjob ends slowly in its member; Karmada updates it for the new one, and it goes."""
    lost = ""  # the uid of an object of whose changes Karmada hears nothing
    hear = ExecutionController._on_object

    def half_deaf(
        self: ExecutionController, event: EventType, old: Object | None, new: Object | None
    ) -> None:
        if (new or old or {})["metadata"]["uid"] != lost:
            hear(self, event, old, new)

    monkeypatch.setattr(ExecutionController, "_on_object", half_deaf)
    async with living(tmp_path, tuning=Tuning(silence=timedelta(seconds=2))) as life:
        member = life.topology.clusters["member1"].kube
        await life.create("hj", pinned())
        await life.until("hj", "Running")
        old = await in_member(life)
        assert old is not None

        async def hold(*finalizers: str) -> None:
            body = {"metadata": {"finalizers": list(finalizers)}}
            await member.patch(VCJOBS, JOB, body, kind=PatchType.MERGE, namespace="default")

        await hold(SLOW)
        lost = old["metadata"]["uid"]
        await life.change("hj", {"metadata": {"annotations": {RESTART_REQUEST: "1"}}})

        async def updated() -> bool:
            new = await life.kube.list(VCJOBS, namespace="default")
            seen = await in_member(life)
            assert seen is not None
            assert seen["metadata"]["uid"] == lost
            uid = (seen["metadata"].get("annotations") or {}).get("resourcetemplate.karmada.io/uid")
            return bool(new.items) and new.items[0]["metadata"]["uid"] == uid

        await eventually(updated, what="the old vcjob, updated on its way out")
        await quiet(life)
        await hold()

        async def gone() -> bool:
            return await in_member(life) is None

        await eventually(gone, what="an empty member")
        entry = await until_running(life)
        assert entry["attempt"] == 1, "the one that was asked for"
        made = await in_member(life)
        assert made is not None
        assert ASKED_AGAIN in made["metadata"]["annotations"]
        assert set(await told(life, "AskedAgain")) == {f"Asked Karmada to apply {JOB} again"}
        (warning,) = await told(life, "NothingReported")
        assert "cluster member1 has reported nothing since" in warning


async def test_what_volcano_does_not_notice_is_made_again_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Applying it again helps nothing there, for Volcano looks at what changes its spec only."""
    missed: list[str] = []
    sync = JobController._sync

    async def inattentive(self: JobController, key: str) -> None:
        job = self._caches.jobs.get(key)
        uid = job["metadata"]["uid"] if job is not None else ""
        if uid and not missed:
            missed.append(uid)
        if uid not in missed:
            await sync(self, key)

    monkeypatch.setattr(JobController, "_sync", inattentive)
    async with living(tmp_path, tuning=Tuning(silence=timedelta(seconds=1))) as life:
        await life.create("hj", pinned())
        entry = await until_running(life)
        assert "attempt" not in entry
        made = await in_member(life)
        assert made is not None
        assert made["metadata"]["uid"] not in missed
        assert len(await told(life, "AskedAgain")) == 1
        assert await told(life, "Deleted") == [
            f"Deleted {JOB}, whose cluster reports nothing about it"
        ]


async def test_a_namesake_that_volcano_loses_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volcano calls it Pending, and never writes its status again, whatever its pods do."""
    uids: list[str] = []
    write = MemberCaches.set_status

    async def forgetful(self: MemberCaches, obj: Object, status: Object | None) -> None:
        uid = str(obj["metadata"]["uid"])
        if uid in uids[1:2]:
            return
        if obj["kind"] == VCJOBS.kind and uid not in uids:
            uids.append(uid)
        await write(self, obj, status)

    monkeypatch.setattr(MemberCaches, "set_status", forgetful)
    async with living(tmp_path, tuning=Tuning(silence=timedelta(seconds=1))) as life:
        await life.create("hj", pinned())
        await life.until("hj", "Running")
        await life.change("hj", {"spec": {"suspend": True}})
        await life.until("hj", "Stopping")
        await life.change("hj", {"spec": {"suspend": False}})
        entry = await until_running(life)
        assert entry["attempt"] == 1, "the resumption; the repetition is no further attempt"
        made = await in_member(life)
        assert made is not None
        assert made["metadata"]["uid"] == uids[2]
        why = "whose cluster reports none of its pods"
        assert f"Deleted {JOB}, {why}" in await told(life, "Deleted")
