"""The page about GitOps is true: its expressions say of each HyperJob what it says they say."""

import re
from pathlib import Path
from typing import Any

import lupa.lua51 as lupa
import pytest
import yaml

from hyperjob_core.api.phases import Phase
from hyperjob_sandbox.apiserver.cel import Expression

PAGE = (Path(__file__).parents[3] / "docs/tasks/gitops.md").read_text(encoding="utf-8")
SHOWN = {
    each["kind"]: each
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for each in yaml.safe_load_all(block)
}
HEALTH = {
    Phase.PENDING: "Progressing",
    Phase.QUEUED: "Progressing",
    Phase.STARTING: "Progressing",
    Phase.RUNNING: "Healthy",
    Phase.DEGRADED: "Degraded",
    Phase.RESTARTING: "Progressing",
    Phase.STOPPING: "Progressing",
    Phase.SUSPENDED: "Suspended",
    Phase.COMPLETED: "Healthy",
    Phase.FAILED: "Degraded",
}


def hyperjob(**status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, **status}}


def health(raw: dict[str, Any]) -> tuple[str, str]:
    """Ask the script as Argo CD does: the object is the global `obj`, the answer a table."""
    state = lupa.LuaRuntime(register_eval=False)
    state.globals()["obj"] = state.table_from(raw, recursive=True)
    script = SHOWN["ConfigMap"]["data"][
        "resource.customizations.health.training.volcano.sh_HyperJob"
    ]
    found = state.execute(script)
    return found["status"], found["message"]


@pytest.mark.parametrize("phase", Phase)
def test_argo_cd_shows_the_health_of_each_phase(phase: Phase) -> None:
    state = {"phase": str(phase), "reason": "Why", "message": "since then"}
    assert health(hyperjob(state=state)) == (HEALTH[phase], "since then")
    del state["message"]
    assert health(hyperjob(state=state)) == (HEALTH[phase], "Why")
    del state["reason"]
    assert health(hyperjob(state=state)) == (HEALTH[phase], str(phase))


@pytest.mark.parametrize(
    "raw",
    [
        {"metadata": {"generation": 1}},
        hyperjob(),
        hyperjob(state={}),
        hyperjob(state={"phase": "Running"}, observedGeneration=1),
    ],
)
def test_argo_cd_waits_for_a_controller_that_has_not_seen_the_hyperjob(raw: dict[str, Any]) -> None:
    assert health(raw) == ("Progressing", "waits for the controller")


@pytest.mark.parametrize(
    ("status", "current", "failed"),
    [
        ({}, False, False),
        ({"conditions": [{"type": "Completed", "status": "False"}]}, False, False),
        ({"conditions": [{"type": "Completed", "status": "True"}]}, True, False),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, False, True),
    ],
)
def test_flux_waits_for_the_end(status: dict[str, Any], current: bool, failed: bool) -> None:
    (check,) = SHOWN["Kustomization"]["spec"]["healthCheckExprs"]
    assert (check["apiVersion"], check["kind"]) == ("training.volcano.sh/v1alpha1", "HyperJob")
    for name, wanted in (("current", current), ("failed", failed)):
        assert Expression(check[name], variables=("status",)).evaluate({"status": status}) is wanted
