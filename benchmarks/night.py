"""An administrator's night on a real Karmada, by the commands of the docs: what is said, and when.

usage: python -m benchmarks.night --kubeconfig FILE [--gpus 8] [--members nodes] [--remove-cluster]

The kubeconfig is of an administrator of a Karmada API server with two Ready members, Volcano in
them, no Volcano Global, and HyperJob not installed. Each pod of the HyperJobs requests `--gpus`
accelerators and sleeps. The script installs HyperJob with its processes on this machine, does what
goes wrong at night, and prints for each event the command, what was said, and the seconds until
then and until the HyperJob runs again. It ends with exit code 1 if an answer was missing.
"""

import argparse
import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, binding_name
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, KubeError, NotFound
from hyperjob_core.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTERS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    QUEUES,
    RESOURCE_BINDINGS,
    SECRETS,
    WORKS,
    Resource,
)

Object = dict[str, Any]
BIN: Final = Path(sys.executable).parent
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
NAMESPACE: Final = "default"
QUEUE: Final = "night"
ACCOUNTS: Final = ("controller", "webhook", "members")
URL: Final = "https://localhost:29443"
LONG: Final = 150.0


class Night:
    """The commands and objects of the night, and the rows of its table."""

    def __init__(self, kube: Kube, folder: Path, options: argparse.Namespace) -> None:
        self.kube = kube
        self.folder = folder
        self.options = options
        self.missed = 0
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.env = os.environ | {
            "KUBECONFIG": str(options.kubeconfig),
            "PATH": f"{BIN}:{os.environ.get('PATH', '')}",
        }

    def row(self, event: str, command: str, said: str, seconds: float, *, right: bool) -> None:
        """Print one row of the table."""
        self.missed += not right
        mark = "" if right else "MISSED: "
        print(f"| {event} | `{command}` | {mark}{said} | {seconds:.1f} s |", flush=True)

    async def command(self, text: str) -> tuple[int, str, float]:
        """Run a command of the docs; return its exit code, its output and the seconds."""
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *shlex.split(text),
            cwd=self.folder,
            env=self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), LONG)
        return process.returncode or 0, output.decode(), time.monotonic() - began

    async def told(self, event: str, text: str, *, code: int, words: str) -> str:
        """Run a command that must end with a code and say these words; return its output."""
        found, output, seconds = await self.command(text)
        line = next((each for each in output.splitlines() if words in each), output[-200:])
        right = found == code and words in output
        self.row(event, text, f"exit {found}: {line.strip()[:220]}", seconds, right=right)
        return output

    def start(self, name: str) -> None:
        """Start a process of HyperJob, as its systemd unit does."""
        files = self.folder
        common = ["--kubeconfig", f"{files}/{name}/kubeconfig", "--log-format", "text"]
        if name == "webhook":
            common += ["--tls-cert-file", f"{files}/tls/tls.crt", "--secure-port", "29443"]
            common += ["--tls-private-key-file", f"{files}/tls/tls.key"]
            common += ["--controller-users"]
            common += [f"system:serviceaccount:{LEASE_NAMESPACE}:hyperjob-controller"]
            addresses = {"--metrics-bind-address": 29090, "--health-probe-bind-address": 29091}
        else:
            common += ["--members", self.options.members]
            if self.options.members != "off":
                common += ["--members-kubeconfig", f"{files}/members/kubeconfig"]
            addresses = {"--metrics-bind-address": 29080, "--health-probe-bind-address": 29081}
        for option, port in addresses.items():
            common += [option, f"127.0.0.1:{port}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(BIN / f"hyperjob-{name}"), *common], stdout=log, stderr=log
            )

    def stop(self, name: str) -> None:
        """End a process of HyperJob as systemd does, and wait for its end."""
        process = self.processes.pop(name, None)
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    async def until(
        self, name: str, when: Callable[[Object], bool], *, within: float = LONG
    ) -> tuple[float, Object]:
        """Wait until the status of a HyperJob is as `when` says; return the seconds and it."""
        began, status = time.monotonic(), dict[str, Any]()
        while time.monotonic() - began < within:
            with suppress(KubeError):
                found = await self.kube.get(HYPERJOBS, name, namespace=NAMESPACE)
                status = found.get("status") or {}
                if when(status):
                    break
            await asyncio.sleep(0.1)
        return time.monotonic() - began, status

    async def members(self) -> dict[str, Kube]:
        """Return a client for each member, by the name of its Cluster."""
        names = sorted(each["metadata"]["name"] for each in (await self.kube.list(CLUSTERS)).items)
        return {name: self.kube.member(name, time_limit=10) for name in names}

    async def first(self) -> str:
        """Return the cluster to which a HyperJob goes that may choose."""
        await self.submit("probe")
        _, status = await self.until("probe", runs)
        await self.clear()
        return clusters(status)[0]

    async def submit(self, name: str, *, sub_jobs: int = 1, only_on: str = "") -> None:
        """Apply a HyperJob whose pods sleep."""
        gpus = {"nvidia.com/gpu": str(self.options.gpus)}
        container: Object = {"name": "c", "image": "busybox:1.36", "command": ["sleep", "100000"]}
        container |= {"resources": {"requests": gpus, "limits": gpus}}
        pod: Object = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5}
        pod["containers"] = [container]
        task = {"name": "w", "replicas": 1, "template": {"spec": pod}}
        job: Object = {"name": "t", "replicas": sub_jobs}
        job |= {"templateSpec": {"queue": QUEUE, "tasks": [task]}}
        if only_on:
            job |= {"clusterNames": [only_on], "clusterPolicy": "Required"}
        body = HYPERJOBS.head
        spec = {"replicatedJobs": [job], "minAvailable": sub_jobs}
        made = {**body, "metadata": {"name": name}, "spec": spec}
        await self.kube.create(HYPERJOBS, made, namespace=NAMESPACE)

    async def clear(self) -> None:
        """Delete all HyperJobs of the night, and wait until they are gone."""
        for each in (await self.kube.list(HYPERJOBS, namespace=NAMESPACE)).items:
            await self.kube.delete(HYPERJOBS, each["metadata"]["name"], namespace=NAMESPACE)
        while (await self.kube.list(RESOURCE_BINDINGS, namespace=NAMESPACE)).items:  # noqa: ASYNC110
            await asyncio.sleep(0.2)

    async def pods(self) -> set[str]:
        """Return the UIDs of the pods of all members."""
        found = set[str]()
        for cluster in (await self.kube.list(CLUSTERS)).items:
            member = self.kube.member(cluster["metadata"]["name"], time_limit=10)
            pods = (await member.list(PODS, namespace=NAMESPACE)).items
            found |= {each["metadata"]["uid"] for each in pods}
        return found

    async def repaired(self, event: str, command: str, name: str, reason: str) -> None:
        """Note when the loss of a sub-job is said, and when it runs again."""
        seconds, status = await self.until(name, lambda each: attempts(each) > 0, within=30)
        state = (status.get("state") or {}).get("message", "")
        row = f"{(status.get('state') or {}).get('reason')}: {state[:200]}"
        self.row(event, command, row, seconds, right=attempts(status) > 0 and seconds < 5)
        again, status = await self.until(name, lambda each: runs(each) and attempts(each) > 0)
        history = [
            run["reason"] for job in status.get("jobs", ()) for run in job.get("history", ())
        ]
        right = runs(status) and history == [reason]
        self.row("", "kubectl get hj", f"Running, history {history}", seconds + again, right=right)


