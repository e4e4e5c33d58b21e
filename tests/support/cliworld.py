"""A control plane with one member and constant objects: the output of commands is constant."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from docs.generators.cli import role
from docs.generators.rights import RIGHTS, Right
from hyperjob.cli import main
from hyperjob_core.api.names import LABEL_HYPERJOB, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists
from hyperjob_core.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTERS,
    HYPERJOBS,
    NAMESPACES,
    PODS,
    QUEUES,
    VCJOBS,
    Resource,
)
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.authorization import Action
from hyperjob_sandbox.karmada.definitions import control_plane_definitions
from hyperjob_sandbox.karmada.proxy import SUBRESOURCE, ClusterProxy
from tests.support import hyperjobs
from tests.support.stack import HYPERJOB_CRD, KUBECTL
from tests.support.terminal import shown_on_terminal

Object = dict[str, Any]
USER = "ann"
NAMESPACE = "ml"
GPU = "nvidia.com/gpu"
ENDED = {
    "startedAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:00:03Z",
    "exitCode": 0,
}


@dataclass
class CliWorld:
    """Runs commands as user ann with the rights of the reference; `heard` are her requests."""

    server: ApiServer
    kube: Kube
    member: Kube
    kubeconfig: Path
    heard: list[tuple[User, Action]]
    watched: asyncio.Event
    asked: list[Action]
    asking: asyncio.Event

    async def run(self, *words: str, **more: Any) -> Result:
        """Run a command in a thread of this process, while the server answers."""
        environment = {"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "300"}
        return await asyncio.to_thread(
            CliRunner().invoke, main, list(words), env=environment | more.pop("env", {}), **more
        )

    async def plugin(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `kubectl hyperjob …` as a process."""
        return await self.kubectl("hyperjob", *words)

    async def kubectl(
        self, *words: str, path: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as ann, with a folder of programs first on PATH."""
        return await asyncio.to_thread(
            subprocess.run,
            [KUBECTL, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={
                "PATH": f"{path or KUBECTL.parent}:{KUBECTL.parent}:/usr/bin:/bin",
                "HOME": str(self.kubeconfig.parent),
                "KUBECONFIG": str(self.kubeconfig),
            },
        )

    async def on_terminal(self, *words: str, **environment: str) -> str:
        """Run a command on a terminal; return its output with escapes."""
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.kubeconfig.parent),
            "KUBECONFIG": str(self.kubeconfig),
            "TERM": "xterm-256color",
            **environment,
        }
        command = [sys.executable, "-m", "hyperjob", *words]
        code, shown = await asyncio.to_thread(shown_on_terminal, command, env)
        assert code == 0, shown
        return shown

    async def into(self, output: int, *words: str) -> tuple[int, str]:
        """Run a command with a descriptor as output; return exit code and standard error."""

        def run() -> tuple[int, str]:
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "hyperjob", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=60,
                    env={"PATH": "/usr/bin:/bin", "KUBECONFIG": str(self.kubeconfig)},
                )
            finally:
                os.close(output)
            return done.returncode, done.stderr

        return await asyncio.to_thread(run)

    def actions(self) -> set[tuple[str, str, str]]:
        """Return (group, resource, verb) of ann's requests."""
        return {
            (
                action.group,
                action.resource + (f"/{action.subresource}" if action.subresource else ""),
                action.verb,
            )
            for user, action in self.heard
            if user.name == USER and action.resource
        }

    async def hyperjob(self, name: str) -> Object:
        """Read a HyperJob."""
        return await self.kube.get(HYPERJOBS, name, namespace=NAMESPACE)

    async def make(self, resource: Resource, obj: Object, status: Object | None = None) -> None:
        """Create an object with its status."""
        await self.kube.create(resource, obj)
        if status is not None:
            await self.set_status(resource, obj["metadata"]["name"], status)

    async def set_status(self, resource: Resource, name: str, status: Object) -> None:
        """Write a status."""
        await self.kube.patch(
            resource,
            name,
            {"status": status},
            kind=PatchType.MERGE,
            namespace=NAMESPACE if resource.namespaced else None,
            subresource="status",
        )

    async def asked_member(self, verb: str, path: str, *, after: int = 0) -> int:
        """Wait for a request for pods, or for `NAME/log`, in the member; return their number.

        The first `after` requests do not count.
        """
        while not any(
            (action.verb, f"{action.name}/{action.subresource}") == (verb, path)
            and action.resource == "pods"
            for action in self.asked[after:]
        ):
            await self.asking.wait()
            self.asking.clear()
        return len(self.asked)

    async def pod(
        self,
        name: str,
        state: Object,
        *,
        index: int = 0,
        restarts: int = 0,
        before: Object | None = None,
        phase: str = "Succeeded",
    ) -> None:
        """Create a pod of a sub-job in the member, or change its state.

        `before` is the state of its containers before their restart.
        """
        labels = {
            "volcano.sh/job-name": name.rsplit("-worker-", 1)[0],
            "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": str(index),
        }
        containers = [{"name": each, "image": "a"} for each in ("main", "side")]
        pod = {
            **PODS.head,
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"nodeName": "node-1", "containers": containers},
        }
        with contextlib.suppress(AlreadyExists):
            await self.member.create(PODS, pod)
        if "running" in state:
            phase = "Running"
        told = [
            {
                "name": item["name"],
                "state": state,
                "restartCount": restarts,
                "lastState": before or {},
            }
            for item in containers
        ]
        await self.member.patch(
            PODS,
            name,
            {"status": {"phase": phase, "containerStatuses": told}},
            kind=PatchType.MERGE,
            namespace=NAMESPACE,
            subresource="status",
        )

    async def take(self, kind: str) -> None:
        """Record a request of HyperJob llm as a controller does, once the command watches."""
        annotation = RESTART_REQUEST if kind == "restart" else MIGRATE_REQUEST
        while True:
            found = await self.hyperjob("llm")
            words = (found["metadata"].get("annotations") or {}).get(annotation, "").split()
            if words:
                async with asyncio.timeout(60):
                    await self.watched.wait()
                await self.set_status(HYPERJOBS, "llm", {"requests": {kind: words[0]}})
                return
            await asyncio.sleep(0.02)


