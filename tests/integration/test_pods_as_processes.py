"""Containers of a member run as processes of this machine, and nothing outlives the sandbox."""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CONFIG_MAPS, PODS
from hyperjob_sandbox.clusters import parse
from hyperjob_sandbox.processes import hostclient
from hyperjob_sandbox.topology import Topology
from tests.support.rawlog import raw_lines

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]
CONFIG = """
pods: processes
speed: 20
clusters:
- name: a
  nodes: [{count: 1, name: n, allocatable: {cpu: 64, memory: 64Gi, nvidia.com/gpu: 8, pods: 500}}]
- name: b
  nodes: [{count: 1, name: n, allocatable: {cpu: 64, memory: 64Gi, pods: 500}}]
"""
Obj = dict


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Topology]:
    async with Topology(parse(CONFIG), tmp_path_factory.mktemp("sandbox")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def topology(started: Topology) -> AsyncIterator[Topology]:
    """Give the sandbox, empty of pods again after the test."""
    yield started
    for cluster in started.clusters.values():
        for found in (await cluster.kube.list(PODS, namespace="default")).items:
            name = found["metadata"]["name"]
            path = PODS.path("default", name)
            await cluster.kube.raw("DELETE", path, params={"gracePeriodSeconds": "1"})
            await is_gone(cluster.kube, name)


async def is_gone(kube: Kube, name: str) -> None:
    """Wait until a pod does not exist any more."""

    async def exists() -> bool:
        try:
            await kube.get(PODS, name, namespace="default")
        except NotFound:
            return False
        return True

    async with asyncio.timeout(60):
        while await exists():  # noqa: ASYNC110, read as a user would
            await asyncio.sleep(0.02)


async def holds(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds that nothing reports."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110, the process table has no events
            await asyncio.sleep(0.02)


def pod(*command: str, name: str = "p", cluster_node: str = "a-n-1", **fields: object) -> Obj:
    container = {
        "name": "main",
        "image": "any",
        "command": list(command),
        **fields.pop("container", {}),
    }
    return {
        **PODS.head,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": cluster_node,
            "restartPolicy": "Never",
            "containers": [container],
            **fields,
        },
    }


def python(text: str) -> tuple[str, ...]:
    return ("python", "-u", "-c", text)


async def until(kube: Kube, holds: Callable[[Obj], bool], *, name: str = "p") -> Obj:
    """Follow a pod until its state is as wanted."""
    async with asyncio.timeout(60):
        while True:
            found = await kube.get(PODS, name, namespace="default")
            if holds(found):
                return found
            await asyncio.sleep(0.02)


def phase(wanted: str) -> Callable[[Obj], bool]:
    return lambda found: (found.get("status") or {}).get("phase") == wanted


def container(found: Obj, kind: str = "containerStatuses") -> Obj:
    return found["status"][kind][0]


async def log(kube: Kube, *, name: str = "p", **query: str) -> str:
    path = f"{PODS.path('default', name)}/log"
    return (await kube.raw("GET", path, params=query, accept="*/*")).body.decode()


async def ended(kube: Kube, made: Obj) -> Obj:
    await kube.create(PODS, made, namespace="default")
    return await until(kube, lambda found: phase("Failed")(found) or phase("Succeeded")(found))


WRITES = """
import os, time
while True:
    os.makedirs(f'{os.environ["TMPDIR"]}/{time.time_ns()}', exist_ok=True)
    print('writes', flush=True)
    time.sleep(0.01)
"""


@pytest.mark.parametrize("grace", [0, 1])
async def test_a_pod_that_writes_until_it_is_killed_leaves_no_folder(
    started: Topology, grace: int
) -> None:
    kube, host = started.clusters["a"].kube, started.machine.host._process.pid
    found = await kube.create(PODS, pod(*python(WRITES)), namespace="default")
    uid = found["metadata"]["uid"]
    folders = [
        started.directory / "pods" / "a" / "pods" / uid,
        Path(tempfile.gettempdir()) / f"hyperjob-pod-{uid[:8]}",
    ]
    await until(kube, phase("Running"))
    while "writes" not in await log(kube):  # noqa: ASYNC110, read as a user would
        await asyncio.sleep(0.02)
    assert all(each.exists() for each in folders)
    os.kill(host, signal.SIGSTOP)  # the process is killed late, as on a loaded machine
    try:
        path = PODS.path("default", "p")
        await kube.raw("DELETE", path, params={"gracePeriodSeconds": str(grace)})
        later = time.time_ns() + 300_000_000
        await holds(lambda: any(int(each.name) > later for each in folders[1].iterdir()))
    finally:
        os.kill(host, signal.SIGCONT)
    await is_gone(kube, "p")
    await holds(lambda: not any(each.exists() for each in folders))


async def test_a_container_sees_its_volumes_names_variables_and_accelerators(
    topology: Topology,
) -> None:
    kube = topology.clusters["a"].kube
    await kube.create(
        CONFIG_MAPS,
        {
            **CONFIG_MAPS.head,
            "metadata": {"name": "cm", "namespace": "default"},
            "data": {"x.txt": "from the map"},
        },
        namespace="default",
    )
    text = (
        "import json, os, socket;"
        "print(json.dumps({"
        "'file': open('/settings/x.txt').read(),"
        "'host': socket.gethostname(),"
        "'own': socket.gethostbyname('p.svc-1'),"
        "'ip': os.environ['IP'],"
        "'gpus': os.environ['CUDA_VISIBLE_DEVICES'],"
        "'token': os.path.exists('/var/run/secrets/kubernetes.io'),"
        "'argument': __import__('sys').argv[1]}))"
    )
    made = pod(
        *python(text),
        subdomain="svc-1",
        volumes=[{"name": "s", "configMap": {"name": "cm"}}],
        container={
            "args": ["$(IP)/$(NOT)"],
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "volumeMounts": [{"name": "s", "mountPath": "/settings"}],
            "resources": {"limits": {"nvidia.com/gpu": 2}},
        },
    )
    found = await ended(kube, made)
    assert phase("Succeeded")(found), await log(kube)
    seen = json.loads(await log(kube))
    address = found["status"]["podIP"]
    assert seen == {
        "file": "from the map",
        "host": "p" if topology.machine.host.permitted else seen["host"],
        "own": address,
        "ip": address,
        "gpus": "0,1",
        "token": False,
        "argument": f"{address}/$(NOT)",
    }


async def test_pods_of_two_clusters_talk_by_name_and_share_an_export(topology: Topology) -> None:
    a, b = (topology.clusters[name].kube for name in "ab")
    shared = {
        "subdomain": "job",
        "volumes": [{"name": "s", "nfs": {"server": "nfs", "path": "/store"}}],
    }
    mounted = {"container": {"volumeMounts": [{"name": "s", "mountPath": "/store"}]}}
    serve = (
        "import socket; s = socket.create_server((socket.gethostbyname('p.job'), 7000));"
        "open('/store/ready', 'w').close(); c, _ = s.accept(); c.sendall(b'hello from a')"
    )
    call = (
        "import os, socket, time\n"
        "while not os.path.exists('/store/ready'): time.sleep(0.02)\n"
        "print(socket.create_connection(('p.a.job.default.svc.clusterset.local', 7000))"
        ".recv(99).decode())"
    )
    await a.create(PODS, pod(*python(serve), **shared, **mounted), namespace="default")
    await until(a, phase("Running"))
    await b.create(
        PODS, pod(*python(call), cluster_node="b-n-1", **shared, **mounted), namespace="default"
    )
    await until(b, lambda found: phase("Succeeded")(found) or phase("Failed")(found))
    assert await log(b) == "hello from a\n"


async def test_a_container_that_fails_is_started_again_and_keeps_its_last_log(
    topology: Topology,
) -> None:
    kube = topology.clusters["a"].kube
    text = (
        "import os, sys; n = len(os.listdir('/keep')); open(f'/keep/{n}', 'w').close();"
        "print('try', n); sys.exit(n < 2)"
    )
    made = pod(
        *python(text),
        restartPolicy="OnFailure",
        volumes=[{"name": "k", "emptyDir": {}}],
        container={"volumeMounts": [{"name": "k", "mountPath": "/keep"}]},
    )
    found = await ended(kube, made)
    assert phase("Succeeded")(found)
    assert container(found)["restartCount"] == 2
    assert container(found)["lastState"]["terminated"]["exitCode"] == 1
    assert await log(kube) == "try 2\n"
    assert await log(kube, previous="true") == "try 1\n"
    logs = topology.directory / "pods/a/pods" / found["metadata"]["uid"] / "logs"
    assert {path.name for path in logs.iterdir()} == {"main-1.log", "main-2.log"}


async def test_deletion_gives_the_grace_period_and_then_kills(topology: Topology) -> None:
    kube = topology.clusters["a"].kube
    saves = (
        "import signal, sys, time;"
        "signal.signal(signal.SIGTERM, lambda *_: (open('/out/saved', 'w').close(), sys.exit()));"
        "print('up');\nwhile True: time.sleep(1)"
    )
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up');\n"
        "while True: time.sleep(1)"
    )
    out = {"volumes": [{"name": "o", "hostPath": {"path": "/out"}}]}
    mounted = {"container": {"volumeMounts": [{"name": "o", "mountPath": "/out"}]}}
    for name, text in (("saves", saves), ("stubborn", stubborn)):
        made = pod(*python(text), name=name, terminationGracePeriodSeconds=1, **out, **mounted)
        await kube.create(PODS, made, namespace="default")
        await until(kube, phase("Running"), name=name)
        path = f"{PODS.path('default', name)}/log"
        async for line in raw_lines(kube, path, params={"follow": "true"}):
            assert line == b"up"
            break
        await kube.delete(PODS, name, namespace="default")
        await is_gone(kube, name)
    assert (topology.directory / "pods/a/host/out/saved").exists()
    assert not marked("stubborn")


