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
