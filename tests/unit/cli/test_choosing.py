"""Which sub-jobs and containers are meant, and what can be waited for."""

import pytest

from hyperjob.cli.wait import parse_goal
from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import (
    ContainerLog,
    Wanted,
    require_placed,
    require_ranks,
    sources,
)
from hyperjob.client.requests import movable
from hyperjob.client.summary import choose, read
from hyperjob_core.api.phases import Phase
from tests.unit.cli.objects import hyperjob, pod, sub_job

LLM = read(
    hyperjob(
        "Running",
        sub_job(phase="Running", cluster="east"),
        sub_job(1, phase="Running", cluster="west"),
        sub_job(phase="Completed", cluster="west")
        | {"name": "llm-data-0", "replicatedJob": "data"},
        sub_job(phase="Unplaced") | {"name": "llm-data-1", "replicatedJob": "data"},
    )
)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["llm-trainer-1"], ["llm-trainer-1"]),
        (["trainer-1"], ["llm-trainer-1"]),
        (["data"], ["llm-data-0", "llm-data-1"]),
        (["data-0", "trainer"], ["llm-trainer-0", "llm-trainer-1", "llm-data-0"]),
    ],
)
def test_a_sub_job_is_meant_by_name_by_the_end_of_it_or_by_its_group(
    words: list[str], names: list[str]
) -> None:
    assert [job.name for job in choose(LLM, words)] == names


@pytest.mark.parametrize(
    ("words", "cluster", "names"),
    [
        ([], "west", ["llm-trainer-1"]),
        (["trainer"], "east", ["llm-trainer-0"]),
        (["trainer"], None, ["llm-trainer-0", "llm-trainer-1"]),
    ],
)
def test_only_what_stands_and_has_not_ended_is_moved(
    words: list[str], cluster: str | None, names: list[str]
) -> None:
    assert [job.name for job in movable(LLM, words, cluster)] == names


@pytest.mark.parametrize(
    ("words", "cluster", "said"),
    [
        ([], "north", "no sub-job to move is on cluster north: llm-trainer-0 on east"),
        ([], "esat", 'on west; did you mean "east"\\?$'),
        (["data-0"], None, "no sub-job to move is on a cluster: no sub-job is on a cluster"),
        (["data", "trainer-0"], None, "have ended: llm-data-0, llm-data-1"),
    ],
)
def test_a_move_from_a_cluster_without_sub_jobs_is_refused(
    words: list[str], cluster: str | None, said: str
) -> None:
    with pytest.raises(ClientError, match=said):
        movable(LLM, words, cluster)


def test_a_sub_job_on_no_cluster_has_no_log_yet() -> None:
    with pytest.raises(ClientError, match="no sub-job of llm is on a cluster yet: kubectl"):
        require_placed(LLM, Wanted(jobs=["data-1"]))


def test_before_there_are_pods_no_rank_is_missing() -> None:
    require_ranks({"llm-trainer-0": []}, Wanted(ranks=frozenset({0})))


STARTED = [{"name": "main", "state": {"running": {}}}, {"name": "side", "state": {"running": {}}}]
DEFAULT = {"kubectl.kubernetes.io/default-container": "side"}


@pytest.mark.parametrize(
    ("wanted", "pods", "labels"),
    [
        (Wanted(), [pod("w", containerStatuses=STARTED)], ["east/w"]),
        (
            Wanted(all_containers=True),
            [pod("w", containerStatuses=STARTED)],
            ["east/w/main", "east/w/side"],
        ),
        (Wanted(task="master"), [pod("w", containerStatuses=STARTED)], []),
        (Wanted(), [pod("w", phase="Pending")], []),
    ],
)
def test_a_log_is_one_container_of_a_pod_that_has_started(wanted, pods, labels) -> None:
    found, _ = sources(LLM.jobs[:1], {"llm-trainer-0": pods}, wanted)
    assert [source.label for source in found] == labels


def test_the_default_container_of_a_pod_is_kubectls() -> None:
    chosen = pod("w", containerStatuses=STARTED, annotations=DEFAULT)
    (source,), _ = sources(LLM.jobs[:1], {"llm-trainer-0": [chosen]}, Wanted())
    assert source.container == "side"


def test_a_container_that_started_again_has_another_run_in_the_same_log() -> None:
    def of(restarts: int, uid: str = "1", phase: str = "Running") -> ContainerLog:
        told = [{"name": "main", "state": {"running": {}}, "restartCount": restarts}]
        pods = {"llm-trainer-0": [pod("w", uid=uid, phase=phase, containerStatuses=told)]}
        return sources(LLM.jobs[:1], pods, Wanted())[0][0]

    assert len({of(0), of(1), of(0, uid="2")}) == 1
    assert [of(0).is_run_of(each) for each in (of(0), of(1), of(0, uid="2"))] == [
        True,
        False,
        False,
    ]
    ended = of(0, phase="Failed")
    assert (ended.running, ended.final, of(0).final) == (True, True, False)
    assert ended.is_run_of(of(0))


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        ("delete", set()),
        ("phase=Running", {Phase.RUNNING}),
        ("phase=running, degraded", {Phase.RUNNING, Phase.DEGRADED}),
        ("condition=Completed", {Phase.COMPLETED}),
        ("condition=Failed=true", {Phase.FAILED}),
    ],
)
def test_a_goal(text: str, phases: set[Phase]) -> None:
    assert parse_goal(text).phases == phases


@pytest.mark.parametrize(
    "text",
    ["", "phase", "phase=", "phase=Running,Flying", "condition=Ready", "condition=Failed=false"],
)
def test_what_can_never_be_waited_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"give phase=|must be"):
        parse_goal(text)


@pytest.mark.parametrize(
    ("goal", "obj", "holds"),
    [
        ("delete", None, True),
        ("delete", hyperjob("Running"), False),
        ("phase=Running", hyperjob("Running"), True),
        ("phase=Running", hyperjob("Running", generation=2), False),
        ("phase=Pending", hyperjob(), False),
        ("condition=Completed", hyperjob("Degraded"), False),
    ],
)
def test_whether_a_goal_is_reached(goal, obj, holds) -> None:
    assert parse_goal(goal).holds(obj, "llm") is holds
