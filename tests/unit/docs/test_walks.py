"""How many files of ours run for one pass of the controller, and for one review of the webhook."""

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner

from hyperjob_controller.manager import Manager
from hyperjob_controller.wake.handlers import Reconcile
from hyperjob_rules.configuration import VALIDATE_HYPERJOB
from hyperjob_sandbox.simulate import engine
from hyperjob_sandbox_cli.simulate import simulate
from hyperjob_webhook.admission import admit

ROOT = Path(__file__).parents[3]
ROOMS = ("core", "engine", "queueing", "rules", "controller", "webhook", "certs", "trainjobs")
MOST_OF_A_PASS = 80
MOST_OF_A_REVIEW = 28
API_SERVER = f"{ROOT}/core/hyperjob_core/kube/memory.py"


@contextmanager
def walked() -> Iterator[set[str]]:
    """Collect the files of ours in which a function is called within the block."""
    files: set[str] = set()

    def called(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(called)
    try:
        yield files
    finally:
        sys.setprofile(None)
        files &= {name for name in files if name.startswith(tuple(f"{ROOT / r}/" for r in ROOMS))}
        files.discard(API_SERVER)


def test_a_pass_runs_no_more_files_than_one_can_know(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def through(reconcile: Reconcile) -> Reconcile:
        async def one(key: str) -> timedelta | None:
            with walked() as files:
                again = await reconcile(key)
            passes.append(len(files))
            return again

        return one

    monkeypatch.setattr(engine, "Manager", partial(Manager, through=through))
    arguments = ["--jobs", "30", "--days", "1", "--load", "0.5", "--seed", "7"]
    assert CliRunner().invoke(simulate, arguments).exit_code == 0
    assert len(passes) > 100
    assert statistics.median(passes) <= MOST_OF_A_PASS


def review(hyperjob: dict[str, Any]) -> bytes:
    kind = {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "object": hyperjob}
    names = {"name": hyperjob["metadata"]["name"], "namespace": "default"}
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return orjson.dumps({**whole, "request": {**request, **names, "userInfo": {}}})


def test_a_review_runs_no_more_files_than_one_can_know() -> None:
    reviews = []
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if (each or {}).get("kind") == "HyperJob":
                body = review(each)
                admit(VALIDATE_HYPERJOB, body)  # the first one compiles the schema
                with walked() as files:
                    reply = admit(VALIDATE_HYPERJOB, body)
                assert orjson.loads(reply.body)["response"]["allowed"]
                reviews.append(len(files))
    assert len(reviews) > 10
    assert statistics.median(reviews) <= MOST_OF_A_REVIEW