async def set_state(member: Kube, state: str) -> None:
    """Set the state of the queue in one member."""
    body = {"status": {"state": state}}
    await member.patch(QUEUES, QUEUE, body, kind=PatchType.MERGE, subresource="status")


async def set_quota(member: Kube) -> None:
    """Let one member refuse all further pods."""
    limit = {"metadata": {"name": "night"}, "spec": {"hard": {"pods": "0"}}}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", **limit}
    await member.create(RESOURCE_QUOTAS, body, namespace=NAMESPACE)
    await asyncio.sleep(3)


def phase(status: Object) -> str:
    return str((status.get("state") or {}).get("phase"))


def message(status: Object) -> str:
    return str((status.get("state") or {}).get("message"))


def clusters_held(status: Object) -> list[str]:
    return [str(job["cluster"]) for job in status.get("jobs", ()) if job.get("admitted")]


def runs(status: Object) -> bool:
    return phase(status) == "Running"


def reasons(status: Object) -> set[str]:
    return {str(each.get("reason")) for each in status.get("jobs", ())}


def attempts(status: Object) -> int:
    return max((int(job.get("attempt") or 0) for job in status.get("jobs", ())), default=0)


def clusters(status: Object) -> list[str]:
    return [str(job.get("cluster")) for job in status.get("jobs", ())]


