"""Commands while things change, and what they ask of an API server on which Roles decide."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from docs.generators.rights import RIGHTS, allowed
from hyperjob_core.api.names import (
    CONTROLLER_SETTINGS,
    MIGRATE_REQUEST,
    QUEUE_ADMISSION,
    RESTART_REQUEST,
)
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import CLUSTER_ROLES, HYPERJOBS, LEASES, NAMESPACES
from tests.support.cliworld import ENDED, NAMESPACE, CliWorld, hyperjob, open_world, status

EXAMPLE = Path(__file__).parents[2] / "examples/llm-training.yaml"

pytestmark = pytest.mark.scenario


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[CliWorld]:
    async with AsyncExitStack() as stack:
        yield await open_world(stack, tmp_path)


@pytest.mark.parametrize(
    ("words", "look"),
    [
        (["get", "hj/llm"], lambda v: v["metadata"]["name"] == "llm"),
        (["get"], lambda v: v["kind"] == "List" and len(v["items"]) == 3),
        (
            ["tree", "llm", "--pods"],
            lambda v: len(v["replicatedJobs"][0]["jobs"][0]["podList"]) == 2,
        ),
        (["tree"], lambda v: [item["name"] for item in v["items"]] == ["done", "llm", "queued"]),
        (["why", "queued"], lambda v: v["causes"][0]["reason"] == "WaitingForQueue"),
        (
            ["top"],
            lambda v: v["clusters"][0]["free"] == 16 and v["waiting"] == {"nvidia.com/gpu": 16},
        ),
        (["wait", "llm", "--for=phase=Running"], lambda v: v["metadata"]["name"] == "llm"),
        (["suspend", "llm"], lambda v: v["spec"]["suspend"] is True),
        (["resume", "llm"], lambda v: v["metadata"]["name"] == "llm"),
        (
            ["restart", "llm", "--no-wait"],
            lambda v: RESTART_REQUEST in v["metadata"]["annotations"],
        ),
        (
            ["migrate", "llm", "trainer-0", "--no-wait"],
            lambda v: v["metadata"]["annotations"][MIGRATE_REQUEST].endswith(" llm-trainer-0"),
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
async def test_json_is_all_that_is_on_standard_output(world: CliWorld, words, look) -> None:
    done = await world.run(*words, "-o", "json")
    found = json.loads(done.stdout)
    assert look(found), found
    if "yaml" in (await world.run(words[0], "--help")).stdout:
        again = await world.run(*words, "-o", "yaml")
        assert yaml.safe_load(again.stdout) or again.exit_code == 3, again.output


EAST = {"cluster": "east"}


async def _ends(world: CliWorld, name: str) -> None:
    """Let a HyperJob that a command creates complete while the command follows it."""
    await world.watched.wait()
    await world.pod(f"{name}-trainer-0-worker-0", {"terminated": ENDED})
    await world.set_status(HYPERJOBS, name, status(name, "Completed", EAST))


async def test_every_command_asks_for_exactly_what_the_reference_says(
    world: CliWorld, tmp_path: Path
) -> None:
    pending = status("llm", "Running", {"cluster": "east", "running": 1}, {"cluster": "east"})
    script = tmp_path / "train.py"
    script.touch()
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    await world.make(HYPERJOBS, hyperjob("enters"), status("enters", "Running", EAST, EAST))
    await world.pod("enters-trainer-0-worker-0", running)
    commands = {
        "get": (["get"], ["get", "llm"]),
        "tree": (["tree"], ["tree", "llm", "--pods"]),
        "why": (["why", "llm"], ["why", "urgent"], ["why", "trainjob/absent"]),
        "logs": (
            ["logs", "llm", "--tail=1"],
            ["logs", "done", "-f"],
            ["logs", "done", "--attempt=2"],
        ),
        "top": (["top"],),
        "wait": (["wait", "queued", "--for=phase=Running"], ["wait", "llm", "--for=step=9"]),
        "suspend": (["suspend", "llm"],),
        "resume": (["resume", "llm"],),
        "restart": (["restart", "llm"],),
        "migrate": (["migrate", "llm", "trainer-0"],),
        "plan": (["plan", "-f", str(needy(tmp_path))],),
        "run": (["run", str(script), "--name=made", "-f"],),
        "exec": (["exec", "enters", "--", "true"],),
        "port-forward": (["port-forward", "enters", "6006"],),
    }
    assert set(commands) == set(RIGHTS)
    await world.set_status(HYPERJOBS, "llm", pending)
    await world.kube.create(NAMESPACES, {"metadata": {"name": "karmada-system"}})
    lease = {
        "metadata": {
            "name": "hyperjob-controller",
            "namespace": "karmada-system",
            "annotations": {
                QUEUE_ADMISSION: "volcano-global",
                CONTROLLER_SETTINGS: '{"members":"nodes"}',
            },
        }
    }
    await world.kube.create(LEASES, lease)
    urgent = hyperjob("urgent")
    urgent["spec"]["replicatedJobs"][0]["templateSpec"]["priorityClassName"] = "deadline"
    await world.make(HYPERJOBS, urgent, status("urgent", "Queued", {}, {}))
    for name, runs in commands.items():
        world.heard.clear()
        world.watched.clear()
        for words in runs:
            wait = name in ("wait", "restart", "migrate")
            more = ["--timeout=3s"] if wait else []  # long enough to come as far as its watch
            taking = (
                asyncio.create_task(world.take(name)) if name in ("restart", "migrate") else None
            )
            if name == "run":
                taking = asyncio.create_task(_ends(world, "made"))
            if name in ("exec", "port-forward"):
                kubectl = await world.plugin(*words)
                assert "unable to upgrade connection" in kubectl.stderr, "there is no kubelet"
                pod, sub = "enters-trainer-0-worker-0", name.replace("-", "")
                assert (pod, sub) in {(each.name, each.subresource) for each in world.asked}
                continue
            done = await world.run(*words, *more)
            assert "Forbidden" not in done.output, done.output
            if taking is not None:
                await taking
        if name in ("get", "tree", "logs"):
            await _follow_for_a_moment(world, name)
        assert world.actions() == allowed(name), name


async def test_a_plan_reads_the_control_plane_and_changes_nothing(
    world: CliWorld, tmp_path: Path
) -> None:
    done = await world.run("plan", "-f", str(EXAMPLE), "-o", "json")
    assert done.exit_code == 4, done.output
    (item,) = json.loads(done.stdout)["items"]
    assert item["verdict"] == "CannotRun"
    assert "does not serve" in item["jobs"][0]["notOn"]["east"]
    assert {verb for _, _, verb in world.actions()} == {"list", "get"}


def needy(folder: Path) -> Path:
    """Write a HyperJob whose pods need one object of each kind, and one of them beside it."""
    job = hyperjob("needy")
    job["metadata"]["namespace"] = NAMESPACE
    template = job["spec"]["replicatedJobs"][0]["templateSpec"]
    template["priorityClassName"] = "deadlin"
    pod = template["tasks"][0]["template"]["spec"]
    pod |= {
        "serviceAccountName": "trainer",
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [
            {"name": "conf", "configMap": {"name": "conf"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    }
    beside = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "conf", "namespace": NAMESPACE},
    }
    path = folder / "needy.yaml"
    path.write_text(yaml.safe_dump_all([beside, job]))
    return path


async def test_without_optional_rights_commands_say_what_they_do_not_see(world: CliWorld) -> None:
    rules = [
        {"apiGroups": ["training.volcano.sh"], "resources": ["hyperjobs"], "verbs": ["get", "list"]}
    ]
    await world.kube.patch(CLUSTER_ROLES, "all-rights", {"rules": rules}, kind=PatchType.MERGE)
    why = await world.run("why", "queued")
    assert why.exit_code == 3, why.output
    (unseen,) = [line for line in why.stdout.splitlines() if "not visible to you" in line]
    kinds, _, told = unseen.partition("not visible to you")[2].partition(": ")
    assert kinds.strip() == "vcjobs, resourcebindings, events, lease"
    assert told.startswith("you have no right to read them")
    tree = await world.run("tree", "llm", "--pods")
    assert tree.exit_code == 0
    assert "clusters.cluster.karmada.io" in tree.stderr
    assert "llm-trainer-0" in tree.stdout
    top = await world.run("top")
    assert top.exit_code == 0
    assert "Forbidden" in top.stderr
    logs = await world.run("logs", "llm")
    assert logs.exit_code == 1
    assert logs.stderr.splitlines()[-1] == "error: no pods of llm could be read"


async def _follow_for_a_moment(world: CliWorld, command: str) -> None:
    """Run a command with -w until it has printed its HyperJob, or with -f, until it watches."""
    name = f"short-{command}"
    world.watched.clear()
    await world.make(HYPERJOBS, hyperjob(name), status(name, "Running", {"cluster": "east"}))
    follow = command == "logs"
    words = [command, name, "-f" if follow else "-w"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperjob", *words),
        env={"KUBECONFIG": str(world.kubeconfig), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            if not follow:
                await process.stdout.readline()
            await world.watched.wait()
    finally:
        process.terminate()
        await process.wait()
