"""The steps of the demo on an API server in memory: what it prints, its result, and its errors."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_sandbox.local.parts import StackError
from hyperjob_sandbox.local.plane import PlaneOptions
from hyperjob_sandbox_cli.demo import run as demo
from hyperjob_sandbox_cli.demo.run import Demo, Options
from tests.unit.cli.fleet import Fleet
from tests.unit.cli.objects import hyperjob, sub_job


class Plane:
    webhook_url = "https://127.0.0.1:1"
    installed = ()

    def __init__(self) -> None:
        self.ended = ""

    def check(self) -> None:
        if self.ended:
            raise StackError(self.ended)

    async def failure(self) -> None:
        raise StackError("held until a process ended")


class Stage:
    """A demo whose processes are this object, with a control plane in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleet, self.plane = Fleet(), Plane()
        self.out = StringIO()
        self.commands: list[tuple[str, ...]] = []
        self.phases = ["Completed"]
        self.table = "the table\n"
        for name, given in (
            ("lifeline", None),
            ("local_plane", self.plane),
            ("served_here", "http://page"),
        ):
            monkeypatch.setattr(demo, name, self._opening(given))
        self.fleet.serve(monkeypatch)
        monkeypatch.setattr(demo, "kubectl", self._kubectl)
        monkeypatch.setattr(demo, "run_once", self._logs)

    def _opening(self, value: Any) -> Any:
        @asynccontextmanager
        async def opened(*_given: Any, **_more: Any) -> AsyncIterator[Any]:
            yield value

        return opened

    async def _kubectl(self, _kubeconfig: Path, *words: str) -> str:
        self.commands.append(words)
        if words[0] == "apply":
            for number, phase in enumerate(self.phases):
                job = sub_job(phase=phase, cluster="east")
                made = hyperjob(phase, job, reason="Why", jobsReady="1/1")
                self.fleet.hyperjob(made, f"job-{number}")
            return "applied\n"
        return self.table

    async def _logs(self, _name: str, *command: str) -> str:
        if "job-1" in command:
            raise StackError("no log yet")
        return f"log of {command[4]}"

    async def run(self, *, width: int = 300, terminal: bool = False, **more: Any) -> Any:
        given = {"keep": False, "logs": False, "seconds": 60.0, "output": "table", **more}
        plane = PlaneOptions(clusters=Path("c"), directory=Path("/demo"))
        options = Options(plane=plane, manifests=(Path("a.yaml"), Path("b.yaml")), **given)
        console = Console(file=self.out, width=width, force_terminal=terminal, color_system=None)
        return await Demo(options, console).run()

    @property
    def text(self) -> str:
        return self.out.getvalue()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


async def test_the_table_ends_at_the_edge_of_a_terminal(stage: Stage) -> None:
    stage.table = f"NAME {'x' * 200}\nllm\n"
    await stage.run(width=80, terminal=True)
    assert f"\nNAME {'x' * 75}\nllm\n" in stage.text
    await stage.run(width=80)
    assert stage.table in stage.text


async def test_a_demo_applies_its_manifests_and_shows_what_becomes_of_them(stage: Stage) -> None:
    result = await stage.run()
    assert stage.commands == [
        ("apply", "-f", "a.yaml", "-f", "b.yaml"),
        ("get", "hyperjobs", "-A", "-o", "wide"),
    ]
    assert (result.finished, result.completed) == (True, True)
    assert result.kubeconfig == Path("/demo/karmada.kubeconfig")
    for text in (
        "$ hyperjob install --webhook-url https://127.0.0.1:1 --ca-file tls/ca.crt",
        "The web page of these clusters: http://page",
        "$ kubectl apply -f a.yaml -f b.yaml\napplied\n",
        "$ kubectl get hyperjobs -A -o wide\nthe table\n",
        "To keep the clusters running afterwards: hyperjob demo --keep",
    ):
        assert text in stage.text
    assert re.search(r"\n1 HyperJob ended after \d+\.\d s\.", stage.text)
    assert re.search(r"s  \S*job-0", stage.text), "a transition"


async def test_a_demo_as_json_prints_nothing_else(stage: Stage) -> None:
    stage.phases = ["Completed", "Failed"]
    result = await stage.run(output="json")
    assert stage.text == ""
    assert stage.commands == [("apply", "-f", "a.yaml", "-f", "b.yaml")]
    found = json.loads(result.to_json())
    assert (found["completed"], found["kubeconfig"]) == (False, "/demo/karmada.kubeconfig")
    assert found["seconds"] == round(result.seconds, 2)
    assert found["hyperjobs"][1] == {
        "name": "ml/job-1",
        "phase": "Failed",
        "jobs": "1/1",
        "clusters": ["east"],
        "message": "Why",
    }


async def test_the_logs_of_each_hyperjob_are_shown_and_a_failure_to_read_them_is_said(
    stage: Stage,
) -> None:
    stage.phases = ["Completed", "Failed"]
    await stage.run(logs=True)
    assert "$ kubectl hyperjob logs job-0 -n ml --tail 4\nlog of job-0\n" in stage.text
    assert "no log yet" in stage.text
    assert "2 HyperJobs ended after" in stage.text


async def test_a_demo_gives_up_when_nothing_has_changed_for_long(stage: Stage) -> None:
    stage.phases = ["Completed", "Queued"]
    result = await stage.run(seconds=0.3)
    assert (result.finished, result.completed) == (False, False)
    assert "No change for 0 s, and not finished: ml/job-1." in stage.text


async def test_a_process_that_ends_ends_the_demo(stage: Stage) -> None:
    stage.plane.ended = "webhook ended with 1"
    with pytest.raises(StackError, match="webhook ended with 1"):
        await stage.run()


async def test_a_refused_manifest_ends_the_demo(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kubectl(*_given: Any) -> str:
        raise StackError("kubectl apply: invalid")

    monkeypatch.setattr(demo, "kubectl", kubectl)
    with pytest.raises(StackError, match="kubectl apply: invalid"):
        await stage.run()


async def test_a_demo_that_is_kept_says_what_to_try_and_runs_until_a_process_ends(
    stage: Stage,
) -> None:
    with pytest.raises(StackError, match="held until a process ended"):
        await stage.run(keep=True)
    assert "karmada.kubeconfig" in stage.text
    assert "hyperjob demo --keep" not in stage.text
    assert stage.fleet.get(HYPERJOBS, "ml/job-0") is not None
