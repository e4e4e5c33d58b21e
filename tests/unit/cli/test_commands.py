"""Commands about running HyperJobs, on an API server in memory: output, requests, exit codes."""

import json
from typing import Any

import pytest
from click.testing import Result

from hyperjob_core.api.names import LABEL_HYPERJOB, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.resources import CLUSTERS, COMMANDS, HYPERJOBS, PODS, QUEUES
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.fleet import Fleet, Object, Run, accepting, running
from tests.unit.cli.objects import cluster, hyperjob, queue, sub_job


@pytest.fixture
def fleet() -> Fleet:
    server = Fleet()
    server.hyperjob(running())
    server.hyperjob(hyperjob("Completed"), "done")
    suspended = hyperjob("Suspended", sub_job(), reason="Suspended", spec={"suspend": True})
    server.hyperjob(suspended, "held")
    return server


def said(result: Result) -> tuple[int, str, str]:
    return result.exit_code, result.stdout, result.stderr


HJ = "hyperjob.training.volcano.sh/"
ENDED = f"error: {HJ}done is Completed: a HyperJob that has ended cannot be suspended or resumed\n"


def test_a_hyperjob_that_does_not_exist_fails_the_command_whatever_else_it_does(
    run: Run, fleet: Fleet
) -> None:
    code, out, err = said(run("suspend", "none", "done", "llm"))
    assert (code, out) == (1, f"{HJ}llm suspended\n")
    assert "Error from server (NotFound)" in err
    assert ENDED in err
    assert fleet.stored()["spec"]["suspend"] is True
    assert run("resume", "llm").exit_code == 0
    assert fleet.stored()["spec"]["suspend"] is False
    assert len(fleet.calls) == 2, "nothing is written for a state that is there"


MISSPELT = {
    "a HyperJob that is read": ["logs", "lm"],
    "one of several that are read": ["get", "lm", "llm"],
    "a HyperJob that is changed": ["suspend", "lm"],
    "a HyperJob that moves": ["migrate", "lm", "--from", "east"],
    "a HyperJob that is awaited": ["wait", "lm", "--for", "phase=Running"],
}


@pytest.mark.parametrize("words", MISSPELT.values(), ids=MISSPELT.keys())
def test_a_name_that_is_misspelt_is_told_with_the_one_that_exists(
    run: Run, words: list[str]
) -> None:
    missing = 'hyperjobs.training.volcano.sh "lm" not found; did you mean "llm"?'
    assert missing in run(*words).stderr


def test_a_hyperjob_of_another_namespace_is_told_with_it(run: Run) -> None:
    assert '"llm" not found; there is one in namespace ml' in run("why", "llm", "-n", "nlp").stderr


def test_a_misspelt_queue_is_told_with_the_one_that_exists(run: Run, fleet: Fleet) -> None:
    fleet.put(QUEUES, queue())
    assert 'queues.scheduling.volcano.sh "deafult" not found; did you mean "default"?' in (
        run("queue", "close", "deafult").stderr
    )


def words_of(fleet: Fleet, annotation: str) -> list[str]:
    token, *jobs = fleet.stored()["metadata"]["annotations"][annotation].split()
    assert token
    return jobs


REQUESTS = {
    "restart all": (["restart", "llm"], RESTART_REQUEST, [], "restarted"),
    "restart one": (
        ["restart", "llm", "--job", "trainer-1"],
        RESTART_REQUEST,
        ["llm-trainer-1"],
        "restarted",
    ),
    "restart a replicated job": (
        ["restart", "llm", "--job", "trainer"],
        RESTART_REQUEST,
        ["llm-trainer-0", "llm-trainer-1"],
        "restarted",
    ),
    "move one": (["migrate", "llm", "trainer-0"], MIGRATE_REQUEST, ["llm-trainer-0"], "moved"),
    "move from a cluster": (
        ["migrate", "llm", "--from", "west"],
        MIGRATE_REQUEST,
        ["llm-trainer-1"],
        "moved",
    ),
}


