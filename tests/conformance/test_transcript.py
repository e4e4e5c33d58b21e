"""The embedded API server answers kubectl and plain HTTP as a real kube-apiserver 1.36 did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.player import Player, transcript
from tests.support.controlplane import KUBECTL, ControlPlane

STEPS = list(transcript())

# Where the embedded server answers differently, and why that is better than being equal.
KNOWN: dict[str, str] = {
    "explain": (
        "a real server publishes the OpenAPI of a new definition some seconds later and refuses"
        " until then; here it is there at once"
    ),
    "explain recursive": "as for explain",
}


@pytest.fixture(scope="module")
def played(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Play all steps once, in their order; they build on each other."""
    player = Player(control_plane.kubeconfig, KUBECTL, tmp_path_factory.mktemp("kubectl-cache"))
    try:
        yield {step["step"]: player.play(step["do"]) for step in STEPS}
    finally:
        player.close()


@pytest.mark.scenario
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "step", [s for s in STEPS if s["step"] not in KNOWN], ids=lambda step: step["step"]
)
def test_answers_as_a_real_api_server(played: dict[str, Any], step: dict[str, Any]) -> None:
    answer = played[step["step"]]
    assert answer == step["answer"]
    # The order of fields is part of what clients see.
    assert json.dumps(answer) == json.dumps(step["answer"])


@pytest.mark.scenario
@pytest.mark.timeout(300)
def test_explains_a_new_kind_at_once(played: dict[str, Any], control_plane: ControlPlane) -> None:
    if control_plane.real:
        pytest.skip("a real server explains a new kind some seconds after it was defined")
    assert played["explain"]["exit"] == 0
    assert "How many." in played["explain"]["out"]
    assert "deep\t<boolean>" in played["explain recursive"]["out"]


def test_every_known_difference_is_a_recorded_step() -> None:
    assert set(KNOWN) <= {step["step"] for step in STEPS}
    assert len(KNOWN) < 5
    assert Path(__file__).with_name("crd.yaml").is_file()
