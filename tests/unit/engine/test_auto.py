import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.expansion.members import present_indices
from hyperjob_engine.model.observed import QueueVerdict
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    GPU,
    Object,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    labels,
    observed,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.world import World

MASTER = task("master", 1, 1)


def auto(accelerators: int = 128, name: str = "trainer", gpus: int = 1, **fields: object) -> Object:
    """One replicatedJob that is split automatically, with pods of `gpus` GPUs each."""
    split = {"mode": "auto", "accelerators": accelerators, "acceleratorType": GPU}
    fields.setdefault("templateSpec", template(task(replicas=4, gpus=gpus)))
    return group(name, replicas=1, splitPolicy=split, **fields)


def world(*groups: Object, clusters: dict[str, int] | None = None, **spec: object) -> World:
    free = {"a": 100, "b": 60} if clusters is None else clusters
    made = World(clusters={name: cluster(name, gpus) for name, gpus in free.items()})
    made.hyperjobs["hj"] = hyperjob(*(groups or (auto(),)), **spec)
    return made


def sizes(made: World) -> dict[str, tuple[str, int]]:
    """Cluster and accelerators by sub-job, as the objects say."""
    return {
        name: (
            made.policies[name]["spec"]["placement"]["clusterAffinities"][0]["clusterNames"][0],
            sum(
                task["replicas"] * int(gpus)
                for task in raw["spec"]["tasks"]
                for container in task["template"]["spec"]["containers"]
                for gpus in [container["resources"]["requests"].get(GPU, 0)]
            ),
        )
        for name, raw in sorted(made.jobs.items())
    }


def status_of(made: World) -> Object:
    return made.hyperjobs["hj"]["status"]


def test_sub_jobs_are_made_where_there_is_room_and_recorded() -> None:
    made = world(auto(gpus=8))
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("a", 72), "hj-trainer-1": ("b", 56)}
    records = [(each["name"], each["accelerators"]) for each in status_of(made)["jobs"]]
    assert records == [("hj-trainer-0", 72), ("hj-trainer-1", 56)]
    assert status_of(made)["splitCount"] == 2


def test_a_master_stays_in_every_sub_job() -> None:
    made = world(auto(130, templateSpec=template(MASTER, task(replicas=4, gpus=8))))
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("a", 73), "hj-trainer-1": ("b", 57)}
    assert [raw["spec"]["tasks"][0]["replicas"] for raw in made.jobs.values()] == [1, 1]


def test_it_is_decided_with_the_capacity_of_the_day() -> None:
    made = world(clusters={"a": 100})
    made.settle()
    assert made.jobs == {}
    made.clusters["b"] = cluster("b", 128)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("b", 128)}


def test_what_stands_is_kept_when_more_room_comes() -> None:
    made = world()
    made.settle()
    before = sizes(made)
    made.clusters["c"] = cluster("c", 1000)
    made.settle()
    assert sizes(made) == before


def test_a_sub_job_that_vanished_comes_back_in_its_size() -> None:
    made = world()
    made.settle()
    del made.jobs["hj-trainer-1"], made.policies["hj-trainer-1"]
    made.clusters["c"] = cluster("c", 1000)
    made.settle()
    assert sizes(made)["hj-trainer-0"] == ("a", 68)
    assert sizes(made)["hj-trainer-1"][1] == 60


def test_it_is_decided_again_when_nothing_of_it_stands() -> None:
    made = world()
    made.settle()
    made.jobs.clear()
    made.policies.clear()
    made.bindings.clear()
    made.clusters["c"] = cluster("c", 200)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("c", 128)}
    assert status_of(made)["splitCount"] == 1


@pytest.mark.parametrize("stale", [False, True], ids=["no record", "an older record"])
def test_a_controller_killed_between_two_creations_completes_the_split(stale: bool) -> None:
    made = world()
    if stale:
        old = [job_status(i, accelerators=n) for i, n in enumerate([100, 20, 8])]
        made.hyperjobs["hj"]["status"] = {"jobs": [each | {"phase": "Unplaced"} for each in old]}
    first = next(a for a in plan(made.observe("hj")).actions if isinstance(a, CreateChild))
    made._apply("hj", first)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("a", 68), "hj-trainer-1": ("b", 60)}


