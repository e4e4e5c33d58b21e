"""Objects that no defaulting has seen: a webhook that was away, or another API server's copy."""

from typing import Any

import pytest

from webhook.validation import validate_create

GPU = "nvidia.com/gpu"


def hyperjob(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "minAvailable": 1, "template": {"spec": pod}}
    job = {"name": "a", "replicas": 2, "templateSpec": {"minAvailable": 1, "tasks": [task]}}
    return {"metadata": {"name": "x", "namespace": "n"}, "spec": {"replicatedJobs": [job], **spec}}


def pod(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


@pytest.mark.parametrize(
    ("limits", "is_told"), [(None, True), ({}, True), ({"cpu": "1"}, True), ({GPU: "1"}, False)]
)
def test_an_extended_resource_needs_its_own_limit(
    limits: dict[str, str] | None, is_told: bool
) -> None:
    resources = {"requests": {GPU: "1"}} | ({} if limits is None else {"limits": limits})
    found = [str(error) for error in validate_create(hyperjob(pod(**resources))).errors]
    assert any(".resources.limits: " in each for each in found) is is_told, found


def test_the_usual_grace_counts_where_a_checkpoint_names_none() -> None:
    for grace, is_told in ((29, True), (30, False)):
        made = {**pod(), "terminationGracePeriodSeconds": grace}
        decision = validate_create(hyperjob(made, checkpoint={"directory": "/data"}))
        told = [text for text in decision.warnings if "terminationGracePeriodSeconds" in text]
        assert bool(told) is is_told, decision.warnings


def test_an_error_after_a_number_that_is_whole_is_told() -> None:
    raw = hyperjob(pod(), minAvailable=2.0, ttlSecondsAfterFinished="soon")
    raw["spec"]["replicatedJobs"][0]["replicas"] = 2.0
    found = [error.field for error in validate_create(raw).errors]
    assert found == ["spec.ttlSecondsAfterFinished"]


@pytest.mark.parametrize(("mode", "is_taken"), [(-1, False), (0, True), (511, True), (512, False)])
def test_modes_of_files_are_between_0_and_0777(mode: int, is_taken: bool) -> None:
    volume = {"name": "v", "configMap": {"name": "m", "defaultMode": mode}}
    found = validate_create(hyperjob({**pod(), "volumes": [volume]})).errors
    assert (not found) is is_taken, found


@pytest.mark.parametrize(
    ("capabilities", "is_taken"),
    [(None, True), ({}, True), ({"add": ["NET_ADMIN"]}, True), ({"add": ["CAP_SYS_ADMIN"]}, False)],
)
def test_a_container_without_capabilities_may_forbid_escalation(
    capabilities: dict[str, Any] | None, is_taken: bool
) -> None:
    made = pod()
    context: dict[str, Any] = {"allowPrivilegeEscalation": False}
    made["containers"][0]["securityContext"] = context | (
        {} if capabilities is None else {"capabilities": capabilities}
    )
    found = validate_create(hyperjob(made)).errors
    assert (not found) is is_taken, found
