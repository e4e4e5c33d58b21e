"""`hyperjob exec` and `hyperjob port-forward`: kubectl's own commands, for a pod of a HyperJob.

kubectl reaches the pod through Karmada's cluster proxy, where its user may use it.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hyperjob.cli.files import gathered
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import (
    Access,
    access,
    container_option,
    name_argument,
    pod_options,
)
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.reading import ChosenLogs
from hyperjob.client.summary import read
from hyperjob_core.kube import config
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS


@click.command()
@name_argument()
@click.argument("command", metavar="-- COMMAND [ARGS...]", nargs=-1, type=click.UNPROCESSED)
@access()
@pod_options
@container_option
@gathered("wanted", Wanted)
def exec(name: str, command: Sequence[str], access: Access, wanted: Wanted) -> None:  # noqa: A001
    """Run a command in a pod of a HyperJob, by `kubectl exec` in its cluster.

    Without an option that chooses a pod, kubectl enters the first running pod. In a terminal the
    command is interactive.

    Example: kubectl hyperjob exec llm-training --rank 37 -- bash
    """
    if not command:
        raise click.UsageError("give a command after --, such as: -- bash")
    terminal = ["-i", "-t"] if sys.stdin.isatty() and sys.stdout.isatty() else ["-i"]
    found, words = run(_reach(name, access, wanted))
    _become([*words, "exec", *terminal, found.pod, "-c", found.container, "--", *command])


@click.command()
@name_argument()
@click.argument("ports", metavar="[LOCAL:]PORT...", nargs=-1, required=True)
@access()
@pod_options
@gathered("wanted", Wanted)
def port_forward(name: str, ports: Sequence[str], access: Access, wanted: Wanted) -> None:
    """Forward local ports to a pod of a HyperJob, by `kubectl port-forward` in its cluster.

    A pod that is a process of a sandbox listens on this machine already.

    Example: kubectl hyperjob port-forward llm-training --rank 0 6006
    """
    found, words = run(_reach(name, access, wanted))
    _become([*words, "port-forward", f"pod/{found.pod}", *ports])


async def _reach(name: str, access: Access, wanted: Wanted) -> tuple[ContainerLog, list[str]]:
    """Return the container, and kubectl with the flags for its cluster; raises ClientError."""
    async with access.connect() as kube:
        summary = read(await kube.get(HYPERJOBS, name, namespace=access.home(kube)))
        pods = await ChosenLogs.of(kube, summary, wanted, say=out.remark)
    found = next((each for each in pods.chosen if each.running), None)
    if found is None:
        why = f"kubectl hyperjob why {name} -n {summary.namespace}"
        raise FailureError(f"no such pod of {name} runs: {why}")
    connection = await config.load(access.kubeconfig, context=access.context)
    proxy = CLUSTERS.path(None, found.cluster, "proxy")
    flags = {
        "kubeconfig": access.kubeconfig,
        "context": access.context,
        "server": f"{connection.server.rstrip('/')}{proxy}",
        "namespace": summary.namespace,
    }
    return found, [f"--{key}={value}" for key, value in flags.items() if value]


def _become(words: Sequence[str]) -> None:
    """Run kubectl in the place of this process."""
    beside = Path(sys.executable).with_name("kubectl")
    program = str(beside) if beside.exists() else shutil.which("kubectl")
    if program is None:
        raise FailureError("there is no kubectl on PATH: install it, and try again")
    os.execv(program, ["kubectl", *words])  # noqa: S606
