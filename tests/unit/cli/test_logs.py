"""The logs of a HyperJob's pods: on the command line, on the web page and in the SDK."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hyperjob.sdk.aio import AsyncClient
from hyperjob.sdk.errors import HyperJobError
from hyperjob_core.kube.resources import PODS
from hyperjob_page.pages import logs as page
from tests.unit.cli.fleet import Fleet, Run
from tests.unit.cli.objects import hyperjob, sub_job

ML = "ml"


def line(second: int, text: str) -> str:
    return f"2026-01-01T00:00:{second:02}Z {text}"


@pytest.fixture
def fleet() -> Fleet:
    server = Fleet()
    jobs = [
        sub_job(index, phase="Running", cluster=where)
        for index, where in enumerate(("east", "west"))
    ]
    server.hyperjob(hyperjob("Completed", *jobs))
    server.pod("east", "llm-trainer-0", line(1, "a"), line(3, "ERROR c"))
    server.pod("west", "llm-trainer-1", line(2, "b"), line(4, "\x1b[31md\x1b[0m"))
    return server


EAST, WEST = "[east/llm-trainer-0-worker-0]", "[west/llm-trainer-1-worker-0]"


def test_lines_of_all_clusters_come_in_the_order_of_their_times(run: Run, fleet: Fleet) -> None:
    found = run("logs", "llm")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        *(f"{EAST} a", f"{WEST} b", f"{EAST} ERROR c", f"{WEST} \x1b[31md\x1b[0m")
    ]
    assert [each["tailLines"] for each in fleet.asked] == ["10", "10"]
    assert all(each["timestamps"] == "true" for each in fleet.asked)


CHOSEN = {
    "a sub-job": (["--job", "trainer-1"], [f"{WEST} b", f"{WEST} \x1b[31md\x1b[0m"]),
    "a cluster": (["--cluster", "east"], [f"{EAST} a", f"{EAST} ERROR c"]),
    "the last line": (["--tail", "1", "--cluster", "east"], [f"{EAST} ERROR c"]),
    "without the pod": (["--no-prefix", "--cluster", "east"], ["a", "ERROR c"]),
    "with the time": (
        ["--timestamps", "--no-prefix", "--tail", "1", "--cluster", "east"],
        [line(3, "ERROR c")],
    ),
    "every container": (
        ["--all-containers", "--cluster", "east"],
        [f"{EAST} a", f"{EAST} ERROR c"],
    ),
    "one container": (["-c", "main", "--cluster", "east", "--tail", "1"], [f"{EAST} ERROR c"]),
    "a task": (["--task", "worker", "--cluster", "east", "--tail", "1"], [f"{EAST} ERROR c"]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "lines"), CHOSEN.values(), ids=CHOSEN.keys())
def test_logs_are_chosen(run: Run, words: list[str], lines: list[str]) -> None:
    assert run("logs", "llm", *words).stdout.splitlines() == lines


FOR_CONTROLLER = [
    'step 7 {"hyperjob": {"step": 7}}',
    '{"hyperjob": {"stacks": [{"thread": "main", "calls": []}]}}',
]
FOR_PEOPLE = ['{"loss": 2.0}', 'the line {"hyperjob": ...} of docs', "hyperjob"]


def test_progress_and_stacks_are_hidden_unless_asked_for(run: Run, fleet: Fleet) -> None:
    texts = [*FOR_PEOPLE, *FOR_CONTROLLER]
    fleet.pod("east", "llm-trainer-0", *[line(1, text) for text in texts])
    words = ("logs", "llm", "--cluster", "east", "--no-prefix")
    hidden = run(*words)
    assert hidden.stdout.splitlines() == FOR_PEOPLE
    assert hidden.stderr == "hidden lines of progress and stacks: 2; see --progress\n"
    shown = run(*words, "--progress")
    assert (shown.stdout.splitlines(), shown.stderr) == (texts, "")
    assert len(run(*words, "-o", "json").stdout.splitlines()) == len(texts)


@pytest.mark.parametrize("how", [[], ["--follow"]])
@pytest.mark.parametrize("behind", [0, 3, 500])
def test_hidden_lines_are_none_of_the_last_ones(
    run: Run, fleet: Fleet, behind: int, how: list[str]
) -> None:
    texts = ["first", *FOR_PEOPLE, *FOR_CONTROLLER * behind, "last"]
    lines = [f"2026-01-01T00:00:00.{n:04}Z {text}" for n, text in enumerate(texts)]
    fleet.pod("east", "llm-trainer-0", *lines)
    found = run("logs", "llm", "--cluster", "east", "--no-prefix", "--tail", "4", *how)
    assert found.stdout.splitlines() == [*FOR_PEOPLE, "last"]
    assert (str(2 * behind) in found.stderr) is bool(behind)


def test_a_single_log_is_read_whole_and_parameters_are_those_of_the_kubelet(
    run: Run, fleet: Fleet
) -> None:
    run("logs", "llm", "--cluster", "east")
    run("logs", "llm", "--cluster", "east", "--tail", "-1", "--since", "90s", "--previous")
    run("logs", "llm", "--cluster", "east", "--since", "1ms")
    plain, chosen, soon = fleet.asked
    assert "tailLines" not in plain
    assert "tailLines" not in chosen
    assert (chosen["sinceSeconds"], chosen["previous"]) == ("90", "true")
    assert soon["sinceSeconds"] == "1"
    assert plain["container"] == "main"


def test_lines_as_json_have_their_place_and_time(run: Run) -> None:
    found = run("logs", "llm", "--cluster", "east", "-o", "json")
    assert next(json.loads(each) for each in found.stdout.splitlines()) == {
        "cluster": "east",
        "pod": "llm-trainer-0-worker-0",
        "container": "main",
        "line": "a",
        "time": "2026-01-01T00:00:01.000000Z",
    }


REFUSED = {
    "both kinds of containers": (
        ["-c", "a", "--all-containers"],
        2,
        "give --container or --all-containers, not both",
    ),
    "following the past": (["-f", "-p"], 2, "give --follow or --previous, not both"),
    "following an attempt": (["-f", "--attempt", "1"], 2, "give --attempt, or --follow or"),
    "the past of an attempt": (["-p", "--attempt", "1"], 2, "give --attempt, or --follow or"),
    "an unknown task": (
        ["--task", "x"],
        1,
        "no pod of llm has a task 'x'; the tasks are worker",
    ),
    "an unknown container": (["-c", "x"], 1, "no pod has a container 'x'; there are main"),
    "ranks that pods lack": (["--rank", "1"], 1, "pods have ranks with the plugins env and jax"),
    "an unknown sub-job": (["--job", "x"], 1, "llm has no sub-job 'x'"),
    "a misspelt cluster": (
        ["--cluster", "esat"],
        1,
        'no sub-job of llm is on cluster esat; did you mean "east"?',
    ),
    "a cluster without sub-jobs": (
        ["--cluster", "north"],
        3,
        "no sub-job of llm is on cluster north: kubectl hyperjob why llm -n ml",
    ),
}


@pytest.mark.parametrize(("words", "code", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_logs_that_cannot_be_are_refused(run: Run, words: list[str], code: int, text: str) -> None:
    found = run("logs", "llm", *words)
    assert (found.exit_code, found.stdout) == (code, "")
    assert text in found.stderr


def test_ranks_are_those_of_the_plugins(run: Run, fleet: Fleet) -> None:
    for cluster, job, offset in (("east", "llm-trainer-0", "0"), ("west", "llm-trainer-1", "8")):
        pod = fleet.pod(cluster, job, line(1, offset), index=1)
        (container,) = pod["spec"]["containers"]
        container["env"] = [{"name": "HYPERJOB_RANK_OFFSET", "value": offset}]
        fleet.members[cluster].remove(PODS, f"ml/{job}-worker-0")
        fleet.members[cluster].put(PODS, pod)
    assert run("logs", "llm", "--rank", "9").stdout == "[west/llm-trainer-1-worker-1] 8\n"
    found = run("logs", "llm", "--rank", "1", "-o", "json").stdout
    assert json.loads(found)["rank"] == 1
    none = run("logs", "llm", "--rank", "3", "--rank", "2")
    assert none.stderr == "error: no pod has rank 2, 3; there are ranks 1 to 9\n"


def test_a_cluster_that_does_not_answer_leaves_its_logs_out_and_fails(
    run: Run, fleet: Fleet
) -> None:
    del fleet.members["west"]
    found = run("logs", "llm")
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [f"{EAST} a", f"{EAST} ERROR c"]
    assert found.stderr.startswith("llm-trainer-1: ")
    assert "cluster west is unreachable" in found.stderr
    del fleet.members["east"]
    assert "no pods of llm could be read" in run("logs", "llm").stderr


def test_containers_that_have_not_started_have_a_reason(run: Run, fleet: Fleet) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    fleet.pod("east", "llm-trainer-0", containerStatuses=[waiting])
    found = run("logs", "llm")
    assert found.stdout.splitlines()[0] == f"{WEST} b"
    assert found.stderr == "east/llm-trainer-0-worker-0: has not started: ImagePullBackOff\n"
    fleet.pod("east", "llm-trainer-0", containerStatuses=[], phase="Pending")
    none = run("logs", "llm", "--cluster", "east")
    assert none.exit_code == 3
    assert none.stderr.splitlines() == [
        "east/llm-trainer-0-worker-0: has not started: Pending",
        "error: no pod of llm has a log yet: kubectl hyperjob why llm -n ml",
    ]


def choice(**query: str) -> page.Choice:
    request: Any = SimpleNamespace(query=query)
    return page.Choice.of(request)


async def test_the_page_shows_lines_with_place_and_level(fleet: Fleet) -> None:
    found, remarks = await page.last_lines(fleet.kube, ML, "llm", page.Choice())
    assert remarks == []
    assert found == [
        ("00:00:01 east/llm-trainer-0-worker-0", "a", ""),
        ("00:00:02 west/llm-trainer-1-worker-0", "b", ""),
        ("00:00:03 east/llm-trainer-0-worker-0", "ERROR c", "error"),
        ("00:00:04 west/llm-trainer-1-worker-0", "d", ""),
    ]
    assert [each["tailLines"] for each in fleet.asked] == ["50", "50"]
    some, _ = await page.last_lines(fleet.kube, ML, "llm", page.Choice(search="eRRor"))
    assert [text for _, text, _ in some] == ["ERROR c"]


async def test_the_page_shows_2000_lines_and_says_where_the_rest_is(fleet: Fleet) -> None:
    fleet.pod("east", "llm-trainer-0", *[line(1, str(number)) for number in range(2001)])
    every = page.Choice(tail=5000, cluster="east")
    found, remarks = await page.last_lines(fleet.kube, ML, "llm", every)
    assert (len(found), remarks) == (
        2000,
        ["only the first 2000 lines are shown: choose a sub-job"],
    )


@pytest.fixture
async def job(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    fleet.serve(monkeypatch)
    async with AsyncClient() as client:
        yield await client.get("llm")


async def test_the_sdk_yields_the_lines_that_are_asked_for(job: Any, fleet: Fleet) -> None:
    async def texts(**how: Any) -> list[str]:
        return [each.text async for each in job.logs(**how)]

    assert await texts() == ["a", "b", "ERROR c", "\x1b[31md\x1b[0m"]
    assert await texts(job="trainer-0") == ["a", "ERROR c"]
    assert await texts(cluster="east", tail=1) == ["ERROR c"]
    assert await texts(search="^E") == ["ERROR c"]
    assert await texts(follow=True, cluster="east") == ["a", "ERROR c"]
    fleet.asked.clear()
    await texts(cluster="east", since=0.2, previous=True)
    assert (fleet.asked[0]["sinceSeconds"], fleet.asked[0]["previous"]) == ("1", "true")
    with pytest.raises(HyperJobError, match="no pod of llm has a task"):
        await texts(task="x")
    with pytest.raises(HyperJobError, match="pods have ranks with the plugins"):
        await texts(rank=[0, 1])


def progress(second: int, step: int, **metrics: float) -> str:
    return line(second, json.dumps({"hyperjob": {"step": step, "metrics": metrics}}))


async def test_the_sdk_has_the_progress_of_all_pods_as_rows(job: Any, fleet: Fleet) -> None:
    fleet.pod("east", "llm-trainer-0", progress(1, 1, loss=2.0), "no progress", progress(4, 3))
    fleet.pod("west", "llm-trainer-1", progress(2, 2, loss=1.0))
    rows = await job.metrics()
    assert [(row["step"], row.get("loss")) for row in rows] == [(1, 2.0), (2, 1.0), (3, None)]
    assert rows[0]["time"] == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert [row["step"] for row in await job.metrics(most=2)] == [1, 3]
    with pytest.raises(ValueError, match="most"):
        await job.metrics(most=1)
