"""Measure the webhook, as ratios to a bare aiohttp handler in the same run.

    python benchmarks/bench_webhook.py            # all, about two minutes
    python benchmarks/bench_webhook.py --quick    # fewer requests
    python benchmarks/bench_webhook.py --check    # exit 1 when an aim is missed

With two cores, each server has a core for itself, and the client the other core. Rounds of all
servers alternate: a noisy machine slows all servers equally. The measure is requests per second of
the server's own CPU time, the rate of a whole core; the output has the rate by the clock, too. All
requests have objects with different names, images and settings: a cache of the last object has no
effect.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MUTATE = "/mutate-training-volcano-sh-v1alpha1-hyperjob"
VALIDATE = "/validate-training-volcano-sh-v1alpha1-hyperjob"
BINDING = "/mutate-work-karmada-io-v1alpha2-resourcebinding"
OBJECTS = 500
AIMS = {BINDING: 200.0, MUTATE: 450.0, VALIDATE: 450.0}
"""Maximum CPU time of a review in microseconds; an API server sends at most 950 a second."""
NAMES = {
    BINDING: "ResourceBinding mutate",
    MUTATE: "HyperJob mutate",
    VALIDATE: "HyperJob validate",
}


def binding_review(number: int = 0) -> bytes:
    """Return the review of a gated sub-job's ResourceBinding at CREATE, as Karmada creates it."""
    name = f"llm-training-{number}-trainer-0"
    policy = {
        "clusterAffinities": [{"affinityName": "hyperjob-gang", "clusterNames": ["member1"]}],
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": name,
        "uid": "056a351f-07f1-4de3-a966-edae71e785c4",
    }
    return review(
        {"group": "work.karmada.io", "version": "v1alpha2", "kind": "ResourceBinding"},
        "resourcebindings",
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "annotations": {
                    "policy.karmada.io/applied-placement": json.dumps(policy),
                    "propagationpolicy.karmada.io/name": name,
                    "propagationpolicy.karmada.io/namespace": "default",
                },
                "finalizers": ["karmada.io/binding-controller"],
                "labels": {
                    "propagationpolicy.karmada.io/permanent-id": owner["uid"],
                    "resourcebinding.karmada.io/permanent-id": owner["uid"],
                },
                "name": f"{name}-job",
                "namespace": "default",
                "ownerReferences": [{**owner, "blockOwnerDeletion": True, "controller": True}],
            },
            "spec": {
                "conflictResolution": "Abort",
                "placement": policy,
                "propagateDeps": True,
                "resource": {**owner, "namespace": "default", "resourceVersion": "1066"},
                "schedulerName": "default-scheduler",
                "suspension": {"dispatching": True},
            },
        },
    )


