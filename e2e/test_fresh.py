"""A new Karmada without Volcano Global, with default settings only."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from e2e.support.manifests import adapted
from e2e.support.settings import from_environment
from e2e.support.world import CLUSTERS_FILE, World, document, open_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield a world without Volcano Global, with only the objects of `hyperjob install`."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("fresh")
    file = directory / "clusters.yaml"
    content = yaml.safe_load(CLUSTERS_FILE.read_text()) | {"volcanoGlobal": {"enabled": False}}
    file.write_text(yaml.safe_dump(content))
    with open_world(settings, directory, clusters=file, queue_admission="auto") as opened:
        if opened.volcano_global:
            pytest.skip("this Karmada has Volcano Global")
        if settings.embedded or settings.local:
            command = [sys.executable, "-m", "hyperjob", "install", "--skip", "webhooks"]
            command += ["--kubeconfig", str(opened.kubeconfig)]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr + done.stdout
        yield opened


async def test_the_first_example_runs_to_its_end(scenario):
    world = scenario.world
    example = adapted(world, document("llm-training"))
    name = example["metadata"]["name"]
    await scenario.apply(example)
    await scenario.until_phase(name, "Running", "Completed")
    ended = await scenario.until_phase(name, "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert ended["status"]["queue"] == "default"
    if world.stack is not None:
        assert "mode=builtin" in world.stack.controller.text()