async def install(night: Night) -> None:
    """Install as docs/install.md says for systemd, with a wrong CA and a wrong port first."""
    step = f" --members {night.options.members}"
    text = f"hyperjob install --service-accounts --skip webhooks{step}"
    await night.told("install", text, code=0, words="created")
    for folder in ("tls", "other"):
        await night.command(f"hyperjob-certs issue --directory {folder} --name localhost")
    names = [each for each in ACCOUNTS if each != "members" or night.options.members != "off"]
    accounts = " ".join(f"--account hyperjob-{each}=hyperjob-{each}-karmada" for each in names)
    files = f"--karmada-kubeconfig {night.options.kubeconfig}"
    files += f" --host-kubeconfig {night.options.kubeconfig}"
    renew = f"hyperjob credentials renew {files} --namespace {LEASE_NAMESPACE} {accounts}"
    await night.command(renew)
    for name in names:
        secret = await night.kube.get(
            SECRETS, f"hyperjob-{name}-karmada", namespace=LEASE_NAMESPACE
        )
        (night.folder / name).mkdir(exist_ok=True)
        for key in ("kubeconfig", "token"):
            (night.folder / name / key).write_bytes(b64decode(secret["data"][key]))
    night.start("webhook")
    night.start("controller")
    await asyncio.sleep(3)
    wrong = f"hyperjob install --ca-file other/ca.crt --webhook-url {URL}"
    await night.told("wrong CA", wrong, code=1, words="error:")
    wrong = "hyperjob install --ca-file tls/ca.crt --webhook-url https://localhost:29444"
    await night.told("wrong port", wrong, code=1, words="error:")
    there = [each["metadata"]["name"] for each in (await night.kube.list(MUTATING_WEBHOOKS)).items]
    kept = not any(name.startswith("hyperjob") for name in there)
    command = "kubectl get mutatingwebhookconfigurations"
    night.row("", command, "none of HyperJob is registered", 0.0, right=kept)
    right = f"hyperjob install --ca-file tls/ca.crt --webhook-url {URL}"
    await night.told("right CA and port", right, code=0, words="created")
    await night.told("", "hyperjob preflight", code=0, words="webhook-answers")


async def accounts(night: Night) -> None:
    """Take the controller's rights away, and run the remedy that preflight prints."""
    await night.kube.delete(CLUSTER_ROLE_BINDINGS, "hyperjob-controller")
    output = await night.told(
        "rights of the controller deleted", "hyperjob preflight", code=1, words="controller-rights"
    )
    remedy = re.search(r"controller-rights .*-> (hyperjob install.*)", output)
    text = remedy[1].strip() if remedy else "hyperjob install"
    output = await night.told("its remedy as printed", text, code=0, words="created")
    changed = [line for line in output.splitlines() if line.startswith("changes of this")]
    night.row("", text, f"settings changed: {changed or 'none'}", 0.0, right=not changed)
    await night.told("", "hyperjob preflight", code=0, words="controller-rights")
    await night.told("install once more", "hyperjob install", code=0, words="up to date")


