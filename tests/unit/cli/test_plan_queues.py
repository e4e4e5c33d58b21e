"""`hyperjob plan` with built-in queues: the controller's own verdict, place and share."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hyperjob.client.plan.judge import Document, Judgement, Verdict, judge_all
from hyperjob.client.plan.snapshot import Snapshot
from hyperjob_controller.options import Options
from hyperjob_core.kube.resources import CLUSTERS, PRIORITY_CLASSES, QUEUES
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_queueing.verdict import share_text
from tests.unit.cli.objects import GPU, cluster, queue
from tests.unit.cli.test_plan import in_file, job, judged, planned_from

Object = dict[str, Any]


def live(queues: Sequence[Object] = (queue(),)) -> Snapshot:
    return Snapshot(
        now=datetime(2026, 1, 2, tzinfo=UTC),
        objects={
            CLUSTERS: [cluster("a", gpus=64)],
            QUEUES: queues,
            PRIORITY_CLASSES: [{"metadata": {"name": "urgent"}, "value": 1000}],
        },
        options=Options(queue_admission=QueueAdmission.BUILTIN),
    )


def planned(snapshot: Snapshot, *jobs: Object) -> list[Judgement]:
    return judge_all([Document(content=each) for each in jobs], snapshot)


def test_one_that_fits_says_what_its_queue_uses_then() -> None:
    (found,) = planned(live(), job(gpus=24))
    assert (found.verdict, found.message) == (Verdict.FITS, "1 sub-job on a")
    assert found.waits_in is None
    assert share_text(found.shares["default"]) == f"24 of its share of 64 {GPU}"


def test_a_capability_makes_it_wait_with_what_is_missing() -> None:
    queues = [queue(capability={GPU: 24})]
    one, two = planned(live(queues=queues), job("one", gpus=16), job("two", gpus=16))
    assert one.verdict is Verdict.FITS
    assert two.verdict is Verdict.WAITS
    assert two.message == (
        f"first of 1 in queue default (uses 16 of its share of 24 {GPU}): queue default uses 16 of"
        f" its capability of 24 {GPU}, 8 {GPU} are missing"
    )
    assert two.waits_in is not None
    assert (two.waits_in.queue, two.waits_in.place, two.waits_in.length) == ("default", 1, 1)
    assert [(piece.phase, piece.elsewhere["a"]) for piece in two.pieces] == [
        ("Queued", "has room, but the sub-job waits for queue default")
    ]


def test_one_that_preempts_another_of_its_file_waits_until_that_has_stopped() -> None:
    urgent = job("two", gpus=64)
    urgent["spec"]["replicatedJobs"][0]["templateSpec"]["priorityClassName"] = "urgent"
    one, two = planned(live(), job("one", gpus=16), urgent)
    assert (one.verdict, two.verdict) == (Verdict.FITS, Verdict.WAITS)
    assert two.message.endswith("preempts ml/one")


def test_more_than_its_queue_may_ever_use_cannot_run() -> None:
    (found,) = planned(live(queues=[queue(capability={GPU: 24})]), job(gpus=32))
    assert found.verdict is Verdict.CANNOT_RUN
    assert "needs 32 nvidia.com/gpu, more than queue default may ever use" in found.message


@pytest.mark.parametrize(
    ("queues", "verdict", "message"),
    [
        ([], Verdict.CANNOT_RUN, "queue default does not exist"),
        ([queue(state="Closed")], Verdict.WAITS, "queue default is Closed"),
        (
            [queue(), queue("child", parent="default")],
            Verdict.CANNOT_RUN,
            "queue default has child queues",
        ),
    ],
)
def test_a_queue_that_takes_no_jobs_is_named(
    queues: list[Object], verdict: Verdict, message: str
) -> None:
    (found,) = planned(live(queues=queues), job())
    assert found.verdict is verdict
    assert message in found.message
    assert found.queues["default"].startswith(message)


@pytest.fixture
def limited(tmp_path: Path) -> Path:
    return in_file(tmp_path, "a", nodes=4, queues=[{"name": "default", "capability": {GPU: 16}}])


def test_a_file_without_volcano_global_is_planned_with_built_in_queues(
    tmp_path: Path, limited: Path
) -> None:
    result = planned_from(tmp_path, job(gpus=16), job("next", gpus=8), clusters=limited)
    assert result.exit_code == 3, result.output
    one, two = judged(result)
    told = {"name": "default", "open": True, "message": "", "resource": GPU}
    assert one["queues"] == two["queues"] == [{**told, "used": "16", "share": "16"}]
    assert "position" not in one
    assert two["position"] == {"queue": "default", "place": 1, "of": 1}


def test_words_for_people_have_share_and_place(tmp_path: Path, limited: Path) -> None:
    jobs = job(gpus=16), job("next", gpus=8)
    text = planned_from(tmp_path, *jobs, clusters=limited, form=()).output
    assert f"queue default is Open, then uses 16 of its share of 16 {GPU}" in text
    assert f"queue default is Open, uses 16 of its share of 16 {GPU}" in text
    assert "ml/next  Waits  first of 1 in queue default" in text