@pytest.mark.parametrize(
    ("words", "annotation", "jobs", "word"), REQUESTS.values(), ids=REQUESTS.keys()
)
def test_a_request_is_written_and_accepted(
    run: Run, fleet: Fleet, words: list[str], annotation: str, jobs: list[str], word: str
) -> None:
    assert said(run(*words, "--no-wait")) == (0, f"{HJ}llm requested\n", "")
    assert words_of(fleet, annotation) == jobs
    fleet.hyperjob(running())
    accepting(fleet)
    assert said(run(*words)) == (0, f"{HJ}llm {word}\n", "")
    assert words_of(fleet, annotation) == jobs


def test_with_wait_the_sub_jobs_run_again_in_a_later_attempt(run: Run, fleet: Fleet) -> None:
    accepting(fleet)
    late = run("restart", "llm", "--wait", "--timeout", "50ms")
    assert late.exit_code == 3
    assert "waiting until hyperjob.training.volcano.sh/llm has 2 sub-jobs running again" in (
        late.stderr
    )
    fleet.hyperjob(running())
    accepting(fleet, attempt=2)
    assert said(run("restart", "llm", "--wait"))[:2] == (0, f"{HJ}llm restarted\n")


REFUSED = {
    "an ended HyperJob": (
        ["restart", "done"],
        4,
        (
            f"error: {HJ}done is Completed: a HyperJob that has ended never runs again;"
            " delete it, then apply it again"
        ),
    ),
    "a restart of a suspended HyperJob": (
        ["restart", "held"],
        4,
        (
            f"error: {HJ}held is suspended: it has no sub-job to restart; to start it:"
            " kubectl hyperjob resume held -n ml"
        ),
    ),
    "an unknown sub-job": (
        ["restart", "llm", "--job", "x"],
        1,
        "error: llm has no sub-job 'x'; there are llm-trainer-0, llm-trainer-1",
    ),
    "nothing to move": (
        ["migrate", "llm"],
        2,
        "error: give the sub-jobs to move, or --from CLUSTER for all sub-jobs on a cluster",
    ),
}