async def upgrade(night: Night) -> None:
    """Replace both processes while a HyperJob runs: its pods stay."""
    await night.submit("steady")
    await night.until("steady", runs)
    before = await night.pods()
    await night.told("upgrade", "hyperjob install --skip webhooks", code=0, words="up to date")
    began = time.monotonic()
    for name in ("webhook", "controller"):
        night.stop(name)
        night.start(name)
    holder = (await night.kube.get(LEASES, LEASE_NAME, namespace=LEASE_NAMESPACE))["spec"]
    while time.monotonic() - began < LONG:
        lease = (await night.kube.get(LEASES, LEASE_NAME, namespace=LEASE_NAMESPACE))["spec"]
        if lease.get("holderIdentity") not in ("", None, holder.get("holderIdentity")):
            break
        await asyncio.sleep(0.2)
    led = time.monotonic() - began
    command = "systemctl restart hyperjob-webhook hyperjob-controller"
    night.row("", command, "a new controller leads", led, right=led < LONG)
    same = await night.pods() == before
    night.row("", "kubectl get pods", "the pods are the same", 0.0, right=same)
    await night.told("", "hyperjob install", code=0, words="up to date")
    await night.clear()


async def queues(night: Night) -> None:
    """Close and open a queue."""
    close = f"hyperjob queue close {QUEUE}"
    await night.told("close a queue", close, code=0, words="Closed")
    await night.submit("waits")
    seconds, status = await night.until(
        "waits", lambda each: (each.get("state") or {}).get("reason") == "QueueNotOpen", within=20
    )
    message = str((status.get("state") or {}).get("message"))
    night.row("", "kubectl get hj", message[:160], seconds, right="is Closed" in message)
    await night.told("", "kubectl-hyperjob why waits", code=4, words="QueueNotOpen")
    await night.told("", f"hyperjob queue open {QUEUE}", code=0, words="Open")
    seconds, status = await night.until("waits", runs)
    night.row("", "kubectl get hj", "Running", seconds, right=runs(status))
    await night.clear()


async def closed_in_one(night: Night) -> None:
    """Close the queue in the member to which a HyperJob goes, as that member's administrator."""
    members = await night.members()
    first = await night.first()
    queue = members[first]
    await set_state(queue, "Closed")
    command = f"kubectl patch queue {QUEUE} --subresource status  # Closed, in {first}"
    began = time.monotonic()
    while time.monotonic() - began < LONG:
        _, output, _ = await night.command("hyperjob top --by queue")
        if f"Open, closed in {first}" in output:
            break
    said = next((each for each in output.splitlines() if first in each), output[-200:])
    right = f"Open, closed in {first}" in output
    took = time.monotonic() - began
    night.row("queue closed in one member", command, said.strip(), took, right=right)
    await night.submit("away")
    seconds, status = await night.until("away", runs)
    where = f"{phase(status)} on {clusters(status)}"
    right = runs(status) and first not in clusters(status)
    night.row("", "kubectl get hj", where, seconds, right=right)
    words = f"{first} has closed queue {QUEUE}"
    await night.submit("bound", only_on=first)
    seconds, status = await night.until("bound", lambda each: words in message(each), within=20)
    night.row("", "kubectl get hj", message(status)[:200], seconds, right=words in message(status))
    await night.told("", "kubectl-hyperjob why bound", code=4, words=words)
    await set_state(queue, "Open")
    seconds, status = await night.until("bound", runs)
    right = runs(status) and clusters(status) == [first]
    night.row("opened there", "kubectl get hj", f"{phase(status)} on {first}", seconds, right=right)
    await night.clear()


async def quota(night: Night) -> None:
    """Fill the ResourceQuota of the member to which a HyperJob goes, then of both."""
    members = await night.members()
    first = await night.first()
    await set_quota(members[first])
    await night.submit("full")
    command = f"kubectl create quota night --hard=pods=0  # in {first}"
    seconds, status = await night.until(
        "full", lambda each: "PodsRefused" in reasons(each) or runs(each)
    )
    words = [job.get("message") for job in status.get("jobs", ())]
    night.row("full quota", command, str(words)[:200], seconds, right=not runs(status))
    again, status = await night.until("full", runs, within=400)
    where = f"{phase(status)} on {clusters(status)}"
    right = runs(status) and first not in clusters(status)
    night.row("", "kubectl get hj", where, seconds + again, right=right)
    await night.clear()
    others = [name for name in members if name != first]
    for name in others:
        await set_quota(members[name])
    await night.submit("nowhere")
    command = f"kubectl create quota night --hard=pods=0  # in {first} and {others}"
    seconds, status = await night.until(
        "nowhere",
        lambda each: phase(each) in ("Queued", "Pending") and attempts(each) >= len(members),
        within=600,
    )
    right = phase(status) in ("Queued", "Pending") and not clusters_held(status)
    text = f"{phase(status)}, attempt {attempts(status)}: {message(status)[:160]}"
    night.row("full quota everywhere", command, text, seconds, right=right)
    for member in members.values():
        await member.delete(RESOURCE_QUOTAS, "night", namespace=NAMESPACE)
    seconds, status = await night.until("nowhere", runs, within=400)
    night.row("quota raised", "kubectl get hj", phase(status), seconds, right=runs(status))
    await night.clear()


