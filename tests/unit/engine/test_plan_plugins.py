"""Plugins in a plan: which world a sub-job is made for, and when it is made again."""

from dataclasses import replace
from typing import Any

import pytest

from hyperjob_core.api.names import WORLD
from hyperjob_engine.lifecycle.finished import trainers
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild, DeleteChild, OpenGate, Plan, Repin
from hyperjob_engine.plan import plan
from hyperjob_engine.plugins.hook import equip, generation_of
from hyperjob_engine.plugins.world import world_of
from tests.support.podenv import pods_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.plans import wanted

BOTH = cluster("a"), cluster("b")
ONE_EACH = {"env": [], "pytorch": []}


def raw(plugins: Object | None = None, **spec: Any) -> Object:
    """Two sub-jobs that the two clusters have room for, one in each."""
    return hyperjob(
        group(replicas=2, gpus=60), plugins=ONE_EACH if plugins is None else plugins, **spec
    )


def creations(decided: Plan) -> list[CreateChild]:
    return [action for action in decided.actions if isinstance(action, CreateChild)]


def deletions(decided: Plan) -> list[DeleteChild]:
    return [action for action in decided.actions if isinstance(action, DeleteChild)]


def stored(creation: CreateChild, *, attempt: int = 0, **status: Any) -> Object:
    """Return the vcjob of a creation as the API server has it."""
    metadata = {**creation.job["metadata"], "uid": f"uid-{creation.name}", "resourceVersion": "1"}
    if attempt:
        labels = metadata["labels"] | {"training.volcano.sh/attempt": str(attempt)}
        metadata = {**metadata, "labels": labels}
    return {**creation.job, "metadata": metadata} | ({"status": status} if status else {})


def pinned(creation: CreateChild) -> Object:
    return policy(creation.name, cluster=creation.cluster)


def records(*attempts: int) -> Object:
    return {
        "jobs": [
            job_status(index, phase="Placed", attempt=attempt)
            for index, attempt in enumerate(attempts)
        ]
    }


def env(creation: CreateChild) -> dict[str, str]:
    return pods_of(stored(creation))[0].env


def mark(creation: CreateChild) -> str:
    return str(creation.job["metadata"]["annotations"][WORLD])


def test_sub_jobs_are_told_of_each_other_where_they_are_placed() -> None:
    first, second = creations(plan(observed(raw(), clusters=BOTH)))
    assert [env(made)["HYPERJOB_CLUSTER"] for made in (first, second)] == ["a", "b"]
    assert {env(made)["PET_NNODES"] for made in (first, second)} == {"120"}
    assert ".a.hj-trainer-0." in env(second)["PET_RDZV_ENDPOINT"]


def test_the_export_of_a_service_goes_with_its_sub_job() -> None:
    made, _ = creations(plan(observed(raw(), clusters=BOTH)))
    assert made.export["metadata"]["labels"] == made.policy["metadata"]["labels"]
    assert made.policy["spec"]["resourceSelectors"][1:] == [
        {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ServiceExport",
            "namespace": "default",
            "name": "hj-trainer-0",
        }
    ]


def test_without_plugins_nothing_is_added() -> None:
    made, _ = creations(plan(observed(raw({}), clusters=BOTH)))
    assert made.export is None
    assert "annotations" not in made.job["metadata"]
    assert "env" not in made.job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert len(made.policy["spec"]["resourceSelectors"]) == 1


def test_what_stands_is_left_alone() -> None:
    made = creations(plan(observed(raw(), clusters=BOTH)))
    objects = [document for item in made for document in (stored(item), pinned(item))]
    assert plan(observed(raw(), *objects, clusters=BOTH)).actions == ()


