"""Run the containers of pods as local processes, for tests of the chart.

A pod gets only its Secrets as files and its service account's token. Fixed paths in arguments and
environment are replaced by paths below a directory of the pod.
"""

import asyncio
import base64
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import PODS, SECRETS, Resource
from tests.support.controller import eventually
from tests.support.rooms import PACKAGES

Object = dict[str, Any]
JOBS = Resource("batch", "v1", "jobs", "Job")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SECONDS = 120


class Kubelet:
    """Runs the Jobs and pods of one namespace; `kube` has the rights of an administrator."""

    def __init__(self, kube: Kube, kubeconfig: Path, *, namespace: str, directory: Path) -> None:
        self._kube = kube
        self._namespace = namespace
        self._directory = directory
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        self._server = urlsplit(cluster["server"])
        self._authority = base64.b64decode(cluster["certificate-authority-data"])
        self._pods = 0
        self.output: dict[str, str] = {}
        """What each container printed, by `job/container`; the last run's."""
        self.order: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch and run Jobs and bare pods until the end of the block."""
        tasks = [asyncio.create_task(self._follow(kind)) for kind in (JOBS, PODS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if not isinstance(result, asyncio.CancelledError | None):
                    raise result

    async def _follow(self, resource: Resource) -> None:
        version = (await self._kube.list(resource, namespace=self._namespace)).resource_version
        events = self._kube.watch(resource, namespace=self._namespace, resource_version=version)
        async with aclosing(events) as found:
            async for event in found:
                if event.type is EventType.ADDED:
                    await self._run_job(resource, event.object)

    async def _run_job(self, resource: Resource, owner: Object) -> None:
        spec = owner["spec"]["template"]["spec"] if resource is JOBS else owner["spec"]
        name = owner["metadata"]["name"]
        self.order.append(name)
        succeeded = await self.pod(name, spec)
        end = _end if resource is JOBS else _pod_end
        await self._kube.patch(
            resource,
            name,
            {"status": end(spec, succeeded=succeeded)},
            kind=PatchType.MERGE,
            namespace=self._namespace,
            subresource="status",
        )

    async def pod(self, name: str, spec: Object) -> bool:
        """Run a pod's containers one after the other; return False when a container failed."""
        root = await self.root(spec)
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            process = await self.start(root, spec, container)
            async with asyncio.timeout(_SECONDS):
                output, _ = await process.communicate()
            self.output[f"{name}/{container['name']}"] = output.decode()
            if process.returncode:
                return False
        return True

    async def root(self, spec: Object) -> Path:
        """Create the files of a pod's containers; return their root directory."""
        self._pods += 1
        root = self._directory / f"pod{self._pods}"
        await self.mount(root, spec)
        if spec.get("automountServiceAccountToken", True):
            await self._account(root / "container" / _ACCOUNT.lstrip("/"), spec)
        return root

    async def mount(self, root: Path, spec: Object) -> None:
        """Write the volumes of a pod; also called after a change of a Secret."""
        for volume in spec.get("volumes", ()):
            path = root / "volumes" / volume["name"]
            path.mkdir(parents=True, exist_ok=True)
            if "secret" in volume:
                await self._secret(path, volume["secret"]["secretName"], volume["secret"])
            for source in volume.get("projected", {}).get("sources", ()):
                await self._secret(path, source["secret"]["name"], source["secret"])

    async def start(
        self,
        root: Path,
        spec: Object,
        container: Object,
        *more: str,
        log: Path | None = None,
    ) -> asyncio.subprocess.Process:
        """Start a container; later flags override those of the chart."""
        files = root / "container"
        for mount in container.get("volumeMounts", ()):
            link = files / mount["mountPath"].lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(root / "volumes" / mount["name"])
        places = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "PYTHONPATH": os.pathsep.join(str(folder.parent) for folder in PACKAGES.values()),
            **{e["name"]: _led(e["value"], files, places) for e in container.get("env", ())},
        }
        if (files / _ACCOUNT.lstrip("/")).exists():
            environment["KUBERNETES_SERVICE_HOST"] = self._server.hostname or ""
            environment["KUBERNETES_SERVICE_PORT"] = str(self._server.port)
        arguments = [_led(word, files, places) for word in container.get("args", ())]
        command = [sys.executable, "-m", "tests.support.container", str(files)]
        with ExitStack() as stack:
            sink = stack.enter_context(log.open("ab")) if log else asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(
                *(*command, *container["command"], *arguments, *more),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=asyncio.subprocess.STDOUT,
            )

    async def _secret(self, path: Path, name: str, source: Object) -> None:
        async def made() -> bool:
            with contextlib.suppress(NotFound):
                found.append(await self._kube.get(SECRETS, name, namespace=self._namespace))
            return bool(found) or bool(source.get("optional"))

        found: list[Object] = []
        await eventually(made, what=f"Secret {name}, for which a pod waits")
        if not found:
            return
        (secret,) = found
        data = secret.get("data") or {}
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        for item in items:
            if item["key"] in data:
                (path / item["path"]).write_bytes(base64.b64decode(data[item["key"]]))
            elif not source.get("optional"):
                raise AssertionError(f"Secret {name} has no {item['key']}")

    async def _account(self, path: Path, spec: Object) -> None:
        account = spec.get("serviceAccountName", "default")
        answer = await self._kube.raw(
            "POST",
            f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 3600},
            },
        )
        path.mkdir(parents=True)
        (path / "token").write_text(answer.json()["status"]["token"])
        (path / "ca.crt").write_bytes(self._authority)


def _pod_end(spec: Object, *, succeeded: bool) -> Object:
    """Return the status of a pod that has ended, as the kubelet writes it."""
    ended = {"exitCode": 0 if succeeded else 1, "startedAt": _now(), "finishedAt": _now()}
    return {
        "phase": "Succeeded" if succeeded else "Failed",
        "containerStatuses": [
            {
                "name": container["name"],
                "ready": False,
                "restartCount": 0,
                "image": "",
                "imageID": "",
            }
            | {"state": {"terminated": ended}}
            for container in spec["containers"]
        ],
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _end(spec: Object, *, succeeded: bool) -> Object:
    """Return the status of a Job that has ended, as the Job controller writes it."""
    now = _now()
    kinds = ("SuccessCriteriaMet", "Complete") if succeeded else ("FailureTarget", "Failed")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds]
    counts: Object = {"completionTime": now, "succeeded": 1} if succeeded else {"failed": 1}
    return {"startTime": now, "uncountedTerminatedPods": {}, "conditions": conditions, **counts}


def _led(text: str, files: Path, places: Sequence[str]) -> str:
    """Return a text with paths of the container replaced by paths below its root."""
    pattern = "|".join(re.escape(place) for place in places)
    return re.sub(pattern, lambda found: str(files / found[0].lstrip("/")), text)