async def open_world(stack: AsyncExitStack, directory: Path) -> CliWorld:
    """Start both servers and create the objects."""
    heard: list[tuple[User, Action]] = []
    watched = asyncio.Event()

    def note(user: User, action: Action, _allowed: bool) -> None:
        heard.append((user, action))
        if (user.name, action.verb) == (USER, "watch"):
            watched.set()

    asked: list[Action] = []
    asking = asyncio.Event()

    def note_there(_user: User, action: Action, _allowed: bool) -> None:
        asked.append(action)
        asking.set()

    member = await stack.enter_async_context(ApiServer(name="east", audit=note_there))
    member.kubeconfig(directory / "east")
    there = await stack.enter_async_context(Kube.connect(kubeconfig=directory / "east"))
    server = await stack.enter_async_context(
        ApiServer(
            rbac=True,
            audit=note,
            crds=[*control_plane_definitions(), yaml.safe_load(HYPERJOB_CRD.read_text())],
            connectors={SUBRESOURCE: ClusterProxy({"east": member})},
        )
    )
    kube = await stack.enter_async_context(
        Kube.connect(kubeconfig=server.kubeconfig(directory / "admin"))
    )
    kubeconfig = server.kubeconfig(directory / USER, user=USER, groups=("dev",))
    document = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = NAMESPACE
    kubeconfig.write_text(yaml.safe_dump(document))
    world = CliWorld(server, kube, there, kubeconfig, heard, watched, asked, asking)
    for each in (kube, there):
        await each.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
    await _allow(kube)
    await _fill(world)
    for index in range(2):
        await world.pod(f"llm-trainer-0-worker-{index}", {"terminated": ENDED}, index=index)
    return world


def hyperjob(name: str, **spec: Any) -> Object:
    """Return a HyperJob of two sub-jobs of eight GPUs."""
    template = hyperjobs.job_template(pods=2, resources={"limits": {GPU: "4"}})
    made = hyperjobs.hyperjob(name, template, namespace=NAMESPACE, replicas=2, **spec)
    made["metadata"]["labels"] = {"team": name}
    return made


def status(name: str, phase: str, *jobs: Object, message: str = "", **more: Any) -> Object:
    """Return the status of such a HyperJob."""
    return {
        "observedGeneration": 1,
        "state": {"phase": phase, "reason": "JobsRunning", "message": message},
        "jobs": [
            {
                "name": f"{name}-trainer-{index}",
                "replicatedJob": "trainer",
                "index": index,
                "phase": phase,
                "pods": 2,
                "accelerators": 8,
                **job,
            }
            for index, job in enumerate(jobs)
        ],
        "jobsReady": f"{sum(job.get('phase', phase) == 'Running' for job in jobs)}/{len(jobs)}",
        "queue": "default",
        **more,
    }


async def _fill(world: CliWorld) -> None:
    running = status(
        "llm",
        "Running",
        {"cluster": "east", "running": 2, "phase": "Running"},
        {"cluster": "east", "running": 0, "phase": "Running"},
        message="2 of 2 sub-jobs run",
        runningPods=2,
    )
    await world.make(HYPERJOBS, hyperjob("llm"), running)
    waiting = {"phase": "Queued", "reason": "WaitingForQueue", "message": "waits"}
    queued = status("queued", "Queued", waiting, waiting, message="waits for queue default")
    queued["state"]["reason"] = "WaitingForQueue"
    await world.make(HYPERJOBS, hyperjob("queued"), queued)
    done = status("done", "Completed", {"cluster": "east"}, {"cluster": "east"})
    await world.make(HYPERJOBS, hyperjob("done"), done)
    await world.make(
        VCJOBS,
        {
            **VCJOBS.head,
            "metadata": {
                "name": "llm-trainer-0",
                "namespace": NAMESPACE,
                "labels": {LABEL_HYPERJOB: "llm"},
            },
            "spec": {
                "tasks": [hyperjob("llm")["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]]
            },
        },
        {"running": 2, "taskStatusCount": {"worker": {"phase": {"Running": 2}}}},
    )
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}}
    await world.make(QUEUES, {**queue, "spec": {"weight": 1}}, {"state": "Open"})
    cluster = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "east"}}
    await world.make(
        CLUSTERS,
        {**cluster, "spec": {"syncMode": "Push"}},
        {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Test",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "resourceSummary": {"allocatable": {GPU: "32"}, "allocated": {GPU: "16"}},
        },
    )


async def _allow(kube: Kube) -> None:
    rights = [right for rights in RIGHTS.values() for right in rights]
    submit = Right(group=HYPERJOBS.group, resource=HYPERJOBS.plural, verbs=("create", "delete"))
    await kube.create(CLUSTER_ROLES, role("all-rights", [submit, *rights]))
    await kube.create(
        CLUSTER_ROLE_BINDINGS,
        {
            "apiVersion": CLUSTER_ROLE_BINDINGS.api_version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "users"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "all-rights",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        },
    )


def words_of(lines: Sequence[str]) -> list[list[str]]:
    """Return the words of each line of a table."""
    return [line.split() for line in lines]
