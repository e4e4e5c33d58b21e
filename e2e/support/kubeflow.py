"""Kubeflow's Python client in a process of its own, with the environment of the package."""

import asyncio
import json
import os
from pathlib import Path

from e2e.support.scenario import Scenario
from e2e.support.world import ROOT
from hyperjob_core.api.meta import Object

PYTHON = Path(os.environ.get("HYPERJOB_KUBEFLOW_PYTHON", ROOT / ".venv-kubeflow/bin/python"))
PROGRAM = ROOT / "e2e/programs/trainjob.py"


async def played(scenario: Scenario, scene: str) -> Object:
    """Play a scene of the program; return what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(PYTHON, "-W", "ignore", PROGRAM, scenario.world.kubeconfig, scenario.namespace, scene),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(scenario.world.settings.timeout):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode() + scenario.logs()
    found: Object = json.loads(output.decode().splitlines()[-1])
    return found