@pytest.mark.parametrize("names", [None, [], ["a", "b"]])
def test_a_vcjob_stays_while_its_policy_names_no_single_cluster(names: list[str] | None) -> None:
    """Its binding names the cluster: the vcjobs speak of that, whatever the policy now says."""
    first, second = creations(plan(observed(raw(), clusters=BOTH)))
    loose = pinned(first)
    loose["spec"]["placement"] = {"clusterAffinity": {"clusterNames": names}}
    decided = plan(
        observed(
            raw(),
            *(stored(item) for item in (first, second)),
            *(() if names is None else (loose,)),
            pinned(second),
            binding(first.name, cluster="a"),
            binding(second.name, cluster="b"),
            clusters=BOTH,
        )
    )
    assert deletions(decided) == []


def test_a_sub_job_goes_with_the_export_of_its_service() -> None:
    made = creations(plan(observed(raw({"svc": []}), clusters=BOTH)))
    objects = [document for item in made for document in (stored(item), pinned(item))]
    fewer = hyperjob(group(replicas=1, gpus=60), plugins={"svc": []})
    (gone,) = deletions(plan(observed(fewer, *objects, clusters=BOTH)))
    assert gone.name == "hj-trainer-1"
    assert gone.export["metadata"]["name"] == "hj-trainer-1"


def moved(*, sent: bool = False, marked: bool = True, plugins: Object | None = None) -> Plan:
    """Plan for two sub-jobs of which the first was moved from `a` to `c` after both were made.

    Not `marked`: neither vcjob bears the mark of its world.
    """
    clusters = (*BOTH, cluster("c"))
    made = creations(plan(observed(raw(plugins), clusters=clusters)))
    first, second = made
    status = vcjob_status("Pending") if sent else None
    return plan(
        observed(
            raw(plugins),
            *(stored(item) if marked else unmarked(stored(item)) for item in made),
            policy(first.name, cluster="c"),
            pinned(second),
            binding(first.name, cluster="c", status=status),
            binding(second.name, cluster=second.cluster, status=status),
            clusters=clusters,
        )
    )


def test_vcjobs_that_name_another_cluster_are_made_again_before_they_are_sent() -> None:
    gone = deletions(moved())
    assert [(item.name, item.policy_uid, item.export) for item in gone] == [
        ("hj-trainer-0", None, None),
        ("hj-trainer-1", None, None),
    ]


def test_vcjobs_that_were_sent_are_left_alone() -> None:
    assert deletions(moved(sent=True)) == []


def test_vcjobs_that_bear_no_mark_of_a_world_are_left_alone() -> None:
    assert deletions(moved(marked=False)) == []


def unmarked(job: Object) -> Object:
    annotations = {k: v for k, v in job["metadata"]["annotations"].items() if k != WORLD}
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(
    "plugins", [{"svc": []}, {"pytorch": [], "svc": ["--name-pattern={pod}.{service}.example.com"]}]
)
def test_vcjobs_that_name_no_cluster_may_move(plugins: Object) -> None:
    assert deletions(moved(plugins=plugins)) == []


def test_a_move_and_what_it_makes_outdated_come_in_one_plan() -> None:
    made = creations(plan(observed(raw(), clusters=BOTH)))
    objects = [document for item in made for document in (stored(item), pinned(item))]
    lost = (cluster("a", unusable="is not Ready"), *BOTH[1:], cluster("c"))
    decided = plan(observed(raw(), *objects, clusters=lost))
    assert [action.cluster for action in decided.actions if isinstance(action, Repin)] == ["c"]
    assert {action.name for action in deletions(decided)} == {"hj-trainer-0", "hj-trainer-1"}


def test_no_gate_opens_for_what_is_made_again() -> None:
    gated = QueueAdmission.VOLCANO_GLOBAL
    made = creations(plan(observed(raw(), clusters=BOTH, admission=gated)))
    released = {"dispatching": True, "scheduling": False}

    def decide(first_cluster: str) -> Plan:
        pins = [first_cluster, made[1].cluster]
        return plan(
            observed(
                raw(),
                *(stored(item) for item in made),
                *(policy(item.name, cluster=pin) for item, pin in zip(made, pins, strict=True)),
                *(
                    binding(item.name, cluster=pin, gate="held", suspension=released)
                    for item, pin in zip(made, pins, strict=True)
                ),
                clusters=(*BOTH, cluster("c")),
                admission=gated,
            )
        )

    assert [type(action) for action in decide("a").actions] == [OpenGate, OpenGate]
    assert [type(action) for action in decide("c").actions] == [DeleteChild, DeleteChild]


