"""What a command imports before it does anything: people wait for it at every Tab."""

import json
import shlex
import sys
from pathlib import Path

from tests.support.kubeconfigs import write_kubeconfig
from tests.support.processes import ran

VERBS = ("get", "tree", "why", "logs", "top", "wait", "suspend", "restart", "migrate")
DEAR = {"aiohttp", "kubernetes", "pydantic", "cryptography"}
"""What takes a tenth of a second of CPU to import, or more."""

HELP = """
import sys
from hyperjob.cli import main
for verb in sys.argv[1:]:
    main([verb, "--help"], standalone_mode=False)
"""

CONNECT = """
import asyncio, sys
from hyperjob_core.kube import config
asyncio.run(config.load(sys.argv[1]))
"""


def imported(program: str, *words: str) -> set[str]:
    """Run a program in a Python of its own; give the names of all modules that it then has."""
    told = "\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    done = ran(sys.executable, "-c", program + told, *words, check=True, timeout=120)
    return set(done.stderr.split())


def test_run_prints_the_hyperjob_of_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    options = "--gpus 8 --clusters east,west --env A=b=c -o json"
    words = ["run", "train.py", *shlex.split(options), "--", "--lr", "0.1"]
    done = ran(sys.executable, "-m", "hyperjob", *words, cwd=tmp_path)
    made = json.loads(done.stdout)
    (group,) = made["spec"]["replicatedJobs"]
    (task,) = group["templateSpec"]["tasks"]
    (container,) = task["template"]["spec"]["containers"]
    assert (group["clusterNames"], group["replicas"], task["replicas"]) == (["east", "west"], 2, 1)
    assert container["command"][-3:] == ["train.py", "--lr", "0.1"]
    assert {"name": "A", "value": "b=c"} in container["env"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    wrong = ran(sys.executable, "-m", "hyperjob", "run", "absent.py")
    assert (wrong.returncode, "absent.py: no such file" in wrong.stderr) == (2, True)


def test_help_imports_no_client_and_no_models() -> None:
    assert not DEAR & imported(HELP, *VERBS)


EVERYTHING = """
import sys
from importlib import import_module
from hyperjob.cli import main
for verb in sys.argv[1:]:
    assert main.get_command(None, verb)
import_module("hyperjob.client.why.evidence")
import_module("hyperjob.client.why.explain")
"""


def test_what_reads_and_shows_a_hyperjob_has_no_models_and_no_second_client() -> None:
    """A model of pydantic costs as much CPU as all else that these commands do."""
    assert not (DEAR | {"hyperjob_engine.model.observed"}) & imported(
        EVERYTHING, "get", "tree", "why"
    )


def test_a_plan_needs_no_embedded_control_plane() -> None:
    assert "hyperjob_sandbox" not in imported(HELP, "plan")


CALL = """
import asyncio, sys
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Unavailable
from hyperjob_core.kube.resources import CLUSTERS

async def call():
    async with Kube.connect(kubeconfig=sys.argv[1]) as kube:
        try:
            await kube.get(CLUSTERS, "any")
        except Unavailable:
            return
    raise AssertionError("nothing listens there")

asyncio.run(call())
"""


def test_the_calls_of_a_command_need_no_second_client(tmp_path: Path) -> None:
    """The import of kubernetes doubles the CPU of `get`."""
    path = tmp_path / "config"
    write_kubeconfig(path, user={"token": "t"})
    assert {"aiohttp"} == DEAR & imported(CALL, str(path))


def test_a_kubeconfig_with_a_token_file_needs_no_second_client(tmp_path: Path) -> None:
    path, token = tmp_path / "config", tmp_path / "token"
    token.write_text("t")
    write_kubeconfig(path, user={"tokenFile": "token"})
    assert not DEAR & imported(CONNECT, str(path))


def test_the_controller_imports_no_cryptography_before_a_setting_asks_for_it() -> None:
    names = imported("import sys, hyperjob_controller.__main__, hyperjob_controller.__main__")
    assert not {"cryptography", "kubernetes"} & names