async def test_init_containers_run_in_order_and_sidecars_as_long_as_the_pod(
    topology: Topology,
) -> None:
    kube = topology.clusters["a"].kube
    keep = {"volumeMounts": [{"name": "k", "mountPath": "/keep"}], "image": "any"}
    made = pod(
        *python("print(open('/keep/order').read(), end='')"),
        volumes=[{"name": "k", "emptyDir": {}}],
        initContainers=[
            {"name": "one", "command": ["sh", "-c", "echo one >> /keep/order"], **keep},
            {
                "name": "side",
                "command": ["sh", "-c", "echo side >> /keep/order; sleep 1000"],
                "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["grep", "side", "/keep/order"]},
                                 "periodSeconds": 1},
                **keep,
            },
            {"name": "two", "command": ["sh", "-c", "echo two >> /keep/order"], **keep},
        ],
        terminationGracePeriodSeconds=1,
        container={"volumeMounts": keep["volumeMounts"]},
    )  # fmt: skip
    found = await ended(kube, made)
    assert phase("Succeeded")(found), found["status"]
    assert await log(kube) == "one\nside\ntwo\n"
    assert not marked(found["metadata"]["uid"])


async def test_probes_decide_on_readiness_and_on_restarts(topology: Topology) -> None:
    kube = topology.clusters["a"].kube
    text = (
        "import socket, time; s = socket.create_server((socket.gethostbyname('p'), 7001));"
        "print('listens');\nwhile True: time.sleep(1)"
    )
    made = pod(
        *python(text),
        restartPolicy="Always",
        terminationGracePeriodSeconds=1,
        container={
            "readinessProbe": {"tcpSocket": {"port": 7001}, "periodSeconds": 1},
            "livenessProbe": {
                "exec": {"command": ["sh", "-c", "exit 1"]},
                "initialDelaySeconds": 2,
                "periodSeconds": 1,
                "failureThreshold": 1,
            },
        },
    )
    await kube.create(PODS, made, namespace="default")
    await until(kube, lambda found: phase("Running")(found) and container(found)["ready"])
    found = await until(kube, lambda found: container(found)["restartCount"] >= 1)
    assert phase("Running")(found)