def test_a_sub_job_waits_for_the_cluster_of_a_host_that_it_names() -> None:
    """Fewer than all may start, and the first, which holds the store, has no room."""
    big = group("big", replicas=1, gpus=500)
    small = group("small", replicas=1, gpus=1)
    decided = plan(
        observed(hyperjob(big, small, plugins={"pytorch": []}, minAvailable=1), clusters=BOTH)
    )
    assert creations(decided) == []
    waiting = decided.status["jobs"][1]
    assert (waiting["reason"], waiting["message"]) == (
        "WaitingForHost",
        "waits for the cluster of hj-big-0, whose pods it looks up",
    )


def test_a_world_too_large_to_be_told_is_an_error_of_the_spec() -> None:
    launcher = group("a", replicas=1, templateSpec=template(task("master")))
    workers = group("b", replicas=1, templateSpec=template(task("worker", 3000, gpus=0)))
    small = cluster("a")
    roomy = replace(small, free={name: 10 * amount for name, amount in small.free.items()})
    decided = plan(observed(hyperjob(launcher, workers, plugins={"mpi": []}), clusters=(roomy,)))
    told = decided.status["jobs"][0]
    assert told["reason"] == "InvalidSpec"
    assert told["message"].startswith("plugin mpi: MPI_HOST would be longer than")


class TestGeneration:
    """Restarted together, sub-jobs meet in a new world; one alone joins the world that stands."""

    def made(self, status: Object, *objects: Object) -> list[CreateChild]:
        return creations(plan(observed(raw(status=status), *objects, clusters=BOTH)))

    def test_the_first_world_is_0(self) -> None:
        assert {generation_of(mark(made)) for made in self.made({})} == {0}

    def test_all_restarted_meet_in_a_new_world(self) -> None:
        made = self.made(records(1, 1))
        assert {env(item)["PET_RDZV_ID"] for item in made} == {"hj-hj-uid-1"}
        assert [env(item)["HYPERJOB_ATTEMPT"] for item in made] == ["1", "1"]

    def test_one_restarted_joins_the_others(self) -> None:
        first, second = self.made({})
        running = stored(first, **vcjob_status("Running"))
        (again,) = self.made(records(0, 2), running, pinned(first))
        assert again.name == second.name
        assert env(again)["PET_RDZV_ID"] == "hj-hj-uid-0"
        assert env(again)["HYPERJOB_ATTEMPT"] == "2"

    def test_one_after_the_other_still_meet(self) -> None:
        first, second = self.made({})
        running = stored(first, **vcjob_status("Running"))
        (again,) = self.made(records(0, 1), running, pinned(first))
        stands = stored(again, attempt=1, **vcjob_status("Running"))
        (other,) = self.made(records(1, 1), stands, pinned(second))
        assert {generation_of(mark(item)) for item in (again, other)} == {0}

    def test_what_an_earlier_attempt_left_is_no_world(self) -> None:
        """The old vcjob of the first is still there, and will be deleted."""
        first, _ = self.made({})
        old = stored(first, **vcjob_status("Running"))
        made = self.made(records(1, 1), old, pinned(first))
        assert {generation_of(mark(item)) for item in made} <= {1}


@pytest.mark.parametrize(
    ("text", "generation"), [("3.00ff", 3), ("", None), ("x.1", None), ("7", None), ("-1.a", None)]
)
def test_a_mark_of_another_form_is_nobodys(text: str, generation: int | None) -> None:
    assert generation_of(text) == generation


CLUSTERS = cluster("a"), cluster("b"), cluster("c")