def test_an_overflow_is_told() -> None:
    made = world(auto(clusterNames=["a"]))
    created = [a for a in plan(made.observe("hj")).actions if isinstance(a, CreateChild)]
    assert [(action.cluster, action.overflow) for action in created] == [
        ("a", ""),
        ("b", f"a has room for 100 of 128 {GPU}"),
    ]


def test_several_splits_are_made_together_or_not_at_all() -> None:
    made = world(auto(100), auto(70, "second"))
    made.settle()
    assert made.jobs == {}
    messages = {each["name"]: each["message"] for each in status_of(made)["jobs"]}
    assert messages == {
        "hj-trainer-0": "has room on a, waits until 2 sub-jobs can be placed together",
        "hj-second-0": f"needs 70 {GPU}, 60 fit on 1 cluster: b has room for 60;"
        f" a lacks 1 {GPU} (0 free)",
    }
    made.clusters["c"] = cluster("c", 70)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("a", 100), "hj-second-0": ("c", 70)}


def test_a_split_that_is_enough_for_the_gang_does_not_wait_for_another() -> None:
    made = world(auto(100), auto(70, "second"), minAvailable=1)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("a", 100)}


def test_a_split_that_waits_for_another_group_holds_back_nobody() -> None:
    first = group("first", replicas=1, gpus=60)
    after = auto(128, dependsOn=[{"name": "first", "status": "Complete"}])
    made = world(first, after)
    made.settle()
    assert sizes(made) == {"hj-first-0": ("b", 60)}
    made.jobs["hj-first-0"]["status"] = vcjob_status("Completed")
    made.settle()
    assert {name: gpus for name, (_, gpus) in sizes(made).items()} == {
        "hj-first-0": 60,
        "hj-trainer-0": 68,
        "hj-trainer-1": 60,
    }


def test_sizes_are_kept_while_it_is_suspended_and_decided_again_after() -> None:
    made = world()
    made.settle()
    made.hyperjobs["hj"]["spec"]["suspend"] = True
    made.settle()
    assert made.jobs == {}
    assert [each["accelerators"] for each in status_of(made)["jobs"]] == [68, 60]
    made.clusters["c"] = cluster("c", 128)
    made.hyperjobs["hj"]["spec"]["suspend"] = False
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("c", 128)}


def test_a_restart_of_the_whole_decides_again() -> None:
    made = world(failurePolicy={"maxRestarts": 1})
    made.settle()
    made.clusters["c"] = cluster("c", 128)
    made.jobs["hj-trainer-1"]["status"] = vcjob_status("Failed")
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("c", 128)}
    assert status_of(made)["jobs"][0]["attempt"] == 1


def test_fewer_sub_jobs_than_min_available_all_count() -> None:
    made = world(auto(32), minAvailable=3)
    made.settle()
    assert sizes(made) == {"hj-trainer-0": ("b", 32)}
    assert status_of(made)["state"]["phase"] == "Starting"


@pytest.mark.parametrize(
    ("admitted", "made"),
    [({"hj-trainer-0"}, 2), ({"hj-trainer-1"}, 2), ({"hj-trainer-x-0", "hj-other-0"}, 0)],
)
def test_a_queue_admits_a_split_as_a_whole(admitted: set[str], made: int) -> None:
    verdict = QueueVerdict(admitted=frozenset(admitted), reason="r")
    decided = plan(replace(world().observe("hj"), verdict=verdict))
    assert len(decided.actions) == made


def test_a_sub_job_is_not_resized_to_a_stale_record() -> None:
    made = world()
    made.settle()
    made.hyperjobs["hj"]["status"]["jobs"][0]["accelerators"] = 8
    made.settle()
    assert sizes(made)["hj-trainer-0"] == ("a", 68)