async def test_a_log_is_bounded_on_disk_and_keeps_its_end(
    topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostclient, "LOG_LIMIT", 20_000)
    kube = topology.clusters["a"].kube
    text = "for n in range(20000): print('line', n)"
    found = await ended(kube, pod(*python(text)))
    lines = (await log(kube)).splitlines()
    assert lines[-1] == "line 19999"
    assert 100 < len(lines) < 20_000
    folder = topology.directory / "pods/a/pods" / found["metadata"]["uid"] / "logs"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 40_000


async def test_a_container_that_allocates_more_than_its_memory_limit_fails(
    topology: Topology,
) -> None:
    kube = topology.clusters["a"].kube
    text = "import sys; held = bytearray(int(sys.argv[1]) << 20); print(len(held) >> 20)"
    limit = {"container": {"resources": {"limits": {"memory": "256Mi"}}}}
    for name, mib, wanted in (("small", 64, "Succeeded"), ("large", 512, "Failed")):
        await kube.create(PODS, pod(*python(text), str(mib), name=name, **limit))
        await until(kube, phase(wanted), name=name)
    assert await log(kube, name="small") == "64\n"
    assert "MemoryError" in await log(kube, name="large")


async def test_without_mount_namespaces_paths_and_names_are_replaced(
    topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology.machine.host, "permitted", False)
    assert (
        "addresses and folders replace names of pods and mount paths"
        in topology.machine.description
    )
    a, b = (topology.clusters[name].kube for name in "ab")
    fields = {
        "subdomain": "job",
        "volumes": [{"name": "k", "emptyDir": {}}],
    }
    serve = (
        "import os, socket; open(os.environ['FILE'], 'w').write('kept');"
        "s = socket.create_server((os.environ['OWN'], 7002)); print('listens');"
        "c, _ = s.accept(); c.sendall(open(os.environ['FILE']).read().encode())"
    )
    made = pod(
        *python(serve),
        **fields,
        container={
            "env": [{"name": "FILE", "value": "/keep/file"}, {"name": "OWN", "value": "p.job"}],
            "volumeMounts": [{"name": "k", "mountPath": "/keep"}],
        },
    )
    await a.create(PODS, made, namespace="default")
    await until(a, phase("Running"))
    path = f"{PODS.path('default', 'p')}/log"
    async for line in raw_lines(a, path, params={"follow": "true"}):
        assert line == b"listens"
        break
    call = "import sys, socket; print(socket.create_connection((sys.argv[1], 7002)).recv(99))"
    there = "p.a.job.default.svc.clusterset.local"
    await b.create(PODS, pod(*python(call), there, cluster_node="b-n-1"), namespace="default")
    await until(b, lambda found: phase("Succeeded")(found) or phase("Failed")(found))
    assert await log(b) == "b'kept'\n"


