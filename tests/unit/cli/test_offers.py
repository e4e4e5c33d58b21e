"""Shell completion of names from the API server, the arguments of names, and waits with -w."""

from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from hyperjob.cli import main
from hyperjob.cli.kubectl import access
from hyperjob.cli.kubectl.access import HyperJobName, TrainJobName
from hyperjob_core.kube.client import EventType, WatchEvent
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, NAMESPACES, QUEUES
from tests.support.apiserver import refusal
from tests.unit.cli.fleet import Fleet, Run
from tests.unit.cli.objects import cluster, hyperjob, queue, sub_job


@pytest.fixture
def fleet() -> Fleet:
    server = Fleet()
    jobs = [sub_job(0, phase="Running", cluster="east"), sub_job(1, phase="Queued")]
    server.hyperjob(hyperjob("Running", *jobs))
    server.hyperjob(hyperjob("Completed"), "done")
    for name in ("east", "west"):
        server.put(CLUSTERS, cluster(name))
    server.put(QUEUES, queue())
    for name in ("ml", "other"):
        server.put(NAMESPACES, {"metadata": {"name": name}})
    return server


def offered(*words: str) -> list[tuple[str, str]]:
    *before, incomplete = words
    completion = ShellComplete(main, {}, "hyperjob", "_HYPERJOB_COMPLETE")
    found = completion.get_completions(before, incomplete)
    return [(each.value, each.help or "") for each in found]


OFFERS = {
    "HyperJobs with their phase": (
        ("get", ""),
        [("llm", "Running"), ("done", "Completed")],
    ),
    "HyperJobs of a beginning": (("get", "l"), [("llm", "Running")]),
    "HyperJobs that are not given yet": (("get", "llm", ""), [("done", "Completed")]),
    "HyperJobs of another namespace": (("get", "-n", "other", ""), []),
    "sub-jobs and replicated jobs": (
        ("logs", "llm", "--job", ""),
        [
            ("trainer", "replicated job"),
            ("trainer-0", "Running on east"),
            ("trainer-1", "Queued"),
        ],
    ),
    "sub-jobs to move": (("migrate", "llm", "trainer-"), [
        ("trainer-0", "Running on east"), ("trainer-1", "Queued"),
    ]),
    "sub-jobs that are not given yet": (
        ("migrate", "llm", "trainer-0", "trainer-"),
        [("trainer-1", "Queued")],
    ),
    "sub-jobs of a HyperJob with its kind": (
        ("logs", "hj/llm", "--job", "trainer-1"),
        [("trainer-1", "Queued")],
    ),
    "clusters of a HyperJob": (("logs", "llm", "--cluster", ""), [("east", "")]),
    "clusters of no HyperJob": (("logs", "done", "--cluster", ""), []),
    "namespaces": (("get", "-n", ""), [("ml", ""), ("other", "")]),
    "goals": (("wait", "llm", "--for", "condition="), [
        ("condition=Completed", ""), ("condition=Failed", ""),
    ]),
    "phases": (("wait", "llm", "--for", "phase=Su"), [("phase=Suspended", "")]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), OFFERS.values(), ids=OFFERS.keys())
def test_a_shell_completes(run: Run, words: tuple[str, ...], expected: Any) -> None:
    assert offered(*words) == expected


def test_where_the_api_server_refuses_or_is_late_there_are_no_candidates(
    run: Run, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered("logs", "none", "--job", "") == []
    fleet.fails = lambda *_: refusal(403, "Forbidden")
    assert offered("get", "") == []
    fleet.fails = lambda *_: None
    monkeypatch.setattr(access, "SECONDS", 0.0)
    assert offered("get", "") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llm", "llm"),
        ("hj/llm", "llm"),
        ("HyperJob/llm", "llm"),
        ("hyperjobs.training.volcano.sh/llm", "llm"),
        ("trainjob/llm", None),
        ("pod/llm", None),
        ("/llm", None),
        ("hj/", None),
        ("", None),
    ],
)
def test_a_name_may_have_its_kind_as_kubectl_prints_it(text: str, name: str | None) -> None:
    kind = HyperJobName()
    if name is None:
        with pytest.raises(click.UsageError, match="is not the name of a HyperJob: give NAME or"):
            kind.convert(text, None, None)
    else:
        assert kind.convert(text, None, None) == name