async def deletions(night: Night) -> None:
    """Delete the ResourceBinding, then the Work of a sub-job that runs."""
    await night.submit("binding")
    await night.until("binding", runs)
    await asyncio.sleep(2)
    name = binding_name("binding-t-0")
    await night.kube.delete(RESOURCE_BINDINGS, name, namespace=NAMESPACE)
    command = f"kubectl delete rb {name}"
    await night.repaired("deleted ResourceBinding", command, "binding", "ObjectDeleted")
    await night.clear()
    await night.submit("work")
    _, status = await night.until("work", runs)
    await asyncio.sleep(2)
    space = f"karmada-es-{clusters(status)[0]}"
    (work,) = [
        each["metadata"]["name"]
        for each in (await night.kube.list(WORKS, namespace=space)).items
        if each["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "work-t-0"
    ]
    await night.kube.delete(WORKS, work, namespace=space)
    command = f"kubectl delete work -n {space} {work}"
    await night.repaired("deleted Work", command, "work", "ObjectDeleted")
    await night.clear()


async def removal(night: Night) -> None:
    """Remove the cluster of a sub-job that runs, and let it join again."""
    await night.submit("lost")
    _, status = await night.until("lost", runs)
    name = clusters(status)[0]
    cluster = await night.kube.get(CLUSTERS, name)
    await night.kube.delete(CLUSTERS, name)
    await night.repaired("removed cluster", f"kubectl delete cluster {name}", "lost", "ClusterLost")
    began = time.monotonic()
    with suppress(NotFound):
        while time.monotonic() - began < LONG:
            await night.kube.get(CLUSTERS, name)
            await asyncio.sleep(0.5)
    gone = time.monotonic() - began
    spec = {key: value for key, value in cluster["spec"].items() if key != "id"}
    metadata = {"name": name, "labels": cluster["metadata"].get("labels") or {}}
    kind = CLUSTERS.head
    await night.kube.create(CLUSTERS, {**kind, "metadata": metadata, "spec": spec})
    await asyncio.sleep(45)
    _, status = await night.until("lost", runs, within=1)
    right = runs(status) and attempts(status) == 1
    text = f"{phase(status)}, attempt {attempts(status)}, after {gone:.0f} s to remove and 45 s"
    night.row("the cluster joins again", "karmadactl join", text, 45.0, right=right)
    await night.clear()


async def main() -> None:
    """Play the night and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--members", choices=("off", "pods", "nodes"), default="nodes")
    parser.add_argument("--remove-cluster", action="store_true", help="remove a cluster too")
    options = parser.parse_args()
    options.kubeconfig = options.kubeconfig.resolve()
    with tempfile.TemporaryDirectory() as name:
        async with Kube.connect(kubeconfig=options.kubeconfig) as kube:
            night = Night(kube, Path(name), options)
            print("| event | command | what was said | after |\n| --- | --- | --- | --- |")
            try:
                await install(night)
                queue = QUEUES.head
                with suppress(AlreadyExists):
                    body = {**queue, "metadata": {"name": QUEUE}, "spec": {"weight": 1}}
                    await kube.create(QUEUES, body)
                await asyncio.sleep(6)
                await accounts(night)
                await upgrade(night)
                await queues(night)
                await closed_in_one(night)
                await quota(night)
                await deletions(night)
                if options.remove_cluster:
                    await removal(night)
            finally:
                for each in list(night.processes):
                    night.stop(each)
    print(f"{night.missed} answers are missing")
    sys.exit(1 if night.missed else 0)


if __name__ == "__main__":
    asyncio.run(main())
