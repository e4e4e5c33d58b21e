"""HyperJobs of all kinds as users write them, without defaults."""

from typing import Any

from tests.decisions.draw import Draw

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
ACTIONS = (
    "FailHyperJob",
    "RestartHyperJob",
    "RestartJob",
    "MigrateJob",
    "RestartHyperJobAndIgnoreMaxRestarts",
    "RestartJobAndIgnoreMaxRestarts",
)
PLUGINS: dict[str, dict[str, list[str]]] = {
    "env": {"env": []},
    "pytorch": {"pytorch": []},
    "pytorch with flags": {"pytorch": ["--port=2345", "--nproc-per-node=2"], "env": []},
    "jax": {"jax": []},
    "mpi": {"mpi": ["--master=master", "--worker=worker"]},
    "svc": {"svc": ["--export=true"]},
    "names": {"svc": ["--name-pattern={pod}.{service}.{namespace}.svc"], "pytorch": []},
    "torchft": {"torchft": ["--lighthouse=master", "--port=30000"]},
    "lighthouse": {"torchft": ["--address=http://lighthouse.example:29510"]},
}
CHECKPOINTS: dict[str, Object] = {
    "folder": {"directory": "/data"},
    "bucket": {"directory": "s3://bucket/run", "gracePeriodSeconds": 120},
    "claim": {"persistentVolumeClaim": "weights", "path": "/ckpt", "intervalSeconds": 60},
}
PHASES: dict[str, list[str]] = {"failed": ["Failed"], "stopped": ["Aborted", "Terminated"]}
QUEUES = ("default", "default", "q0", "q0", "q1")


def task(name: str, replicas: int, gpus: int, **fields: Any) -> Object:
    amounts = {GPU: str(gpus)} if gpus else {"cpu": "1"}
    container = {"name": "main", "image": "i", "resources": {"requests": amounts}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": pod}, **fields}


def hyperjob(name: str, *groups: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": list(groups), **spec},
    }


def _tasks(draw: Draw) -> list[Object]:
    workers = draw.pick("workers", (1, 1, 2, 3, 4, 8))
    tasks = [task("worker", workers, draw.pick("gpus", (1, 1, 2, 4)))]
    if draw.some("few workers do", 0.25):
        tasks[0]["minAvailable"] = draw.number("least workers", 1, workers)
    if draw.some("master", 0.35):
        tasks.insert(0, task("master", 1, draw.pick("gpus of master", (0, 0, 1))))
    return tasks


def _template(draw: Draw) -> Object:
    tasks = _tasks(draw)
    total = sum(each["replicas"] for each in tasks)
    return draw.fields(
        minAvailable=(0.3, (1, max(1, total - 1), total)),
        queue=(0.6, QUEUES),
        priorityClassName=(0.15, ("urgent",)),
        runningEstimate=(0.2, ("90s", "10m", "2h")),
    ) | {"tasks": tasks}


def group_of(draw: Draw, name: str, earlier: list[str]) -> Object:
    """Make one replicatedJob; `earlier` are those that it may depend on."""
    made: Object = {"name": name, "templateSpec": _template(draw.at("template"))}
    kind = draw.pick("kind", ("auto", "static", *("plain",) * 5))
    if kind != "auto":
        made["replicas"] = draw.pick("replicas", (1, 1, 2, 2, 3, 4, 5))
    if kind != "plain":
        total = draw.pick("accelerators", (2, 4, 6, 8, 12, 16, 30))
        made["splitPolicy"] = {"mode": kind, "accelerators": total, "acceleratorType": GPU}
    if draw.some("clusterNames", 0.3):
        names = draw.sample("clusters", ("a", "b", "c", "nowhere"), draw.number("named", 1, 3))
        made["clusterNames"] = names
        if draw.some("clusterPolicy", 0.4):
            made["clusterPolicy"] = "Required"
    if earlier and draw.some("dependsOn", 0.35):
        made["dependsOn"] = [
            {"name": each, "status": draw.pick(f"status of {each}", ("Ready", "Complete"))}
            for each in draw.sample("on", earlier, draw.number("groups", 1, len(earlier)))
        ]
    if draw.some("templateMetadata", 0.15):
        made["templateMetadata"] = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
    return made


def _failure_policy(draw: Draw) -> Object:
    rules = []
    for index in range(draw.number("rules", 0, 2)):
        at = draw.at(index)
        rule = {"action": at.pick("action", ACTIONS)} | at.fields(
            onClusterLost=(0.3, (True,)), targetReplicatedJobs=(0.3, (["g0"],))
        )
        if at.some("onJobPhases", 0.5):
            rule["onJobPhases"] = at.named("phases", PHASES)
        rules.append(rule)
    return {"maxRestarts": draw.number("maxRestarts", 0, 3), "rules": rules}


def _success_policy(draw: Draw, last: str) -> Object:
    return {"operator": draw.pick("operator", ("All", "Any"))} | draw.fields(
        targetReplicatedJobs=(0.5, ([last],))
    )


def hyperjob_of(draw: Draw, name: str = "hj", *, most: int = 3) -> Object:
    """Make a HyperJob with any of the fields of the spec."""
    groups: list[Object] = []
    for index in range(draw.pick("groups", (1, 1, 1, 2, most))):
        earlier = [each["name"] for each in groups]
        groups.append(group_of(draw.at(f"g{index}"), f"g{index}", earlier))
    count = sum(each.get("replicas", 1) for each in groups)
    fields = draw.fields(
        minAvailable=(0.3, range(1, count + 1)),
        maxDomains=(0.25, (1, 2, 3)),
        quorum=(0.15, range(1, max(2, count))),
        ttlSecondsAfterFinished=(0.2, (0, 60, 600)),
        activeDeadlineSeconds=(0.1, (60, 600, 3600)),
    )
    if draw.some("plugins", 0.35):
        fields["plugins"] = draw.named("plugin", PLUGINS)
    if draw.some("failurePolicy", 0.6):
        fields["failurePolicy"] = _failure_policy(draw.at("failurePolicy"))
    if draw.some("successPolicy", 0.25):
        fields["successPolicy"] = _success_policy(draw.at("successPolicy"), groups[-1]["name"])
    if draw.some("checkpoint", 0.25):
        fields["checkpoint"] = draw.named("kept in", CHECKPOINTS)
    if draw.some("whole deadline", 0.3) and "activeDeadlineSeconds" in fields:
        fields["activeDeadlineMode"] = "Total"
    return hyperjob(name, *groups, **fields)
