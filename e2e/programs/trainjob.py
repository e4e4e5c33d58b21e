"""Kubeflow's TrainerClient in the hands of a user: `trainjob.py KUBECONFIG NAMESPACE SCENE`.

Runs in the environment of the package `kubeflow`, and prints as JSON what the client answered.
"""

import contextlib
import io
import json
import sys
import threading

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, CustomTrainerContainer, TrainerClient
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    Labels,
    Name,
    TrainerArgs,
    TrainerCommand,
)

from hyperjob.sdk.kubeflow import over_clusters

OURS = Labels({"training.volcano.sh/runs-as": "HyperJob"})
TWO = Annotations({"training.volcano.sh/spread": '{"clusters": 2}'})
SECONDS = {"timeout": 120, "polling_interval": 1}


def add_ranks(steps):
    """Sum the ranks of all nodes over TCP: each node prints the sum of each step."""
    import os
    import socket
    import time

    rank, world = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
    host, port = os.environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)

    def connected():
        while True:
            try:
                return socket.create_connection((host, int(port)))
            except OSError:
                time.sleep(0.05)

    if rank == 0:
        address = socket.gethostbyname(host)
        server = socket.create_server((address, int(port)))
        peers = [server.accept()[0].makefile("rw") for _ in range(world - 1)]
    else:
        peers = [connected().makefile("rw")]
    for step in range(1, steps + 1):
        if rank:
            print(rank, file=peers[0], flush=True)
            total = int(peers[0].readline())
        else:
            total = sum(int(peer.readline()) for peer in peers)
            for peer in peers:
                print(total, file=peer, flush=True)
        print("step", step, "rank", rank, "of", world, "sum", total, flush=True)
        time.sleep(0.2)


def wait_for_end():
    """Wait until the pod is deleted."""
    import time

    print("waits", flush=True)
    time.sleep(600)


def fail():
    """End with an exception."""
    raise ValueError("no data")


def shown(job):
    """Return what a TrainJob of the client shows."""
    steps = {step.name: step.status for step in job.steps}
    return {"name": job.name, "status": job.status, "nodes": job.num_nodes, "steps": steps}


def events_of(client, name):
    """Return the Events of a TrainJob as pairs of kind and reason."""
    found = client.get_job_events(name)
    return sorted({(each.involved_object_kind, each.reason) for each in found})


def two_clusters(client):
    """Train over two clusters, and call each method about the TrainJob."""
    client = over_clusters(client)
    seen = []
    found = {"runtimes": sorted(each.name for each in client.list_runtimes())}
    runtime = client.get_runtime("jax")
    found["runtime"] = [runtime.name, runtime.framework if hasattr(runtime, "framework") else ""]
    trainer = CustomTrainer(func=add_ranks, func_args={"steps": 20}, num_nodes=4)
    name = client.train(runtime=runtime, trainer=trainer, options=[OURS, TWO])
    running = client.wait_for_job_status(
        name, {"Running"}, callbacks=[lambda job: seen.append(job.status)], **SECONDS
    )
    found["running"] = shown(running)
    found["followed"] = list(client.get_job_logs(name, step="node-3", follow=True))
    ended = client.wait_for_job_status(name, **SECONDS)
    found["ended"], found["seen"] = shown(ended), sorted(set(seen))
    found["logs"] = list(client.get_job_logs(name))
    found["listed"] = [shown(each) for each in client.list_jobs(runtime)]
    found["others"] = [shown(each) for each in client.list_jobs(client.get_runtime("plain"))]
    found["events"] = events_of(client, name)
    client.delete_job(name)
    found["left"] = [each.name for each in client.list_jobs()]
    return found


def unmodified(client):
    """Use the client as it is: TrainJobs work, the pods are out of its sight."""
    trainer = CustomTrainer(func=add_ranks, func_args={"steps": 1}, num_nodes=2)
    found = {"runtimes": sorted(each.name for each in client.list_runtimes())}
    name = client.train(runtime="jax", trainer=trainer, options=[OURS, TWO])
    found["ended"] = shown(client.wait_for_job_status(name, **SECONDS))
    found["job"], found["listed"] = shown(client.get_job(name)), len(client.list_jobs())
    found["logs"] = list(client.get_job_logs(name))
    found["events"] = events_of(client, name)
    found["packages"] = packages_of(client)
    client.delete_job(name)
    found["left"] = [each.name for each in client.list_jobs()]
    return found