def test_a_name_may_follow_its_kind_as_for_kubectl(run: Run) -> None:
    alone, after = run("get", "llm", "-o", "name"), run("get", "hj", "llm", "-o", "name")
    assert (after.exit_code, after.stdout) == (0, alone.stdout)
    assert '"hj" not found' in run("get", "hj").stderr, "a HyperJob may be called so"


def test_a_command_for_trainjobs_takes_their_names_too() -> None:
    kind = HyperJobName(trainjobs=True)
    for text in ("trainjob/llm", "TrainJobs.trainer.kubeflow.org/llm"):
        found = kind.convert(text, None, None)
        assert isinstance(found, TrainJobName)
        assert found == "llm"
    assert not isinstance(kind.convert("hj/llm", None, None), TrainJobName)
    with pytest.raises(click.UsageError):
        kind.convert("trainjob/", None, None)


WAITS = {
    "a phase that holds": (["llm", "--for", "phase=Running"], 0, "llm condition met\n"),
    "two HyperJobs": (
        ["llm", "done", "--for", "phase=Running,Completed"],
        0,
        "llm condition met\nhyperjob.training.volcano.sh/done condition met\n",
    ),
    "a deletion": (["none", "--for", "delete"], 0, "none deleted\n"),
    "a deletion as JSON": (["none", "--for", "delete", "-o", "json"], 0, None),
    "a name": (["llm", "--for", "phase=Running", "-o", "name"], 0, "llm\n"),
    "no deletion": (["llm", "--for", "delete", "--timeout", "10ms"], 3, ""),
    "a phase that can never be": (["done", "--for", "phase=Running"], 4, ""),
    "no HyperJob": (["none", "--for", "phase=Running"], 1, ""),
    "the end": (["done"], 0, "done condition met\n"),
    "the end, not yet": (["llm", "--timeout", "10ms"], 3, ""),
    "a wrong goal": (["llm", "--for", "phase=Nice"], 2, ""),
}


@pytest.mark.parametrize(("words", "code", "out"), WAITS.values(), ids=WAITS.keys())
def test_a_wait_ends_with_a_line_or_a_code(
    run: Run, words: list[str], code: int, out: str | None
) -> None:
    found = run("wait", *words)
    assert found.exit_code == code, found.output
    if out is None:
        assert '"items": []' in found.stdout or found.stdout == ""
    else:
        assert found.stdout == (f"hyperjob.training.volcano.sh/{out}" if out else "")


@pytest.mark.parametrize("form", ["table", "name"])
def test_a_watch_prints_the_list_and_then_each_change(
    run: Run, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    from hyperjob.cli import get
    from hyperjob.cli.get import changes

    async def some(*given: Any, **more: Any) -> Any:
        """Yield the events of the list, and those of one change, then end."""
        number = 0
        async for event in changes(*given, **more):
            yield event
            number += 1
            if number == 3:
                fleet.put(HYPERJOBS, {**fleet.stored(), "status": hyperjob("Failed")["status"]})
                yield WatchEvent(EventType.BOOKMARK, {})  # of a second list
            if number == 4:
                return

    monkeypatch.setattr(get, "changes", some)
    words = [] if form == "table" else ["-o", "name"]
    found = run("get", "-w", *words)
    assert found.exit_code == 0, found.output
    names = [line.split()[0].rpartition("/")[2] for line in found.stdout.splitlines()]
    head = ["NAME"] if form == "table" else []
    assert names == [*head, "done", "llm", "llm"]
    if form == "table":
        assert "Failed" in found.stdout.splitlines()[-1]
    assert run("get", "none", "-w").exit_code == 1
