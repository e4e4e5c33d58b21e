"""A template is completed where it is read, and stored as its author wrote it."""

from typing import Any

import pytest

from hyperjob_core.api.defaults import completed, stored
from hyperjob_rules.patch import additions


def hyperjob(**template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "a"},
        "spec": {"replicatedJobs": [{"name": "b", "templateSpec": template}]},
    }


def test_the_store_gets_nothing_but_names_of_tasks_and_amounts_as_text():
    whole = hyperjob(tasks=[{"name": "c", "replicas": 1, "template": {"spec": {}}}])
    assert stored(whole) is whole
    container = {"name": "d", "resources": {"requests": {"cpu": 0.5}, "limits": {"cpu": 1.5}}}
    pod = {"containers": [container], "initContainers": [container]}
    raw = hyperjob(tasks=[{}, {"name": "c"}, {"name": "", "template": {"spec": pod}}])
    tasks = "/spec/replicatedJobs/0/templateSpec/tasks"
    assert [(each["op"], each["path"], each["value"]) for each in additions(raw, stored(raw))] == [
        ("add", f"{tasks}/0/name", "default0"),
        ("replace", f"{tasks}/2/name", "default2"),
        *(
            ("replace", f"{tasks}/2/template/spec/{kind}/0/resources/{field}/cpu", text)
            for kind in ("containers", "initContainers")
            for field, text in (("requests", "0.5"), ("limits", "1.5"))
        ),
    ]


def test_only_the_way_to_a_change_is_copied():
    before = hyperjob(tasks=[{"name": "c", "replicas": 1, "template": {"spec": {"x": [1]}}}])
    after = completed(before)
    assert after["metadata"] is before["metadata"]
    task = after["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]
    assert (
        task["template"]
        is before["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]
    )


def test_the_patch_names_each_field_once_and_alone():
    before = hyperjob(queue="", maxRetry=0, tasks=[{"name": "c", "replicas": 1}])
    job = "/spec/replicatedJobs/0"
    template = f"{job}/templateSpec"
    found = additions(before, completed(before))
    assert [(each["op"], each["path"], each["value"]) for each in found] == [
        ("replace", f"{template}/queue", "default"),
        ("replace", f"{template}/maxRetry", 3),
        ("add", f"{template}/tasks/0/minAvailable", 1),
        ("add", f"{template}/tasks/0/maxRetry", 3),
        ("add", f"{template}/schedulerName", "volcano"),
        ("add", f"{template}/minAvailable", 1),
        ("add", f"{job}/replicas", 1),
        ("add", f"{job}/clusterPolicy", "Preferred"),
    ]


GPU = "nvidia.com/gpu"
LIMITS: dict[str, tuple[dict[str, Any], object]] = {
    "a device without a limit": ({"requests": {GPU: 2}}, {GPU: 2}),
    "a device with others": ({"requests": {GPU: 2}, "limits": {"cpu": 1}}, {"cpu": 1, GPU: 2}),
    "a device with a limit": ({"requests": {GPU: 2}, "limits": {GPU: 4}}, {GPU: 4}),
    "a device with an empty limit": ({"requests": {GPU: 2}, "limits": {GPU: None}}, {GPU: 2}),
    "a native resource": ({"requests": {"cpu": 1, "memory": "1Gi"}}, None),
    "a limit alone": ({"limits": {GPU: 2}}, {GPU: 2}),
    "fractions become text": ({"requests": {"cpu": 0.5}, "limits": {"cpu": 1.5}}, {"cpu": "1.5"}),
}


@pytest.mark.parametrize(("resources", "limits"), LIMITS.values(), ids=list(LIMITS))
def test_a_requested_device_gets_its_limit(resources: dict[str, Any], limits: object):
    container = {"name": "c", "resources": resources}
    for kind in ("containers", "initContainers"):
        raw = hyperjob(tasks=[{"template": {"spec": {kind: [container]}}}])
        made = completed(raw)["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]
        (found,) = made["template"]["spec"][kind]
        assert found["resources"].get("limits") == limits
        assert found["terminationMessagePolicy"] == "FallbackToLogsOnError"


PLUGINS: dict[str, tuple[object, object]] = {
    "mpi needs svc and ssh": ({"mpi": []}, {"mpi": [], "svc": [], "ssh": []}),
    "pytorch needs svc": ({"pytorch": ["--x"]}, {"pytorch": ["--x"], "svc": []}),
    "all there": ({"mpi": [], "svc": ["--a"], "ssh": []}, {"mpi": [], "svc": ["--a"], "ssh": []}),
    "ssh there": ({"mpi": [], "ssh": ["-b"]}, {"mpi": [], "ssh": ["-b"], "svc": []}),
    "none that needs another": ({"env": []}, {"env": []}),
    "no object": (["mpi"], ["mpi"]),
}


@pytest.mark.parametrize(("given", "wanted"), PLUGINS.values(), ids=list(PLUGINS))
def test_plugins_of_volcano_get_those_that_they_need(given: object, wanted: object):
    found = completed(hyperjob(plugins=given))["spec"]["replicatedJobs"][0]["templateSpec"]
    assert found["plugins"] == wanted


def partitions(**policy: Any) -> dict[str, Any]:
    return {"replicas": 9, "partitionPolicy": policy}


PARTS: dict[str, tuple[dict[str, Any], int | None]] = {
    "its replicas": ({"replicas": 4}, 4),
    "none": ({}, 0),
    "its partitions": (partitions(minPartitions=2, partitionSize=3), 6),
    "one partition": (partitions(minPartitions=1, partitionSize=3), 3),
    "no partition that must run": (partitions(minPartitions=0, partitionSize=3), 9),
    "partitions without a size": (partitions(minPartitions=2), 9),
    "partitions of a wrong type": (partitions(minPartitions="2", partitionSize=3), 9),
    "its own": ({"replicas": 9, "minAvailable": 5}, 5),
    "the greatest number": ({"replicas": 2**31 - 1}, 2**31 - 1),
    "too many replicas": ({"replicas": 2**31}, None),
    "replicas of a wrong type": ({"replicas": True}, None),
}


@pytest.mark.parametrize(("task", "available"), PARTS.values(), ids=list(PARTS))
def test_the_gang_of_a_task_and_of_its_vcjob(task: dict[str, Any], available: int | None):
    found = completed(hyperjob(tasks=[task, {"minAvailable": 1}]))
    template = found["spec"]["replicatedJobs"][0]["templateSpec"]
    assert template["tasks"][0].get("minAvailable") == available
    whole = None if available is None else available + 1
    assert template.get("minAvailable") == whole
