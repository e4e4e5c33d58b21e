"""The plugin torchft: what replica groups are told of the lighthouse and of themselves."""

from dataclasses import replace
from typing import Any

import pytest

from hyperjob_engine.lifecycle.finished import trainers
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import plan
from hyperjob_engine.plugins.hook import equip
from hyperjob_engine.plugins.world import world_of
from tests.support.podenv import pods_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    observed,
    task,
    template,
)
from tests.unit.engine.plans import wanted

CLUSTERS = cluster("a"), cluster("b"), cluster("c")


def raw(*arguments: str, replicas: int = 3, **spec: Any) -> Object:
    lighthouse = group("lighthouse", replicas=1, templateSpec=template(task("lighthouse", gpus=0)))
    trainer = group(replicas=replicas, gpus=2)
    given = list(arguments) or ["--lighthouse=lighthouse"]
    return hyperjob(lighthouse, trainer, plugins={"torchft": given}, quorum=2, **spec)


def environments(made: Object) -> dict[str, list[dict[str, str]]]:
    """Return the variables of the pods of each sub-job that a plan makes."""
    found = {}
    for action in plan(observed(made, clusters=CLUSTERS)).actions:
        assert isinstance(action, CreateChild)
        metadata = {**action.job["metadata"], "uid": f"uid-{action.name}"}
        found[action.name] = [pod.env for pod in pods_of({**action.job, "metadata": metadata})]
    return found


def test_each_sub_job_is_a_replica_group() -> None:
    made = environments(raw())
    for index in range(3):
        for env in made[f"hj-trainer-{index}"]:
            assert env["REPLICA_GROUP_ID"] == str(index)
            assert env["NUM_REPLICA_GROUPS"] == "3"
            assert env["HYPERJOB_QUORUM"] == "2"
            assert env["TORCHFT_QUORUM_RETRIES"] == "100"


def test_torchrun_makes_a_world_of_each_sub_job() -> None:
    made = environments(raw())
    for index in range(3):
        name = f"hj-trainer-{index}"
        for env in made[name]:
            assert env["PET_NNODES"] == "2"
            assert env["PET_NPROC_PER_NODE"] == "1"
            assert env["PET_RDZV_ENDPOINT"] == f"{name}-worker-0.{name}:29400"


def test_the_lighthouse_has_one_name_wherever_it_runs() -> None:
    made = environments(raw())
    addresses = {
        env["TORCHFT_LIGHTHOUSE"]
        for name, pods in made.items()
        for env in pods
        if "trainer" in name
    }
    assert addresses == {"http://hj-lighthouse-0.default.svc.clusterset.local:29510"}


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("{pod}.{cluster}.{service}.mesh", "hj-lighthouse-0.mesh"),
        ("{service}.{namespace}.example", "hj-lighthouse-0.default.example"),
        ("{pod}.example", "hj-lighthouse-0-lighthouse-0.example"),
        ("{pod}-x.{service}.example", "hj-lighthouse-0-lighthouse-0-x.hj-lighthouse-0.example"),
    ],
)
def test_the_name_of_the_lighthouse_follows_the_pattern(pattern: str, host: str) -> None:
    made = raw()
    made["spec"]["plugins"]["svc"] = [f"--name-pattern={pattern}"]
    env = environments(made)["hj-trainer-0"][0]
    assert env["TORCHFT_LIGHTHOUSE"] == f"http://{host}:29510"


def test_the_pods_of_the_lighthouse_are_told_the_quorum_only() -> None:
    (env,) = environments(raw())["hj-lighthouse-0"]
    assert env["HYPERJOB_QUORUM"] == "2"
    assert not {"TORCHFT_LIGHTHOUSE", "REPLICA_GROUP_ID", "PET_NNODES"} & env.keys()


def test_a_lighthouse_outside_is_told_as_it_is() -> None:
    made = environments(raw("--address=http://outside:1"))
    assert made["hj-trainer-1"][0]["TORCHFT_LIGHTHOUSE"] == "http://outside:1"


def test_the_port_of_the_lighthouse_is_not_that_of_torchrun() -> None:
    made = environments(raw("--lighthouse=lighthouse", "--port=4000", "--timeout=60"))
    env = made["hj-trainer-0"][0]
    assert env["TORCHFT_LIGHTHOUSE"].endswith(":4000")
    assert env["PET_RDZV_ENDPOINT"].endswith(":29400")
    assert "join_timeout=60" in env["PET_RDZV_CONF"]


def test_the_training_completes_while_the_lighthouse_runs() -> None:
    objects = child("hj-lighthouse-0", "Running")
    for index in range(3):
        objects += child(index, "Completed")
    seen = observed(raw(status={"state": {"phase": "Running"}}), *objects, clusters=CLUSTERS)
    decided = plan(seen)
    assert decided.status["state"]["phase"] == "Completed"


def test_the_lighthouse_is_no_part_of_the_quorum() -> None:
    objects = child("hj-lighthouse-0", "Running")
    for index, where in enumerate("abc"):
        objects += child(index, "Running", on=where)
    away = tuple(
        replace(cluster(name, unusable="is not Ready"), not_ready_since=NOW.replace(year=2025))
        for name in "bc"
    )
    seen = observed(
        raw(status={"state": {"phase": "Running"}}), *objects, clusters=(cluster("a"), *away)
    )
    decided = plan(seen)
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == ("Degraded", "QuorumNotMet")
    assert "1 of 3 sub-jobs run" in state["message"]


def test_a_replicated_job_trains_unless_it_runs_the_lighthouse_alone() -> None:
    beside = template(task("lighthouse", gpus=0), task("worker", replicas=2))
    made = raw()
    made["spec"]["replicatedJobs"].append(group("both", templateSpec=beside))
    assert trainers(parse_hyperjob(made)) == {"trainer", "both"}


def test_a_lighthouse_of_two_pods_has_the_name_of_its_first_pod() -> None:
    two = template(task("lighthouse", replicas=2, gpus=0))
    made = raw()
    made["spec"]["replicatedJobs"][0]["templateSpec"] = two
    addresses = {env["TORCHFT_LIGHTHOUSE"] for env in environments(made)["hj-trainer-0"]}
    assert all("//hj-lighthouse-0-lighthouse-0." in address for address in addresses)
    assert addresses


def test_a_sub_job_without_pods_is_no_replica_group_and_does_not_fail_the_others() -> None:
    none = group("none", replicas=1, templateSpec=template(task(replicas=0)))
    found = parse_hyperjob(hyperjob(group("a", replicas=2, gpus=1), none, plugins={"torchft": []}))
    sub_jobs = wanted(found)
    whole = world_of(found, sub_jobs, attempts={}, clusters={}, generation=0, minimum=3)
    numbers = {}
    for each in sub_jobs:
        made, _ = equip(each.size.template, each.name, whole)
        variables = made["tasks"][0]["template"]["spec"]["containers"][0]["env"]
        told = {item["name"]: item.get("value") for item in variables}
        numbers[each.name] = told.get("REPLICA_GROUP_ID"), told.get("NUM_REPLICA_GROUPS")
    assert numbers == {"hj-a-0": ("0", "2"), "hj-a-1": ("1", "2"), "hj-none-0": (None, None)}
