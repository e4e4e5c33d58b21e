"""HyperJobs of all kinds out of one sequence of random numbers, as users write them."""

import random
from typing import Any

from tests.unit.engine.builders import GPU, Object, hyperjob, task, template

ACTIONS = (
    "FailHyperJob",
    "RestartHyperJob",
    "RestartJob",
    "MigrateJob",
    "RestartHyperJobAndIgnoreMaxRestarts",
    "RestartJobAndIgnoreMaxRestarts",
)
PLUGINS: tuple[dict[str, list[str]], ...] = (
    {"env": []},
    {"pytorch": []},
    {"pytorch": ["--port=2345", "--nproc-per-node=2"], "env": []},
    {"jax": []},
    {"mpi": ["--master=master", "--worker=worker"]},
    {"svc": ["--export=true"]},
    {"svc": ["--name-pattern={pod}.{service}.{namespace}.svc"], "pytorch": ["--timeout=60"]},
    {"torchft": ["--lighthouse=master", "--port=30000"]},
    {"torchft": ["--address=http://lighthouse.example:29510"]},
)


def some(rng: random.Random, chance: float) -> bool:
    return rng.random() < chance


def group_of(rng: random.Random, name: str, earlier: list[str]) -> Object:
    """Make one replicatedJob; `earlier` are those that it may depend on."""
    workers, each = rng.choice((1, 1, 2, 3, 4, 8)), rng.choice((1, 1, 2, 4))
    tasks = [task("worker", workers, each)]
    if some(rng, 0.35):
        tasks.insert(0, task("master", 1, rng.choice((0, 0, 1))))
    if some(rng, 0.25):
        tasks[-1]["minAvailable"] = rng.randint(1, workers)
    spec = template(*tasks)
    total = sum(item["replicas"] for item in tasks)
    if some(rng, 0.4):
        spec["minAvailable"] = rng.choice((1, total - 1, total, total)) or 1
    if some(rng, 0.5):
        spec["queue"] = rng.choice(("q0", "q0", "q1"))
    if some(rng, 0.15):
        spec["priorityClassName"] = "urgent"
    if some(rng, 0.1):
        spec["runningEstimate"] = rng.choice(("90s", "2h"))
    made: Object = {"name": name, "templateSpec": spec}
    kind = rng.random()
    if kind < 0.15:
        total = rng.choice((2, 4, 6, 8, 12, 16, 30))
        made["splitPolicy"] = {"mode": "auto", "accelerators": total, "acceleratorType": GPU}
    else:
        made["replicas"] = rng.choice((1, 1, 2, 2, 3, 4, 5))
        if kind < 0.3:
            total = rng.choice((2, 4, 6, 7, 8, 12, 16))
            made["splitPolicy"] = {"mode": "static", "accelerators": total, "acceleratorType": GPU}
    if some(rng, 0.3):
        made["clusterNames"] = rng.sample(["a", "b", "c", "nowhere"], rng.randint(1, 3))
        if some(rng, 0.4):
            made["clusterPolicy"] = "Required"
    if earlier and some(rng, 0.35):
        made["dependsOn"] = [
            {"name": each, "status": rng.choice(("Ready", "Complete"))}
            for each in rng.sample(earlier, rng.randint(1, len(earlier)))
        ]
    if some(rng, 0.15):
        made["templateMetadata"] = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
    return made


def hyperjob_of(rng: random.Random, name: str = "hj", *, most: int = 3) -> Object:
    """Make a HyperJob with any of the fields of the spec."""
    groups: list[Object] = []
    for index in range(rng.choice((1, 1, 1, 2, most))):
        groups.append(group_of(rng, f"g{index}", [each["name"] for each in groups]))
    count = sum(each.get("replicas", 1) for each in groups)
    fields: dict[str, Any] = {}
    if some(rng, 0.3):
        fields["minAvailable"] = rng.randint(1, count + 1)
    if some(rng, 0.25):
        fields["maxDomains"] = rng.randint(1, 3)
    if some(rng, 0.35):
        fields["plugins"] = rng.choice(PLUGINS)
    if some(rng, 0.6):
        rules = []
        for _ in range(rng.randint(0, 2)):
            rule: Object = {"action": rng.choice(ACTIONS)}
            if some(rng, 0.5):
                rule["onJobPhases"] = rng.choice((["Failed"], ["Aborted", "Terminated"]))
            if some(rng, 0.3):
                rule["onClusterLost"] = True
            if some(rng, 0.3):
                rule["targetReplicatedJobs"] = ["g0"]
            rules.append(rule)
        fields["failurePolicy"] = {"maxRestarts": rng.randint(0, 3), "rules": rules}
    if some(rng, 0.25):
        policy: Object = {"operator": rng.choice(("All", "Any"))}
        if some(rng, 0.5):
            policy["targetReplicatedJobs"] = [groups[-1]["name"]]
        fields["successPolicy"] = policy
    if some(rng, 0.15):
        fields["quorum"] = rng.randint(1, max(1, count - 1))
    if some(rng, 0.25):
        fields["checkpoint"] = rng.choice((
            {"directory": "/data"},
            {"directory": "s3://bucket/run", "gracePeriodSeconds": 120},
            {"persistentVolumeClaim": "weights", "path": "/ckpt", "intervalSeconds": 60},
        ))  # fmt: skip
    if some(rng, 0.2):
        fields["ttlSecondsAfterFinished"] = rng.choice((0, 60, 600))
    if some(rng, 0.05):
        fields["suspend"] = True
    late = random.Random(
        repr((groups, fields))
    )  # leaves the numbers of the other fields as they are
    if some(late, 0.1):
        fields["activeDeadlineSeconds"] = late.choice((5, 60, 3600))
        if some(late, 0.3):
            fields["activeDeadlineMode"] = "Total"
    raw = hyperjob(*groups, name=name, **fields)
    raw["metadata"]["uid"] = f"hj-uid-{name}"
    return raw