@pytest.mark.parametrize(("words", "code", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_cannot_be_is_refused_before_it_is_written(
    run: Run, fleet: Fleet, words: list[str], code: int, line: str
) -> None:
    found = run(*words)
    assert found.exit_code == code
    assert line in found.stderr.splitlines()
    assert fleet.calls == []


def test_an_earlier_request_that_no_controller_has_accepted_is_not_overwritten(
    run: Run, fleet: Fleet
) -> None:
    assert run("restart", "llm", "--no-wait").exit_code == 0
    again = run("restart", "llm", "--no-wait")
    assert again.exit_code == 3
    assert "the controller has not accepted an earlier restart of" in again.stderr
    assert f"kubectl annotate hj llm -n ml {RESTART_REQUEST}-" in again.stderr
    assert run("migrate", "llm", "trainer", "--no-wait").exit_code == 0, "another kind"


def test_a_hyperjob_that_is_being_deleted_takes_no_request(run: Run, fleet: Fleet) -> None:
    fleet.hyperjob(running(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    found = run("restart", "llm")
    assert (found.exit_code, found.stderr) == (
        4,
        f"error: {HJ}llm is being deleted: kubectl hyperjob why llm -n ml\n",
    )


def test_a_request_is_written_again_after_conflicts_five_times_at_most(
    run: Run, fleet: Fleet
) -> None:
    left = [refusal(409, "Conflict")] * 4
    fleet.fails = lambda verb, *_: left.pop() if verb == "patch" and left else None
    assert run("restart", "llm", "--no-wait").exit_code == 0
    assert len(fleet.calls) == 5
    fleet.hyperjob(running())
    fleet.calls.clear()
    left = [refusal(409, "Conflict")] * 9
    found = run("restart", "llm", "--no-wait")
    assert (found.exit_code, len(fleet.calls)) == (1, 5)
    assert "Error from server (Conflict): no" in found.stderr


class Volcano(ApiServer):
    """A member whose Volcano carries out Commands about Queues."""

    def __init__(self, state: str = "Open", *, answers: bool = True) -> None:
        super().__init__()
        self.put(QUEUES, {**queue(), "status": {"state": state}})
        self.answers = answers
        self.asked: list[Object] = []

    def answer(self, call: Any) -> Any:
        if call.resource is not COMMANDS:
            return super().answer(call)
        body = call.content()
        self.asked.append(body)
        if self.answers:
            state = "Open" if body["action"] == "OpenQueue" else "Closing"
            name = body["target"]["name"]
            self.change(QUEUES, name, {"status": {"state": state}}, status=True)
        return body


@pytest.fixture
def members(fleet: Fleet) -> dict[str, Volcano]:
    fleet.put(QUEUES, queue())
    found = {"east": Volcano(), "west": Volcano("Closed")}
    fleet.members.update(found)
    for name in ("west", "east"):
        fleet.put(CLUSTERS, cluster(name))
    return found


def rows(text: str) -> list[list[str]]:
    return [line.split(maxsplit=2) for line in text.splitlines()[1:]]


def test_a_queue_is_closed_where_it_is_open(run: Run, members: dict[str, Volcano]) -> None:
    found = run("queue", "close", "default")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines()[0].split() == ["CLUSTER", "STATE", "MESSAGE"]
    assert rows(found.stdout) == [["east", "Closing"], ["west", "Closed"]]
    (command,) = members["east"].asked
    live = members["east"].get(QUEUES, "default")
    assert command["action"] == "CloseQueue"
    assert command["metadata"]["generateName"] == "default-closequeue-"
    assert command["metadata"]["namespace"] == "default"
    assert command["metadata"]["ownerReferences"] == [command["target"]]
    assert command["target"] == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "name": "default",
        "uid": live["metadata"]["uid"],
        "controller": True,
    }
    assert members["west"].asked == []


def test_a_queue_is_opened_where_it_is_closed(run: Run, members: dict[str, Volcano]) -> None:
    members["east"].change(QUEUES, "default", {"status": {"state": None}}, status=True)
    found = json.loads(run("queue", "open", "default", "-o", "json").stdout)
    assert found == {
        "queue": "default",
        "clusters": [
            {"cluster": "east", "state": "Open", "error": ""},
            {"cluster": "west", "state": "Open", "error": ""},
        ],
    }
    assert members["east"].asked == [], "a Queue without a state takes jobs"
    assert [each["action"] for each in members["west"].asked] == ["OpenQueue"]


def test_clusters_that_do_not_close_a_queue_are_named(
    run: Run, fleet: Fleet, members: dict[str, Volcano]
) -> None:
    members["east"].answers = False
    fleet.put(CLUSTERS, cluster("lost", ready=False))
    fleet.put(CLUSTERS, cluster("north"))
    found = run("queue", "close", "default", "--timeout", "1ms")
    assert found.exit_code == 1
    assert found.stderr == "error: queue default is not closed in east, lost, north\n"
    shown = {row[0]: row[1:] for row in rows(found.stdout)}
    assert shown["east"] == [
        "Open",
        "Volcano's controller did not answer the Command within 0.001s",
    ]
    assert shown["lost"] == ["?", "the cluster is not Ready: repeat the command when it is"]
    assert "cluster north is unreachable" in shown["north"][1]
    opened = run("queue", "open", "default", "--timeout", "1ms")
    assert opened.stderr == "error: queue default is not open in lost, north\n"


def test_a_queue_that_does_not_exist_is_an_error(run: Run, fleet: Fleet) -> None:
    found = run("queue", "close", "none")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("Error from server (NotFound)")


def pod(name: str, job: str, index: str) -> Object:
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "worker"}
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "labels": {**labels, "volcano.sh/task-index": index},
        },
        "status": {"phase": "Running"},
    }


def test_a_tree_shows_sub_jobs_and_with_pods_their_pods_in_order(run: Run, fleet: Fleet) -> None:
    fleet.vcjob("llm-trainer-0", **{LABEL_HYPERJOB: "llm"})
    east = fleet.members["east"] = ApiServer()
    for index in ("10", "2"):
        east.put(PODS, pod(f"llm-trainer-0-worker-{index}", "llm-trainer-0", index))
    east.put(PODS, pod("other-0-worker-0", "other-0", "0"))
    plain = run("tree", "llm")
    assert plain.exit_code == 0
    assert "llm-trainer-1" in plain.stdout
    assert "worker-10" not in plain.stdout
    found = run("tree", "llm", "--pods")
    assert found.exit_code == 0
    assert found.stdout.index("worker-2") < found.stdout.index("worker-10")
    assert "other-0" not in found.stdout
    assert found.stderr.startswith("llm-trainer-1: ")
    assert "cluster west is unreachable" in found.stderr