def hyperjob_review(number: int = 0) -> bytes:
    """Return the review of a HyperJob with two replicated jobs of two tasks each."""

    def task(name: str, replicas: int) -> dict[str, Any]:
        resources = {"cpu": "8", "memory": f"{64 + number}Gi", "nvidia.com/gpu": 8}
        container = {
            "name": name,
            "image": f"registry.example/train:v{number}",
            "command": ["torchrun", "train.py", f"--seed={number}"],
            "env": [{"name": f"RUN_{number}", "value": "INFO"}],
            "ports": [{"containerPort": 23000 + number, "name": "rdzv"}],
            "resources": {"requests": resources, "limits": resources},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}}
        spec = {"restartPolicy": "OnFailure", "containers": [container], "volumes": [volume]}
        return {"name": name, "replicas": replicas, "template": {"spec": spec}}

    def group(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "replicas": 2,
            "templateSpec": {
                "plugins": {
                    "pytorch": ["--master=master", "--worker=worker", f"--port={23000 + number}"]
                },
                "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
                "tasks": [task("master", 1), task("worker", 3)],
            },
        }

    return review(
        {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"},
        "hyperjobs",
        {
            "apiVersion": "training.volcano.sh/v1alpha1",
            "kind": "HyperJob",
            "metadata": {"name": f"llm-training-{number}", "namespace": "default"},
            "spec": {"maxDomains": 2, "replicatedJobs": [group("a100"), group("h100")]},
        },
    )


def review(kind: dict[str, str], resource: str, obj: dict[str, Any]) -> bytes:
    """Return the body of a review as kube-apiserver sends it."""
    plural = {"group": kind["group"], "version": kind["version"], "resource": resource}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": obj["metadata"]["name"],
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "system:admin", "groups": ["system:masters"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps(
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    )


@dataclass
class Server:
    """A server process, its port, and the kernel's counts of its resources."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    ready_seconds: float = 0.0
    rates: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def cores() -> tuple[set[int], set[int]]:
    """Return the cores of server and client, or the only core for both."""
    available = sorted(os.sched_getaffinity(0))
    return {available[0]}, {available[-1]}


def pinned(
    command: list[str | Path], to: set[int], **streams: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([str(word) for word in command], cwd=ROOT, **streams)  # type: ignore[call-overload] # streams only
    os.sched_setaffinity(process.pid, to)
    return process


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def bare(kind: str, tls: Path) -> Iterator[Server]:
    command = [sys.executable, HERE / "webhook_bare.py", kind, tls / "tls.crt", tls / "tls.key"]
    process = pinned(command, cores()[0], stdout=subprocess.PIPE)
    with ended(process):
        assert process.stdout is not None
        yield Server(f"bare {kind}", process, int(process.stdout.readline()))


@contextmanager
def ours(tls: Path, log: Path) -> Iterator[Server]:
    """Run the webhook with logs in a file, and yield it when it is ready."""
    command: list[str | Path] = [sys.executable, "-m", "hyperjob_webhook"]
    command += ["--bind-address", "127.0.0.1", "--secure-port", "0"]
    command += ["--tls-cert-file", tls / "tls.crt", "--tls-private-key-file", tls / "tls.key"]
    command += ["--health-probe-bind-address", "127.0.0.1:0", "--shutdown-delay", "0"]
    started = time.perf_counter()
    with log.open("wb") as sink:
        process = pinned(command, cores()[0], stderr=sink)
    with ended(process):
        while not log.read_bytes().endswith(b"\n"):
            if process.poll() is not None or time.perf_counter() > started + 60:
                raise SystemExit(log.read_text() or "the webhook did not start")
            time.sleep(0.005)
        line = orjson.loads(log.read_bytes().splitlines()[0])
        with urllib.request.urlopen(f"http://{line['health']}/readyz", timeout=10) as answer:
            assert answer.status == 200
        seconds = time.perf_counter() - started
        port = int(line["address"].rpartition(":")[2])
        yield Server("ours", process, port, ready_seconds=seconds)


class Client:
    """The process of the load generator."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.process = pinned(
            [sys.executable, HERE / "webhook_load.py"],
            cores()[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, server: Server, path: str, count: int, *, rate: float = 0) -> dict[str, float]:
        job = {
            "port": server.port,
            "path": path,
            "bodies": str(
                self._directory / ("bindings.jsonl" if path == BINDING else "hyperjobs.jsonl")
            ),
            "ca": str(self._directory / "ca.crt"),
            "count": count,
            "rate": rate,
        }
        source: IO[bytes] | None = self.process.stdin
        sink: IO[bytes] | None = self.process.stdout
        assert source is not None
        assert sink is not None
        source.write(json.dumps(job).encode() + b"\n")
        source.flush()
        answer = sink.readline()
        if not answer:
            raise SystemExit(f"the load on {server.name} {path} failed")
        result: dict[str, float] = json.loads(answer)
        return result


def throughput(
    client: Client, servers: list[Server], path: str, *, rounds: int, count: int
) -> None:
    for number in range(rounds):
        for server in servers if number % 2 else reversed(servers):
            before = server.cpu_seconds()
            result = client.run(server, path, count)
            used = server.cpu_seconds() - before
            server.rates.setdefault(path, []).append(count / result["seconds"])
            server.cpu.setdefault(path, []).append(used / count)


def clock_ratio(server: Server, base: Server, path: str) -> float:
    pairs = zip(server.rates[path], base.rates[path], strict=True)
    return statistics.median(own / other for own, other in pairs)


def ratio(server: Server, base: Server, path: str) -> float:
    return sum(base.cpu[path]) / sum(server.cpu[path])


def tail(client: Client, base: Server, server: Server, *, seconds: float) -> tuple[float, float]:
    """Return p99 in milliseconds at 50 requests a second, of the webhook and of the baseline."""
    count = int(50 * seconds)
    turns = [base, server] * 3
    pair = [client.run(one, VALIDATE, count, rate=50)["p99"] * 1000 for one in turns]
    return statistics.median(pair[1::2]), statistics.median(pair[0::2])


def memory(client: Client, server: Server, *, count: int) -> list[tuple[int, float]]:
    """Send a mix of all three reviews; return the resident memory by number of requests."""
    seen = []
    done = 0
    step = max(count // 10, 30)
    while done < count:
        for path in (BINDING, MUTATE, VALIDATE):
            client.run(server, path, step // 3 + 1)
        done += step
        seen.append((done, server.memory_mb()))
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer requests, wider error")
    parser.add_argument("--check", action="store_true", help="exit 1 when an aim is missed")
    options = parser.parse_args()
    rounds, count = (3, 1500) if options.quick else (9, 4000)
    failed: list[str] = []

    def show(what: str, value: str, aim: str, *, good: bool) -> None:
        print(f"  {what:34} {value:>22}   aim {aim:8} {'ok' if good else 'MISSED'}")
        if not good:
            failed.append(what)

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        issue = [
            sys.executable,
            "-m",
            "hyperjob_certs",
            "issue",
            "--directory",
            name,
            "--name",
            "localhost",
        ]
        subprocess.run(issue, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for file, made in (("bindings", binding_review), ("hyperjobs", hyperjob_review)):
            lines = b"\n".join(made(number) for number in range(OBJECTS))
            (directory / f"{file}.jsonl").write_bytes(lines)
        starts = []
        for _ in range(5):
            with ours(directory, directory / "start.log") as once:
                starts.append((once.ready_seconds, once.cpu_seconds()))
        application = stack.enter_context(bare("application", directory))
        low_level = stack.enter_context(bare("server", directory))
        webhook = stack.enter_context(ours(directory, directory / "webhook.log"))
        client = Client(directory)
        stack.enter_context(ended(client.process))
        servers = [application, low_level, webhook]
        for server in servers:
            client.run(server, BINDING, 500)

        print("requests/s of one core, one process, 8 keep-alive TLS connections")
        for path, name_of_review in NAMES.items():
            throughput(client, [application, low_level, webhook], path, rounds=rounds, count=count)
            value = ratio(webhook, application, path)
            micros = [sum(s.cpu[path]) / len(s.cpu[path]) * 1e6 for s in servers]
            show(
                name_of_review,
                f"{micros[-1]:,.0f} µs = {value:.2f} of bare",
                f"<={AIMS[path]:.0f} µs",
                good=micros[-1] <= AIMS[path],
            )
            print(
                "    µs a request: bare application {:.0f}, bare low-level {:.0f}, "
                "ours {:.0f}".format(*micros)
            )
            clock = statistics.median(webhook.rates[path])
            by_clock = clock_ratio(webhook, application, path)
            print(f"    by the clock: {clock:,.0f}/s = {by_clock:.2f} of the application")
        own, base = tail(client, application, webhook, seconds=3 if options.quick else 15)
        show("p99 at 50/s over bare", f"{own:.1f} - {base:.1f} ms", "<10 ms", good=own - base < 10)
        start, busy = min(starts)
        show(
            "start-up to ready, best of 5",
            f"{start:.2f} s ({busy:.2f} s CPU)",
            "<1.5 s",
            good=start < 1.5,
        )
        seen = memory(client, webhook, count=10_000 if options.quick else 100_000)
        top, middle = seen[-1][1], seen[len(seen) // 2][1]
        show(f"memory after {seen[-1][0]:,}", f"{top:.1f} MB", "<80 MB", good=top < 80)
        grown = top - middle
        show("growth over the second half", f"{grown:+.1f} MB", "<2 MB", good=grown < 2)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
