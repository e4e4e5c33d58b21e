"""What plugins write into the templates of sub-jobs, seen as a pod of each would see it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.plugins import PLUGINS
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.plugins.hook import equip, export_of
from hyperjob_engine.plugins.world import UnknownHostError, World, world_of
from tests.support.podenv import Pod, pods_of
from tests.unit.engine.builders import UID, group, hyperjob, job, task, template
from tests.unit.engine.plans import wanted as sub_jobs_of

Object = dict[str, Any]


def parsed(*groups: Object, plugins: Object, **spec: Any) -> tuple[HyperJob, list[SubJob]]:
    found = parse_hyperjob(hyperjob(*groups, plugins=plugins, **spec))
    return found, sub_jobs_of(found)


def world(
    found: HyperJob, wanted: list[SubJob], *, generation: int = 0, minimum: int | None = None
) -> World:
    clusters = {sub_job.name: f"member{number}" for number, sub_job in enumerate(wanted, start=1)}
    attempts = {name: record.attempt for name, record in found.records.items()}
    return world_of(
        found,
        wanted,
        attempts=attempts,
        clusters=clusters,
        generation=generation,
        minimum=minimum or len(wanted),
    )


def run(*groups: Object, plugins: Object, minimum: int | None = None, **spec: Any) -> list[Pod]:
    """Return all pods of a HyperJob, as Volcano makes them in their members."""
    found, wanted = parsed(*groups, plugins=plugins, **spec)
    whole = world(found, wanted, minimum=minimum)
    pods = []
    for sub_job in wanted:
        spec, _ = equip(sub_job.size.template, sub_job.name, whole)
        pods += pods_of(job(sub_job.name, spec=spec))
    return pods


def test_env_tells_a_pod_its_place() -> None:
    two = [
        group("a", replicas=1, templateSpec=template(task("master"), task("worker", replicas=2))),
        group("b", replicas=2, gpus=3),
    ]
    last = run(*two, plugins={"env": []})[-1]
    assert last.env == {
        "HYPERJOB_NAME": "hj",
        "HYPERJOB_JOB_NAME": "hj-b-1",
        "HYPERJOB_REPLICATED_JOB": "b",
        "HYPERJOB_JOB_INDEX": "2",
        "HYPERJOB_JOB_COUNT": "3",
        "HYPERJOB_ATTEMPT": "0",
        "HYPERJOB_CLUSTER": "member3",
        "HYPERJOB_WORLD_SIZE": "9",
        "HYPERJOB_RANK_OFFSET": "6",
        "HYPERJOB_TASK_INDEX": "2",
    }


def test_pytorch_leads_all_pods_to_the_first() -> None:
    pods = run(group(replicas=2, gpus=2), plugins={"pytorch": []})
    inside = "hj-trainer-0-worker-0.hj-trainer-0:29400"
    outside = "hj-trainer-0-worker-0.member1.hj-trainer-0.default.svc.clusterset.local:29400"
    assert [pod.env["PET_RDZV_ENDPOINT"] for pod in pods] == [inside] * 2 + [outside] * 2
    shared = {
        "PET_NNODES": "4",
        "PET_NPROC_PER_NODE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": f"hj-{UID}-0",
    }
    for pod in pods:
        assert shared.items() <= pod.env.items()
        assert pod.env["PET_LOCAL_ADDR"] == pod.address
    waits = "join_timeout=900,read_timeout=900"
    configurations = [pod.env["PET_RDZV_CONF"] for pod in pods]
    assert configurations == [waits, waits, f"is_host=0,{waits}", f"is_host=0,{waits}"]


def test_pytorch_says_who_holds_the_store_where_a_task_has_one_pod() -> None:
    spec = template(task("master"), task("worker", replicas=2))
    pods = run(group(replicas=2, templateSpec=spec), plugins={"pytorch": ["--timeout=60"]})
    hosts = [pod.env["PET_RDZV_CONF"].partition(",")[0] for pod in pods]
    assert hosts == ["is_host=1"] + ["is_host=0"] * 5


def test_pytorch_takes_its_tasks_port_and_processes_from_arguments() -> None:
    spec = template(task("board", gpus=0), task("boss"), task("worker", replicas=2))
    arguments = ["--master=boss", "--worker", "worker", "--port=1234", "--nproc-per-node=4"]
    pods = run(group(replicas=2, templateSpec=spec), plugins={"pytorch": arguments})
    board, boss, *workers = pods[:4]
    assert board.env == {}
    assert boss.env["PET_RDZV_ENDPOINT"] == "hj-trainer-0-boss-0.hj-trainer-0:1234"
    assert {pod.env["PET_NNODES"] for pod in (boss, *workers)} == {"6"}
    assert {pod.env["PET_NPROC_PER_NODE"] for pod in (boss, *workers)} == {"4"}


@pytest.mark.parametrize(
    ("sizes", "minimum", "nodes"),
    [((4, 2, 8), 3, "14"), ((4, 2, 8), 2, "6:14"), ((4, 2, 8), 1, "4:14")],
)
def test_pytorch_starts_with_fewer_agents_where_fewer_sub_jobs_may(
    sizes: tuple[int, ...], minimum: int, nodes: str
) -> None:
    """The first sub-job holds the store, so it is always among those that start."""
    groups = [group(f"g{size}", replicas=1, gpus=size) for size in sizes]
    pods = run(*groups, plugins={"pytorch": []}, minimum=minimum)
    assert {pod.env["PET_NNODES"] for pod in pods} == {nodes}


def test_jax_numbers_processes_where_every_pod_can_be_told() -> None:
    pods = run(group(replicas=3, gpus=1), plugins={"jax": ["--port=09000"]})
    assert [pod.env["JAX_PROCESS_ID"] for pod in pods] == ["0", "1", "2"]
    assert {pod.env["JAX_NUM_PROCESSES"] for pod in pods} == {"3"}
    assert pods[0].env["JAX_COORDINATOR_ADDRESS"] == "hj-trainer-0-worker-0.hj-trainer-0:9000"


def test_jax_leaves_the_number_to_the_program_where_some_pods_cannot_be_told() -> None:
    pods = run(group(replicas=2, gpus=2), plugins={"jax": []})
    assert all("JAX_PROCESS_ID" not in pod.env for pod in pods)
    assert [pod.rank for pod in pods] == [0, 1, 2, 3]


def test_mpi_gives_the_hosts_of_all_sub_jobs_to_the_launcher_alone() -> None:
    groups = [
        group("a", replicas=1, templateSpec=template(task("master"), task("worker", replicas=2))),
        group("b", replicas=1, templateSpec=template(task("worker", replicas=1))),
    ]
    pods = run(*groups, plugins={"mpi": ["--port=2222"]})
    assert [bool(pod.env) for pod in pods] == [True, False, False, False]
    assert pods[0].env["MPI_HOST"].split(",") == [
        "hj-a-0-worker-0.hj-a-0",
        "hj-a-0-worker-1.hj-a-0",
        "hj-b-0-worker-0.member2.hj-b-0.default.svc.clusterset.local",
    ]
    assert pods[0].env["OMPI_MCA_plm_rsh_args"] == "-p 2222"


def test_names_follow_the_pattern_between_sub_jobs_only() -> None:
    plugins = {"pytorch": [], "svc": ["--name-pattern={service}.{namespace}.example.com"]}
    inside, outside = run(group(replicas=2, gpus=1), plugins=plugins)
    assert inside.env["PET_RDZV_ENDPOINT"].startswith("hj-trainer-0-worker-0.hj-trainer-0:")
    assert outside.env["PET_RDZV_ENDPOINT"] == "hj-trainer-0.default.example.com:29400"


def test_a_host_without_a_cluster_is_waited_for_where_its_name_has_one() -> None:
    found, (first, second) = parsed(plugins={"pytorch": []})
    whole = world_of(
        found, [first, second], attempts={}, clusters={second.name: "m"}, generation=0, minimum=2
    )
    with pytest.raises(UnknownHostError, match="waits for the cluster of hj-trainer-0"):
        equip(second.size.template, second.name, whole)
    equip(first.size.template, first.name, whole)


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (None, ["--publish-not-ready-addresses=true", "--disable-network-policy=true"]),
        (
            ["--disable-network-policy=false"],
            ["--disable-network-policy=false", "--publish-not-ready-addresses=true"],
        ),
        (
            ["--publish-not-ready-addresses", "-disable-network-policy"],
            ["--publish-not-ready-addresses", "-disable-network-policy"],
        ),
    ],
)
def test_pods_of_other_sub_jobs_are_let_in(own: list[str] | None, wanted: list[str]) -> None:
    fields = {} if own is None else {"plugins": {"svc": own}}
    found, (first, *_) = parsed(group(templateSpec=template(**fields)), plugins={"svc": []})
    whole = world(found, [first])
    made, _ = equip(first.size.template, first.name, whole)
    assert made["plugins"]["svc"] == wanted


def test_what_the_user_set_stays() -> None:
    spec = template(task())
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    container["env"] = [
        {"name": "PET_NNODES", "value": "1"},
        {"name": "MINE", "value": "$(HYPERJOB_TASK_INDEX) of $(HYPERJOB_WORLD_SIZE)"},
    ]
    pods = run(group(replicas=2, templateSpec=spec), plugins={"pytorch": [], "env": []})
    assert {pod.env["PET_NNODES"] for pod in pods} == {"1"}
    assert {pod.env["MINE"] for pod in pods} == {"0 of 2"}


def test_init_containers_are_told_too() -> None:
    spec = template(task())
    spec["tasks"][0]["template"]["spec"]["initContainers"] = [{"name": "init", "image": "i"}]
    found, (first,) = parsed(group(replicas=1, templateSpec=spec), plugins={"env": []})
    whole = world(found, [first])
    made, _ = equip(first.size.template, first.name, whole)
    pod = made["tasks"][0]["template"]["spec"]
    assert pod["initContainers"][0]["env"] == pod["containers"][0]["env"]


@pytest.mark.parametrize(
    ("plugins", "exported"),
    [
        ({"svc": []}, True),
        ({"pytorch": []}, True),
        ({"env": []}, False),
        ({"pytorch": [], "svc": ["--export=false"]}, False),
    ],
)
def test_services_are_exported_where_pods_look_each_other_up(
    plugins: Object, exported: bool
) -> None:
    found, _ = parsed(plugins=plugins)
    export = export_of(found, "hj-trainer-0")
    assert (export is not None) is exported
    if export is not None:
        assert (export["kind"], export["metadata"]["name"]) == ("ServiceExport", "hj-trainer-0")
        assert export["metadata"]["ownerReferences"][0]["uid"] == UID


GROUPS = st.lists(
    st.builds(
        lambda replicas, sizes: (replicas, tuple(sizes)),
        st.integers(1, 4),
        st.lists(st.integers(0, 5), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(GROUPS, st.sets(st.sampled_from(["env", "jax", "pytorch", "svc"])))
def test_ranks_number_every_pod_once(
    shape: list[tuple[int, tuple[int, ...]]], names: set[str]
) -> None:
    groups = [
        group(
            f"g{number}",
            replicas=replicas,
            templateSpec=template(
                *(task(f"t{index}", replicas=size) for index, size in enumerate(sizes))
            ),
        )
        for number, (replicas, sizes) in enumerate(shape)
    ]
    pods = run(*groups, plugins={name: [] for name in {*names, "env"}})
    assert sorted(pod.rank for pod in pods) == list(range(len(pods)))
    assert {pod.env["HYPERJOB_WORLD_SIZE"] for pod in pods} <= {str(len(pods))}
    told = [pod.env["JAX_PROCESS_ID"] for pod in pods if "JAX_PROCESS_ID" in pod.env]
    assert not told or [int(number) for number in told] == [pod.rank for pod in pods]
    nodes = {pod.env["PET_NNODES"] for pod in pods if "PET_NNODES" in pod.env}
    assert nodes <= {str(len(pods))}


@given(st.sets(st.sampled_from(sorted(PLUGINS))), st.integers(0, 3))
def test_equipping_is_repeatable_and_leaves_its_input_alone(
    names: set[str], generation: int
) -> None:
    spec = template(task("master"), task("worker", replicas=2))
    found, wanted = parsed(
        group(replicas=2, templateSpec=spec), plugins={name: [] for name in names}
    )
    before = copy.deepcopy(wanted)
    first, second = (
        [equip(item.size.template, item.name, whole) for item in wanted]
        for whole in (world(found, wanted, generation=generation) for _ in range(2))
    )
    assert first == second
    assert wanted == before
    # Equipped once more, nothing is written twice.
    whole = world(found, wanted, generation=generation)
    for (made, _), item in zip(first, wanted, strict=True):
        again, _ = equip(made, item.name, whole)
        assert again == made