USAGE = {
    "watch of a list": (["tree", "--watch"], "--watch needs one name"),
    "watch as JSON": (["tree", "llm", "-w", "-o", "json"], "--watch needs one name"),
    "watch of two": (["get", "llm", "done", "-w"], "give one name, or none, to watch"),
    "names and all namespaces": (["get", "llm", "-A"], "give names, or -A and -l, not both"),
    "names and labels": (["tree", "llm", "-l", "a=b"], "give names, or -A and -l, not both"),
}


@pytest.mark.parametrize(("words", "line"), USAGE.values(), ids=USAGE.keys())
def test_options_that_exclude_each_other_are_wrong_usage(
    run: Run, words: list[str], line: str
) -> None:
    found = run(*words)
    assert found.exit_code == 2
    assert line in found.stderr


def test_get_prints_a_sorted_table_and_the_error_of_a_missing_name(run: Run) -> None:
    every = run("get")
    names = [line.split()[0] for line in every.stdout.splitlines()]
    assert names == ["NAME", "done", "held", "llm"]
    assert every.stdout.split("\n")[0].split() == [
        *("NAME", "STATUS", "JOBS", "RUNNING", "PROGRESS", "CLUSTERS", "RESTARTS", "REASON", "AGE")
    ]
    assert run("get", "--no-headers").stdout.splitlines()[0].split()[0] == "done"
    assert run("get", "-A").stdout.splitlines()[1].split()[:2] == ["ml", "done"]
    part = run("get", "none", "llm", "-o", "name")
    assert (part.exit_code, part.stdout) == (1, f"{HJ}llm\n")
    assert "NotFound" in part.stderr
    none = run("get", "none", "-o", "json")
    assert (none.exit_code, none.stdout) == (1, "")
    empty = run("get", "-l", "a=b", "-o", "json")
    assert json.loads(empty.stdout)["items"] == []


@pytest.mark.parametrize(("name", "code"), [("llm", 0), ("done", 0), ("held", 4), ("none", 1)])
def test_the_exit_code_of_why_follows_the_state(run: Run, name: str, code: int) -> None:
    found = run("why", name)
    assert found.exit_code == code, found.output
    if code != 1:
        assert json.loads(run("why", name, "-o", "json").stdout)["outcome"]


def test_top_counts_the_namespace_where_the_user_may_not_list_all(run: Run, fleet: Fleet) -> None:
    fleet.put(CLUSTERS, cluster("east", gpus=16))
    every = json.loads(run("top", "-o", "json").stdout)
    assert every["clusters"][0]["hyperjobs"] == 8
    other = json.loads(run("top", "-n", "other", "-o", "json").stdout)
    assert other["clusters"][0]["hyperjobs"] == 0
    answer = fleet.answer

    def limited(call: Any) -> Any:
        if call.resource is HYPERJOBS and not call.namespace:
            raise refusal(403, "Forbidden")
        return answer(call)

    fleet.answer = limited  # type: ignore[method-assign]
    found = run("top", "-o", "json")
    assert json.loads(found.stdout)["clusters"][0]["hyperjobs"] == 8
    assert found.stderr.startswith("only HyperJobs in namespace ml are counted: you may not list")


def test_top_prints_the_tables_that_are_asked_for(run: Run, fleet: Fleet) -> None:
    fleet.put(CLUSTERS, cluster("east", gpus=16))
    fleet.put(QUEUES, queue())
    both = run("top").stdout
    assert both.index("CLUSTER") < both.index("\n\n") < both.index("QUEUE")
    clusters = run("top", "--by", "cluster").stdout
    assert "CLUSTER" in clusters
    assert "QUEUE" not in clusters
    queues = run("top", "--by", "queue").stdout
    assert queues.startswith("QUEUE")
    fleet.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no queues") if resource is QUEUES else None
    )
    assert "no queues" in run("top").stderr