@given(st.data())
def test_the_sum_is_exact_whenever_it_comes_to_rest(data: st.DataObject) -> None:
    per_pod, fixed = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 1))
    tasks = [*([MASTER] if fixed else []), task(replicas=4, gpus=per_pod)]
    wanted = fixed + per_pod * data.draw(st.integers(1, 12))
    made = world(
        auto(wanted, templateSpec=template(*tasks)),
        clusters={name: data.draw(st.integers(0, 30)) for name in "abc"},
    )
    if data.draw(st.booleans()):
        made.hyperjobs["hj"]["spec"]["maxDomains"] = data.draw(st.integers(1, 3))
    for _ in range(data.draw(st.integers(1, 4))):
        made.settle()
        found = sizes(made)
        assert not found or sum(gpus for _, gpus in found.values()) == wanted
        again = copy.deepcopy(made)
        assert plan(made.observe("hj")) == plan(again.observe("hj"))
        match data.draw(st.sampled_from(["lose one", "lose all", "grow", "crash"])):
            case "lose one" if made.jobs:
                gone = data.draw(st.sampled_from(sorted(made.jobs)))
                del made.jobs[gone], made.policies[gone]
            case "lose all":
                made.jobs.clear()
                made.policies.clear()
            case "grow":
                name = data.draw(st.sampled_from("abcd"))
                made.clusters[name] = cluster(name, 40)
            case "crash":
                made.hyperjobs["hj"]["status"] = {}
            case _:
                pass
    assert not any(isinstance(a, DeleteChild) for a in plan(made.observe("hj")).actions)


def test_a_group_that_finds_no_room_keeps_no_later_one_from_its_own() -> None:
    made = world(auto(300, "first"), auto(60, "second"), minAvailable=1)
    made.settle()
    assert sizes(made) == {"hj-second-0": ("b", 60)}


def test_a_split_leaves_room_for_the_missing_sub_jobs_of_other_groups_where_it_can() -> None:
    plain = group(
        "plain", replicas=1, gpus=100, clusterNames=["a"], clusterPolicy="Required"
    )  # the split fits most closely where the other group may be alone
    made = world(plain, auto(100), clusters={"a": 100, "b": 128})
    made.settle()
    assert sizes(made) == {"hj-plain-0": ("a", 100), "hj-trainer-0": ("b", 100)}


def test_a_split_that_waits_for_its_old_sub_jobs_takes_no_room_from_another() -> None:
    seen = observed(
        hyperjob(auto(60, "first"), auto(60, "second"), minAvailable=1),
        job("hj-first-0", gpus=60, deleting=True, marked=labels(rj="first")),
        clusters=(cluster("a", 100),),
    )
    created = [action.name for action in plan(seen).actions if isinstance(action, CreateChild)]
    assert created == ["hj-second-0"]


def test_indices_are_read_from_the_names_of_our_own_vcjobs_alone() -> None:
    seen = observed(
        hyperjob(auto()),
        job("hj-other-3"),
        job("hj-trainer-1", owners=[{"kind": "Job", "name": "x", "uid": "x", "controller": True}]),
        job("hj-trainer-01"),
        job("hj-trainer-2"),
    )
    assert present_indices(seen, "trainer") == {2}


@pytest.mark.parametrize("leaving", [0, 1])
def test_an_automatic_split_is_not_decided_while_any_sub_job_of_it_is_deleted(leaving: int) -> None:
    recorded = [
        job_status(index, accelerators=size, cluster=where)
        for index, (size, where) in enumerate([(68, "a"), (60, "b")])
    ]
    raw = hyperjob(auto(), status={"jobs": recorded})
    name = f"hj-trainer-{leaving}"
    objects = [job(name, gpus=60, deleting=True), policy(name)]
    more_room = (cluster("a", 128), cluster("b", 128))
    decided = plan(observed(raw, *objects, clusters=more_room))
    assert not [item for item in decided.actions if isinstance(item, CreateChild)]
    assert [each["accelerators"] for each in decided.status["jobs"]] == [68, 60]
