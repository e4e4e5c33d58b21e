"""Start a Karmada of given binaries, and run a command beside it.

    python -m e2e.karmada --binaries DIR --karmada DIR --volcano DIR -- pytest e2e/test_gang.py

The command finds this Karmada in `HYPERJOB_E2E_*`, as the scenarios and `python -m e2e.matrix`
read them. Its exit code is that of the command; 1 if one of the processes has ended by itself.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.karmada.controlplane import start_control_plane
from e2e.karmada.kubelet import CLUSTERS
from e2e.karmada.member import join, start_member
from e2e.karmada.process import Given, Stack
from e2e.karmada.volcano_global import start_volcano_global
from hyperjob_sandbox.clusters import load
from tests.support.stack import issue_certificates

_KINDS = ("batch.volcano.sh_jobs", "scheduling.volcano.sh_queues", "bus.volcano.sh_commands")


def main(arguments: Sequence[str]) -> int:
    """Start everything, run the command, and end everything."""
    given, keep, command = _read(arguments)
    with contextlib.ExitStack() as exits:
        directory = keep or Path(exits.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        certificates = issue_certificates(directory / "tls")
        stack = Stack(given, directory, certificates, exits)
        start(stack)
        code = subprocess.run(command, env=os.environ | environment(stack), check=False).returncode
        for name in (ended := stack.ended()):
            text = stack.log(name).read_text(errors="replace")
            sys.stderr.write(f"{name} has ended by itself:\n{text[-2000:]}\n")
    return code or bool(ended)


def start(stack: Stack) -> None:
    """Start Karmada with its members, and install in it what HyperJobs need."""
    start_control_plane(stack)
    clusters = load(CLUSTERS).clusters
    for cluster in clusters:
        start_member(stack, cluster)
        join(stack, cluster, pull=stack.given.pull and cluster is clusters[-1])
    stack.apply(
        stack.karmada, *(stack.given.volcano_definitions / f"{kind}.yaml" for kind in _KINDS)
    )
    stack.established(stack.karmada)
    if stack.given.volcano_global is not None:
        start_volcano_global(stack, stack.given.volcano_global)
    install = [sys.executable, "-m", "hyperjob", "install", f"--kubeconfig={stack.karmada}"]
    subprocess.run([*install, "--skip", "webhooks"], check=True)
    if stack.given.volcano_global is not None:
        state = ("get", "queue", "default", "-o", "jsonpath={.status.state}")
        stack.until(stack.karmada, *state, gives="Open", process="controller-manager")


def environment(stack: Stack) -> dict[str, str]:
    """Return the variables by which the scenarios find this Karmada."""
    clusters = load(CLUSTERS)
    members = (f"{each.name}={stack.kubeconfig(each.name)}" for each in clusters.clusters)
    return {
        "HYPERJOB_E2E_KUBECONFIG": str(stack.karmada),
        "HYPERJOB_E2E_MEMBERS": ",".join(members),
        "HYPERJOB_E2E_LOCAL": "1",
        "HYPERJOB_E2E_SECONDS_ANNOTATION": clusters.run_times.annotation,
    }


def _read(arguments: Sequence[str]) -> tuple[Given, Path | None, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m e2e.karmada", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--binaries", type=Path, required=True, help="folder of all binaries")
    parser.add_argument("--karmada", type=Path, required=True, help="source tree of Karmada")
    parser.add_argument("--volcano", type=Path, required=True, help="source tree of Volcano")
    parser.add_argument(
        "--volcano-global", type=Path, help="its source tree; left out: not installed"
    )
    parser.add_argument("--gates", default="", help="feature gates of Karmada's processes")
    parser.add_argument("--pull", action="store_true", help="the last member is in Pull mode")
    parser.add_argument("--directory", type=Path, help="folder for files and logs, which stay")
    parser.add_argument("command", nargs="+", help="what runs beside this Karmada")
    read = parser.parse_args(arguments)
    given = Given(
        binaries=read.binaries.resolve(),
        karmada=read.karmada.resolve(),
        volcano=read.volcano.resolve(),
        volcano_global=read.volcano_global and read.volcano_global.resolve(),
        gates=read.gates,
        pull=read.pull,
    )
    if missing := given.missing():
        parser.error(f"not there: {', '.join(map(str, missing))}")
    return given, read.directory and read.directory.resolve(), read.command


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
