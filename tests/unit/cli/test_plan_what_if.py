"""`hyperjob plan --what-if`: who would start, wait, move or stop with other queues and clusters."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hyperjob.cli.plan import plan
from hyperjob.cli.plan.whatif import as_table
from hyperjob.client.plan.whatif import HyperJobChange, Prospect, what_if
from hyperjob.client.plan.world import World
from hyperjob_controller.options import Options
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.cli.objects import GPU, queue
from tests.unit.cli.test_plan_queues import Object, existing, live, member


def having(
    *hyperjobs: Object,
    clusters: list[Object],
    running: dict[str, str],
    queues: list[Object] | None = None,
) -> World:
    """Build a world in which the sub-jobs of some HyperJobs run on clusters, by name."""
    jobs, policies = [], []
    for each in hyperjobs:
        name = each["metadata"]["name"]
        if name not in running:
            continue
        metadata = {
            "name": f"{name}-trainer-0",
            "namespace": "ml",
            "uid": f"job-{name}",
            "labels": {
                "volcano.sh/hyperjob-name": name,
                "volcano.sh/replicatedjob-name": "trainer",
            },
            "ownerReferences": [
                {"kind": "HyperJob", "name": name, "uid": name, "controller": True}
            ],
        }
        spec = each["spec"]["replicatedJobs"][0]["templateSpec"]
        pin = {"placement": {"clusterAffinity": {"clusterNames": [running[name]]}}}
        jobs.append({"metadata": metadata, "spec": spec})
        policies.append({"metadata": metadata, "spec": pin})
    return World(
        now=datetime(2026, 1, 2, tzinfo=UTC),
        objects={
            CLUSTERS: clusters,
            QUEUES: queues or [queue()],
            HYPERJOBS: hyperjobs,
            VCJOBS: jobs,
            PROPAGATION_POLICIES: policies,
        },
        options=Options(queue_admission=QueueAdmission.BUILTIN),
    )


def changes(world: World, changed: World) -> dict[str, HyperJobChange]:
    return {each.name: each.change for each in what_if(world, changed)[1]}


def one(world: World, changed: World, name: str) -> Prospect:
    return next(each for each in what_if(world, changed)[1] if each.name == name)


def test_a_larger_capability_lets_one_start_and_another_wait_as_before() -> None:
    world = live(
        existing("one", gpus=16),
        existing("two", gpus=16),
        existing("large", gpus=128),
        queues=[queue(capability={GPU: 16})],
    )
    changed = world.with_queues([queue(capability={GPU: 32})])
    assert changes(world, changed) == {
        "one": HyperJobChange.NONE,  # it starts anyway
        "two": HyperJobChange.STARTS,
        "large": HyperJobChange.WAITS,
    }
    assert dict(one(world, changed, "two").then) == {"two-trainer-0": "a"}


def test_a_smaller_capability_keeps_one_waiting() -> None:
    world = live(existing("one", gpus=16), queues=[queue(capability={GPU: 16})])
    found = one(world, world.with_queues([queue(capability={GPU: 8})]), "one")
    assert found.change is HyperJobChange.NO_LONGER_STARTS
    assert "needs more than queue default may ever use" in found.message


def test_an_added_cluster_lets_one_start_on_it() -> None:
    world = live(existing("one", gpus=64), existing("two", gpus=64))
    changed = world.with_clusters([member("b")])
    assert changes(world, changed) == {"one": HyperJobChange.NONE, "two": HyperJobChange.STARTS}


def test_a_cluster_of_the_same_name_keeps_what_runs_there() -> None:
    hyperjobs = existing("run", gpus=64), existing("more", gpus=64)
    world = having(*hyperjobs, clusters=[member()], running={"run": "a"})
    larger = world.with_clusters([member(gpus=128)])
    assert changes(world, larger) == {"run": HyperJobChange.NONE, "more": HyperJobChange.STARTS}
    same = world.with_clusters([member()])
    assert changes(world, same) == {"run": HyperJobChange.NONE, "more": HyperJobChange.WAITS}


def test_what_runs_on_a_drained_cluster_moves_where_there_is_room_and_else_stops() -> None:
    run = existing("run", gpus=64)
    world = having(run, clusters=[member(), member("b")], running={"run": "a"})
    found = one(world, world.without(["a"]), "run")
    assert found.change is HyperJobChange.MOVES
    assert (dict(found.now), dict(found.then)) == ({"run-trainer-0": "a"}, {"run-trainer-0": "b"})
    small = having(run, clusters=[member(), member("b", gpus=32)], running={"run": "a"})
    stopped = one(small, small.without(["a"]), "run")
    assert (stopped.change, dict(stopped.then)) == (HyperJobChange.STOPS, {})
    assert stopped.message.startswith("first of 1 in queue default")


def test_one_that_was_about_to_start_waits_where_another_moves_there() -> None:
    hyperjobs = existing("early", gpus=64), existing("late", gpus=64)
    clusters = [member(), member("b")]
    world = having(*hyperjobs, clusters=clusters, running={"early": "a"})
    assert changes(world, world.without(["a"])) == {
        "early": HyperJobChange.MOVES,
        "late": HyperJobChange.NO_LONGER_STARTS,
    }


def test_a_queue_that_becomes_reclaimable_gives_back_what_another_queue_asks_for() -> None:
    hyperjobs = existing("borrows", gpus=64, queue="a"), existing("owns", gpus=32, queue="b")
    queues = [queue("a", weight=1, reclaimable=False), queue("b", weight=1)]
    world = having(*hyperjobs, clusters=[member()], running={"borrows": "a"}, queues=queues)
    changed = world.with_queues([queue("a", weight=1, reclaimable=True), queue("b", weight=1)])
    found = {each.name: each for each in what_if(world, changed)[1]}
    assert found["borrows"].change is HyperJobChange.GIVES_BACK
    assert found["borrows"].message == "releases its accelerators for ml/owns"
    assert found["owns"].change is HyperJobChange.WAITS
    assert "borrows" in found["owns"].message


def test_the_table_counts_changes_and_leaves_out_what_stays() -> None:
    hyperjobs = existing("run", gpus=16), existing("two", gpus=64)
    world = having(*hyperjobs, clusters=[member()], running={"run": "a"})
    changed = world.with_clusters([member("b")])
    lines = [line.plain for line in as_table(what_if(world, changed)[1])]
    assert lines[0] == "After the changes: 1 start, 1 do not change"
    assert lines[2].split()[:4] == ["ml/two", "default", "Starts", "<none>"]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--drain", "gpu-east"], "--drain and --add-clusters need --what-if"),
        ([], "give a file with -f, or --what-if"),
        (["--what-if"], "--what-if needs a change"),
        (["--what-if", "--drain", "nowhere"], "cluster 'nowhere' not found"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: list[str], text: str) -> None:
    clusters = Path(__file__).parents[3] / "examples/clusters.yaml"
    result = CliRunner().invoke(plan, [*arguments, "--clusters", str(clusters)])
    assert result.exit_code != 0
    assert text in f"{result.output}{result.exception}"


def test_hyperjobs_of_the_files_are_judged_in_the_changed_world(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    wanted = existing("new", gpus=128)
    wanted.pop("status")
    wanted["metadata"] = {"name": "new", "namespace": "ml"}
    path.write_text(yaml.safe_dump(wanted))
    clusters = Path(__file__).parents[3] / "examples/clusters.yaml"
    given = ["-f", str(path), "--clusters", str(clusters)]
    result = CliRunner().invoke(plan, [*given, "--what-if", "--drain", "gpu-west", "-o", "json"])
    answer = json.loads(result.output)
    (item,) = answer["items"]
    assert item["jobs"][0]["cluster"] == "gpu-east"
    assert answer["whatIf"] == []


@pytest.mark.parametrize(("drained", "moves"), [("a", True), ("b", False)])
def test_a_binding_of_another_kind_with_the_name_of_a_sub_job_is_not_its_own(
    drained: str, moves: bool
) -> None:
    run = existing("run", gpus=64)
    world = having(run, clusters=[member(), member("b")], running={"run": "a"})
    kinds = (("batch.volcano.sh/v1alpha1", "Job", "a"), ("apps/v1", "Deployment", "b"))
    bindings = [
        {
            "metadata": {"name": f"run-trainer-0-{kind.lower()}", "namespace": "ml"},
            "spec": {
                "resource": {
                    "apiVersion": version,
                    "kind": kind,
                    "namespace": "ml",
                    "name": "run-trainer-0",
                },
                "clusters": [{"name": cluster}],
            },
        }
        for version, kind, cluster in kinds
    ]
    world = replace(world, objects={**world.objects, RESOURCE_BINDINGS: bindings})
    after = world.without([drained])
    assert (one(world, after, "run").change is HyperJobChange.MOVES) is moves
    assert bindings[1] in after.of(RESOURCE_BINDINGS)