async def test_a_container_waits_for_what_it_refers_to(topology: Topology) -> None:
    kube = topology.clusters["a"].kube
    env = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "x"}}}]
    made = pod("sh", "-c", "echo $X", container={"env": env})
    await kube.create(PODS, made, namespace="default")

    def waits(found: Obj) -> bool:
        state = (found.get("status") or {}).get("containerStatuses") or [{"state": {}}]
        waiting = state[0]["state"].get("waiting") or {}
        return waiting.get("message") == 'configmap "late" not found'

    await until(kube, waits)
    late = {
        **CONFIG_MAPS.head,
        "metadata": {"name": "late", "namespace": "default"},
        "data": {"x": "there"},
    }
    await kube.create(CONFIG_MAPS, late, namespace="default")
    await until(kube, phase("Succeeded"))
    assert await log(kube) == "there\n"


def marked(text: str) -> list[int]:
    """Return the processes of containers whose environment holds a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"HYPERJOB_SANDBOX_CONTAINER=" in environ and text.encode() in environ:
                found.append(int(entry.name))
    return found


PROGRAM = """
import asyncio, sys
from pathlib import Path
from hyperjob_core.kube.resources import PODS
from hyperjob_sandbox.clusters import parse
from hyperjob_sandbox.processes import hostclient
from hyperjob_sandbox.topology import Topology
from tests.support.rawlog import raw_lines
from tests.support.stack import kubectl
from tests.support.rawlog import raw_lines

async def main():
    config, folder, mark = Path(sys.argv[1]).read_text(), Path(sys.argv[2]), sys.argv[3]
    async with Topology(parse(config), folder) as topology:
        kube = topology.clusters["a"].kube
        escapes = f"(setsid sleep 1000 &) ; sleep 1000 & exec sleep 1000"
        for number in range(5):
            spec = {"nodeName": "a-n-1", "containers": [
                {"name": "c", "image": "i", "command": ["sh", "-c", escapes],
                 "env": [{"name": "MARK", "value": mark}]}]}
            meta = {"name": f"p{number}", "namespace": "default"}
            await kube.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                                     "spec": spec}, namespace="default")
        running = 0
        while running < 5:
            await asyncio.sleep(0.05)
            pods = (await kube.list(PODS, namespace="default")).items
            running = sum((p.get("status") or {}).get("phase") == "Running" for p in pods)
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_no_process_outlives_the_sandbox(tmp_path: Path, number: signal.Signals) -> None:
    """HYPERJOB_ORPHAN_ROUNDS repeats it."""
    (tmp_path / "clusters.yaml").write_text(CONFIG)
    (tmp_path / "program.py").write_text(PROGRAM)
    for count in range(int(os.environ.get("HYPERJOB_ORPHAN_ROUNDS", "1"))):
        mark = f"mark-{uuid4().hex}"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(tmp_path / "program.py"),
            str(tmp_path / "clusters.yaml"),
            str(tmp_path / f"sandbox-{count}"),
            mark,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "TMPDIR": str(tmp_path),
            },
        )
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"ready\n"
        await holds(lambda mark=mark: len(marked(mark)) == 15)
        process.send_signal(number)
        await process.wait()
        await holds(lambda mark=mark: not marked(mark))


async def test_the_sandbox_fails_when_the_parent_of_all_processes_dies(tmp_path: Path) -> None:
    async with Topology(parse(CONFIG), tmp_path) as topology:
        failing: Awaitable[None] = asyncio.ensure_future(topology.failure())
        os.kill(topology.machine.host._process.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            with pytest.raises(Exception, match="all containers with it"):
                await failing