def packages_of(client):
    """Return the first line that get_runtime_packages prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        client.get_runtime_packages(client.get_runtime("plain"))
    return (said.getvalue().splitlines() or [""])[0]


def packages(client):
    """Print the packages of a runtime, by a TrainJob that the client makes and deletes."""
    client = over_clusters(client)
    line = packages_of(client)
    return {"line": line, "left": [each.name for each in client.list_jobs()]}


def failed(client):
    """Train with a function that fails."""
    client = over_clusters(client)
    name = client.train(runtime="plain", trainer=CustomTrainer(func=fail))
    try:
        client.wait_for_job_status(name, **SECONDS)
    except RuntimeError as error:
        said = str(error)
    found = {"error": said.replace(name, "NAME"), "job": shown(client.get_job(name))}
    found["logs"] = list(client.get_job_logs(name))
    client.delete_job(name)
    return found


def options(client):
    """Train with the client's options instead of a function, past its deadline."""
    client = over_clusters(client)
    container = CustomTrainerContainer(image="any", num_nodes=1, env={"WHO": "me"})
    name = client.train(
        runtime="plain",
        trainer=container,
        options=[
            Name("mine"),
            TrainerCommand(["bash", "-c"]),
            TrainerArgs(["echo hello $WHO; sleep 600"]),
            ActiveDeadlineSeconds(20),
        ],
    )
    client.wait_for_job_status(name, {"Running"}, **SECONDS)
    lines = []
    reader = threading.Thread(
        target=lambda: lines.extend(client.get_job_logs(name, follow=True)), daemon=True
    )
    reader.start()
    client.wait_for_job_status(name, {"Failed"}, **SECONDS)
    reader.join(30)
    found = {"name": name, "lines": lines, "followed": not reader.is_alive()}
    client.delete_job(name)
    return found


def refused(client):
    """Create what cannot be carried over."""
    trainer = CustomTrainer(func=fail, num_nodes=2)
    spread = Annotations({"training.volcano.sh/spread": '{"clusters": 3}'})
    try:
        client.train(runtime="plain", trainer=trainer, options=[OURS, spread])
    except RuntimeError as error:
        return {"error": str(error.__cause__)}
    return {}


def deleted(client):
    """Delete a TrainJob that runs."""
    client = over_clusters(client)
    name = client.train(
        runtime="plain", trainer=CustomTrainer(func=wait_for_end, num_nodes=2), options=[TWO]
    )
    client.wait_for_job_status(name, {"Running"}, **SECONDS)
    log = next(iter(client.get_job_logs(name, step="node-1", follow=True)))
    client.delete_job(name)
    return {"log": log, "left": [each.name for each in client.list_jobs()]}


def anywhere(client):
    """Train over two clusters of any Karmada, whose pods may have no logs."""
    client = over_clusters(client)
    found = {"runtimes": sorted(each.name for each in client.list_runtimes())}
    container = CustomTrainerContainer(image="busybox:1.37", num_nodes=2)
    waits = client.train(runtime="long", trainer=container, options=[TWO])
    found["running"] = shown(client.wait_for_job_status(waits, {"Running"}, **SECONDS))
    client.delete_job(waits)
    name = client.train(runtime="short", trainer=container, options=[TWO])
    found["ended"] = shown(client.wait_for_job_status(name, **SECONDS))
    found["events"] = events_of(client, name)
    client.delete_job(name)
    found["left"] = [each.name for each in client.list_jobs()]
    return found


SCENES = (two_clusters, unmodified, packages, failed, options, refused, deleted, anywhere)


def main():
    """Play a scene."""
    kubeconfig, namespace, scene = sys.argv[1:]
    config = KubernetesBackendConfig(config_file=kubeconfig, namespace=namespace)
    play = {each.__name__: each for each in SCENES}[scene]
    print(json.dumps(play(TrainerClient(config))))


if __name__ == "__main__":
    main()
