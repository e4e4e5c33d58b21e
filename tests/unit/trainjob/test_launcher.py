"""An MPI TrainJob becomes one sub-job: a launcher with a hostfile, and nodes with SSH."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainjobs import job, mpi_runtime
from tests.unit.trainjob.test_convert import (
    SPREAD,
    changed,
    env,
    hyperjob_of,
    refusals,
    trainjob,
)

Object = dict[str, Any]
HOSTFILE = "training.volcano.sh/mpi-hostfile"
NODES = {"numNodes": 3}


def part(hyperjob: Object) -> Object:
    (found,) = hyperjob["spec"]["replicatedJobs"]
    return dict(found)


def tasks(hyperjob: Object) -> dict[str, Object]:
    return {task["name"]: task for task in part(hyperjob)["templateSpec"]["tasks"]}


def hostfile(hyperjob: Object) -> list[str]:
    pod = tasks(hyperjob)["launcher-0"]["template"]
    return str(pod["metadata"]["annotations"][HOSTFILE]).splitlines()


def test_the_end_of_the_launcher_is_the_end_and_volcano_gives_keys_and_host_names() -> None:
    found = hyperjob_of(trainjob(trainer=NODES), mpi_runtime(sshAuthMountPath="/home/m/.ssh"))
    assert list(tasks(found)) == ["launcher-0", "node-0", "node-1", "node-2"]
    spec = part(found)["templateSpec"]
    assert spec["minAvailable"] == 4
    assert spec["plugins"]["ssh"] == ["--ssh-key-file-path=/home/m/.ssh"]
    usual = part(hyperjob_of(trainjob(trainer=NODES), mpi_runtime()))["templateSpec"]["plugins"]
    assert usual["ssh"] == ["--ssh-key-file-path=/root/.ssh"]
    assert "--publish-not-ready-addresses=true" in spec["plugins"]["svc"]
    ends = {name: task.get("policies") for name, task in tasks(found).items()}
    assert ends.pop("launcher-0") == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    assert set(ends.values()) == {None}
    assert found["spec"]["plugins"] == {}


@pytest.mark.parametrize(
    ("trainer", "policy", "hosts"),
    [
        (NODES, {}, ["node-0", "node-1", "node-2"]),
        (NODES, {"runLauncherAsNode": True}, ["launcher-0", "node-0", "node-1"]),
        ({"numNodes": 1}, {"runLauncherAsNode": True}, ["launcher-0", "node-0"]),
        ({}, {}, ["node-0"]),
    ],
)
def test_the_hostfile_has_the_names_that_volcano_gives_the_pods(
    trainer: Object, policy: Object, hosts: list[str]
) -> None:
    found = hyperjob_of(trainjob(trainer=trainer), mpi_runtime(**policy))
    vcjob = "tj-launcher-0"
    assert hostfile(found) == [f"{vcjob}-{host}-0.{vcjob} slots=1" for host in hosts]
    spec = tasks(found)["launcher-0"]["template"]["spec"]
    (volume,) = spec["volumes"]
    (item,) = volume["downwardAPI"]["items"]
    assert (item["path"], HOSTFILE in item["fieldRef"]["fieldPath"]) == ("hostfile", True)
    assert {"name": volume["name"], "mountPath": "/etc/mpi"} in spec["containers"][0][
        "volumeMounts"
    ]
    values = env(tasks(found)["launcher-0"]["template"])
    assert values["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"


@pytest.mark.parametrize(
    ("trainer", "policy", "slots"),
    [
        ({}, {"numProcPerNode": 4}, 4),
        ({"numProcPerNode": 2}, {"numProcPerNode": 4}, 2),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, {"numProcPerNode": 1}, 8),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, {"numProcPerNode": 4}, 4),
        ({"resourcesPerNode": {"limits": {"cpu": 8}}}, {}, 1),
    ],
)
def test_a_host_has_as_many_slots_as_trainer_gives_it(
    trainer: Object, policy: Object, slots: int
) -> None:
    found = hyperjob_of(trainjob(trainer=trainer), mpi_runtime(**policy))
    assert hostfile(found)[0].endswith(f" slots={slots}")
    values = env(tasks(found)["launcher-0"]["template"])
    assert values["OMPI_MCA_orte_set_default_slots"] == str(slots)


@pytest.mark.parametrize("itself", [False, True])
def test_the_command_is_the_launchers_and_a_node_trains_only_beside_a_launcher_that_does(
    itself: bool,
) -> None:
    trainer = {
        "command": ["mpirun", "train"],
        "env": [{"name": "A", "value": "1"}],
        "resourcesPerNode": {"limits": {"cpu": "2"}},
    }
    found = tasks(hyperjob_of(trainjob(trainer=trainer), mpi_runtime(runLauncherAsNode=itself)))
    launcher, node = found["launcher-0"]["template"], found["node-0"]["template"]
    (first,), (second,) = launcher["spec"]["containers"], node["spec"]["containers"]
    assert (first["command"], second["command"]) == (["mpirun", "train"], ["/usr/sbin/sshd", "-De"])
    assert first["resources"] == {"limits": {"cpu": "2"}}
    assert ("A" in env(node), "resources" in second) == (itself, itself)
    role = "jobset.sigs.k8s.io/replicatedjob-name"
    assert [each["metadata"]["labels"][role] for each in (launcher, node)] == ["launcher", "node"]


def test_the_launcher_waits_for_the_nodes_only_where_the_runtime_says_so() -> None:
    rt = mpi_runtime(runLauncherAsNode=True)
    spec = tasks(hyperjob_of(trainjob(trainer=NODES), rt))["launcher-0"]["template"]["spec"]
    (waiting,) = spec["initContainers"]
    assert waiting["image"] == spec["containers"][0]["image"]
    vcjob = "tj-launcher-0"
    assert waiting["command"][-2:] == [f"{vcjob}-node-{rank}-0.{vcjob}" for rank in (0, 1)]
    del rt["spec"]["template"]["spec"]["replicatedJobs"][1]["dependsOn"]
    spec = tasks(hyperjob_of(trainjob(), rt))["launcher-0"]["template"]["spec"]
    assert "initContainers" not in spec


def test_the_launcher_starts_once_ssh_reaches_every_node(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "$5" >> calls\n[ "$(wc -l < calls)" -ge 3 ]\n')
    ssh.chmod(0o755)
    (tmp_path / "sleep").symlink_to("/bin/true")
    found = hyperjob_of(trainjob(trainer={"numNodes": 2}), mpi_runtime())
    (waiting,) = tasks(found)["launcher-0"]["template"]["spec"]["initContainers"]
    path = f"{tmp_path}:/usr/bin:/bin"
    subprocess.run(waiting["command"], cwd=tmp_path, env={"PATH": path}, check=True, timeout=30)
    host = "tj-launcher-0-node-{}-0.tj-launcher-0".format
    calls = (tmp_path / "calls").read_text().split()
    assert calls == [host(0), host(0), host(0), host(1)]


def without_node() -> Object:
    rt = mpi_runtime()
    del rt["spec"]["template"]["spec"]["replicatedJobs"][0]
    return rt


def with_initializer() -> Object:
    rt = mpi_runtime()
    rt["spec"]["template"]["spec"]["replicatedJobs"].append(job("model-initializer"))
    return rt


RUNTIMES = {
    "a job node": without_node(),
    "no initializer": with_initializer(),
    "OpenMPI": mpi_runtime(mpiImplementation="Intel"),
    "2 launchers": mpi_runtime(numbers={"numNodes": 2}),
    "targetReplicatedJobs: must be [launcher]": changed(mpi_runtime(), "successPolicy", {}),
    "dependsOn[0]": changed(mpi_runtime(), "replicatedJobs.1.dependsOn", [{"name": "node"}]),
}


@pytest.mark.parametrize(("word", "rt"), RUNTIMES.items(), ids=list(RUNTIMES))
def test_what_mpi_cannot_carry_over_is_refused_by_field(word: str, rt: Object) -> None:
    assert word in refusals(trainjob(), rt)["spec.runtimeRef"]


RSH = {"env": [{"name": "OMPI_MCA_plm_rsh_args", "value": ""}]}


@pytest.mark.parametrize(
    ("field", "word", "given"),
    [
        ("spec.trainer.env", "OMPI_MCA_plm_rsh_args", {"trainer": RSH}),
        (
            "spec.trainer.numProcPerNode",
            "must be at least 1",
            {"trainer": {"numProcPerNode": "gpu"}},
        ),
        (SPREAD, "clusters must be 1 for MPI", {"trainer": NODES, "spread": '{"clusters": 2}'}),
    ],
)
def test_what_a_trainjob_cannot_change_of_mpi_is_refused_by_field(
    field: str, word: str, given: Object
) -> None:
    assert word in refusals(trainjob(**given), mpi_runtime())[field]
