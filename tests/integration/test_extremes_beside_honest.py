"""Extreme HyperJobs through the real webhook and the whole controller, beside twenty honest ones.

A process of the webhook answers two reviews over HTTPS for each HyperJob. What it admits comes to
the controller in virtual time, whose API server and members are simulated. HYPERJOB_FUZZ_COUNT sets
how many HyperJobs the webhook admits, HYPERJOB_FUZZ_SEED which ones; `-s` shows the figures.
"""

import asyncio
import base64
import os
import random
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest

from hyperjob_controller.options import Tuning
from hyperjob_rules.configuration import MUTATE_HYPERJOB, VALIDATE_HYPERJOB
from hyperjob_sandbox.simulate.sites import queue
from hyperjob_sandbox.simulate.workload import Submission
from tests.support.stack import issue_certificates
from tests.support.webhookprocess import RawConnection, WebhookProcess, webhook_process
from tests.unit.controller.wholeworld import World, scenario_of, submission
from tests.unit.engine.builders import GPU
from tests.unit.test_extreme_hyperjobs import extreme

pytestmark = pytest.mark.scenario

COUNT = int(os.environ.get("HYPERJOB_FUZZ_COUNT", "40"))
SEED = int(os.environ.get("HYPERJOB_FUZZ_SEED", "20261124"))
BATCH = 200
HONEST = 20
MINUTES = 3
WILD = {GPU: "160", "cpu": "1000", "memory": "8Ti", "pods": "2000"}
"""What the extreme HyperJobs may use of 640 GPUs, 5,120 CPUs and 8,800 pods."""

Object = dict[str, Any]


def review(obj: Object) -> bytes:
    """Return the body of a review of a new HyperJob."""
    request = {
        "uid": "u",
        "kind": {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"},
        "operation": "CREATE",
        "namespace": obj["metadata"]["namespace"],
        "object": obj,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return orjson.dumps({**head, "request": request})


async def asked(connection: RawConnection, path: str, obj: Object) -> Object:
    status, _, body = await connection.post(path, review(obj))
    assert status == 200, (status, body, obj)
    answer: Object = orjson.loads(body)["response"]
    return answer


async def admitted(
    webhook: WebhookProcess, rng: random.Random, count: int, told: Counter[str]
) -> list[Object]:
    """Return HyperJobs with extreme values that the webhook admits, with its defaults."""
    connection = await RawConnection.open(webhook.port, webhook.client_tls())
    found: list[Object] = []
    while len(found) < count:
        raw = wild(rng, f"w{len(found)}")
        told["asked"] += 1
        answer = await asked(connection, MUTATE_HYPERJOB, raw)
        if not answer["allowed"]:
            continue
        if "patch" in answer:
            patch = base64.b64decode(answer["patch"]).decode()
            raw = jsonpatch.apply_patch(raw, patch)
        answer = await asked(connection, VALIDATE_HYPERJOB, raw)
        if answer["allowed"]:
            found.append(raw)
    await connection.close()
    told["admitted"] += count
    return found


def wild(rng: random.Random, name: str) -> Object:
    """Return a HyperJob with extreme values; a JSON body holds no number beyond 64 bits."""
    while True:
        raw = extreme(rng)
        raw["metadata"] = {"name": name, "namespace": "wild"}
        raw.pop("status", None)
        try:
            orjson.dumps(raw)
        except TypeError:
            continue
        return raw


def beside(extremes: list[Object]) -> World:
    """Return a world with room for all honest HyperJobs, and extreme ones that came before."""
    queues = [
        queue("default", {"weight": 1, "capability": WILD}),
        queue("honest", {"weight": 1, "reclaimable": True}),
    ]
    honest = [
        submission(f"h{number}", arrival=20.0 + number, duration=120.0, into="honest")
        for number in range(HONEST)
    ]
    others = [
        Submission(arrival=1.0 + number / 20, duration=60.0, hyperjob=raw, gpus=1, queue="default")
        for number, raw in enumerate(extremes)
    ]
    return World(
        scenario_of([*others, *honest], nodes=40, queues=queues),
        tuning=Tuning(failure_causes=False),
        workers=8,
    )


def waits(world: World) -> dict[str, float]:
    lives = world.simulation.history.lives
    found = {key: life.waited for key, life in lives.items() if key.startswith("default/h")}
    assert None not in found.values(), found
    return {key: wait for key, wait in found.items() if wait is not None}


def phase_of(raw: Object) -> str:
    return str(raw.get("status", {}).get("state", {}).get("phase", "no status"))


@lru_cache
def alone() -> dict[str, float]:
    """Return how long each honest HyperJob waits until it trains, without others."""
    world = beside([])
    world.play(hours=MINUTES / 60)
    return waits(world)


@pytest.mark.timeout(7200)
def test_extreme_hyperjobs_end_no_process_and_delay_no_honest_hyperjob(tmp_path: Path) -> None:
    rng, told, worst = random.Random(SEED), Counter[str](), 0.0
    with webhook_process(tmp_path, issue_certificates(tmp_path / "tls")) as webhook:
        for first in range(0, COUNT, BATCH):
            legal = asyncio.run(admitted(webhook, rng, min(BATCH, COUNT - first), told))
            world = beside(legal)
            world.play(hours=MINUTES / 60)
            assert world.counted() == {}, [each.exc_info for each in world.logged.records]
            for key, wait in waits(world).items():
                worst = max(worst, wait / alone()[key])
            told.update(phase_of(raw) for raw in world.left)
            sys.stdout.write(f"{dict(told)}\n")
        assert webhook.process.poll() is None
        assert not any(line["level"] == "ERROR" for line in webhook.lines())
    figures = f"{dict(told)}; slowest honest HyperJob: {worst:.2f} times its time alone"
    sys.stdout.write(f"seed {SEED}: {figures}\n")
    assert worst <= 2.0