def torchft(*arguments: str, **spec: Any) -> Object:
    lighthouse = group("lighthouse", replicas=1, templateSpec=template(task("lighthouse", gpus=0)))
    trainer = group(replicas=3, gpus=2)
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


def test_each_sub_job_is_a_replica_group_and_a_world_of_torchrun() -> None:
    made = environments(torchft())
    for index in range(3):
        name = f"hj-trainer-{index}"
        for env in made[name]:
            assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "1")
            assert env["PET_RDZV_ENDPOINT"] == f"{name}-worker-0.{name}:29400"
            assert env["REPLICA_GROUP_ID"] == str(index)
            assert env["NUM_REPLICA_GROUPS"] == "3"
            assert env["HYPERJOB_QUORUM"] == "2"
            assert env["TORCHFT_QUORUM_RETRIES"] == "100"


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("", "hj-lighthouse-0.default.svc.clusterset.local"),
        ("{pod}.{cluster}.{service}.mesh", "hj-lighthouse-0.mesh"),
        ("{service}.{namespace}.example", "hj-lighthouse-0.default.example"),
        ("{pod}.example", "hj-lighthouse-0-lighthouse-0.example"),
        ("{pod}-x.{service}.example", "hj-lighthouse-0-lighthouse-0-x.hj-lighthouse-0.example"),
    ],
)
def test_the_lighthouse_has_one_name_for_all_sub_jobs_which_follows_the_pattern(
    pattern: str, host: str
) -> None:
    made = torchft()
    if pattern:
        made["spec"]["plugins"]["svc"] = [f"--name-pattern={pattern}"]
    trainers = [pods for name, pods in environments(made).items() if "trainer" in name]
    assert {env["TORCHFT_LIGHTHOUSE"] for pods in trainers for env in pods} == {
        f"http://{host}:29510"
    }


def test_the_pods_of_the_lighthouse_are_told_the_quorum_only() -> None:
    (env,) = environments(torchft())["hj-lighthouse-0"]
    assert env["HYPERJOB_QUORUM"] == "2"
    assert not {"TORCHFT_LIGHTHOUSE", "REPLICA_GROUP_ID", "PET_NNODES"} & env.keys()


def test_a_lighthouse_outside_is_told_as_it_is() -> None:
    made = environments(torchft("--address=http://outside:1"))
    assert made["hj-trainer-1"][0]["TORCHFT_LIGHTHOUSE"] == "http://outside:1"


def test_the_port_of_the_lighthouse_is_not_that_of_torchrun() -> None:
    made = environments(torchft("--lighthouse=lighthouse", "--port=4000", "--timeout=60"))
    env = made["hj-trainer-0"][0]
    assert env["TORCHFT_LIGHTHOUSE"].endswith(":4000")
    assert env["PET_RDZV_ENDPOINT"].endswith(":29400")
    assert "join_timeout=60" in env["PET_RDZV_CONF"]


def test_the_training_completes_while_the_lighthouse_runs() -> None:
    objects = child("hj-lighthouse-0", "Running")
    for index in range(3):
        objects += child(index, "Completed")
    seen = observed(torchft(status={"state": {"phase": "Running"}}), *objects, clusters=CLUSTERS)
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
        torchft(status={"state": {"phase": "Running"}}),
        *objects,
        clusters=(cluster("a"), *away),
    )
    decided = plan(seen)
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == ("Degraded", "QuorumNotMet")
    assert "1 of 3 sub-jobs run" in state["message"]


def test_a_replicated_job_trains_unless_it_runs_the_lighthouse_alone() -> None:
    beside = template(task("lighthouse", gpus=0), task("worker", replicas=2))
    made = torchft()
    made["spec"]["replicatedJobs"].append(group("both", templateSpec=beside))
    assert trainers(parse_hyperjob(made)) == {"trainer", "both"}


def test_a_lighthouse_of_two_pods_has_the_name_of_its_first_pod() -> None:
    two = template(task("lighthouse", replicas=2, gpus=0))
    made = torchft()
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
