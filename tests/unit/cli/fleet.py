"""Commands in this process, on an API server in memory with members behind its cluster proxy."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS, PODS, VCJOBS
from hyperjob_core.kube.transport import Params, Response
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.objects import hyperjob, sub_job

Object = dict[str, Any]
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters/"


class Fleet(ApiServer):
    """A Karmada API server; `members` are those of its clusters, by name.

    `logs` has the lines of a log by pod and container, each behind its time, and `asked` the
    parameters of each reading. A log ends after its lines, also for a follower.
    """

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, ApiServer] = {}
        self.logs: dict[tuple[str, str], list[str]] = {}
        self.asked: list[Mapping[str, str]] = []
        self.kube = Kube(self, namespace="ml")

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path.startswith(_CLUSTERS) and "/proxy/" in path:
            name, _, rest = path.removeprefix(_CLUSTERS).partition("/proxy/")
            if name not in self.members:
                raise refusal(503, "ServiceUnavailable", f"cluster {name} is unreachable")
            return await self.members[name].request(method, f"/{rest}", **more)
        return await super().request(method, path, **more)

    async def stream(
        self, path: str, *, params: Params, **more: Any
    ) -> AsyncGenerator[bytes, None]:
        if not path.endswith("/log"):
            async for part in super().stream(path, params=params, **more):
                yield part
            return
        self.asked.append(params)
        pod = path.split("/")[-2]
        lines = self.logs.get((pod, params.get("container", "")))
        if lines is None:
            raise refusal(404, "NotFound", f"pod {pod} has no log")
        if opened := more.get("opened"):
            opened()
        tail = params.get("tailLines")
        chosen = lines if tail is None else lines[len(lines) - min(int(tail), len(lines)) :]
        yield "".join(f"{line}\n" for line in chosen).encode()

    def pod(self, cluster: str, job: str, *lines: str, index: int = 0, **status: Any) -> Object:
        """Store a running pod of a sub-job in its member, with the lines of its log."""
        name = f"{job}-worker-{index}"
        labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "worker"}
        state = {"name": "main", "restartCount": 0, "state": {"running": {}}}
        made = {
            "metadata": {
                "name": name,
                "namespace": "ml",
                "labels": {**labels, "volcano.sh/task-index": str(index)},
            },
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [state], **status},
        }
        self.members.setdefault(cluster, ApiServer()).put(PODS, made)
        self.logs[name, "main"] = list(lines)
        return made

    def hyperjob(self, obj: Object, name: str = "llm") -> None:
        """Store a HyperJob under another name."""
        metadata = {**obj["metadata"], "name": name, "uid": f"uid-{name}"}
        self.put(HYPERJOBS, {**obj, "metadata": metadata})

    def stored(self, name: str = "llm") -> Object:
        found = self.get(HYPERJOBS, f"ml/{name}")
        assert found is not None
        return found

    def vcjob(self, name: str, **labels: str) -> None:
        metadata = {"name": name, "namespace": "ml", "labels": labels}
        self.put(VCJOBS, {"metadata": metadata, "spec": {}})


def running(**more: Any) -> Object:
    """Build HyperJob ml/llm, whose two sub-jobs run in east and west in their second attempt."""
    jobs = [
        sub_job(index, phase="Running", cluster=where, attempt=1)
        for index, where in enumerate(("east", "west"))
    ]
    return hyperjob("Running", *jobs, **more)


def accepting(fleet: Fleet, *, attempt: int | None = None) -> None:
    """Let a controller accept requests, set phases, and start the sub-jobs in an attempt."""

    def heard(kind: str, _old: Object | None, new: Object | None) -> None:
        if kind != HYPERJOBS.kind or new is None:
            return
        status = dict(new["status"])
        notes = new["metadata"].get("annotations") or {}
        for word, annotation in (("restart", RESTART_REQUEST), ("migrate", MIGRATE_REQUEST)):
            if annotation in notes:
                status["requests"] = {word: notes[annotation].split()[0]}
        suspended = new["spec"].get("suspend")
        if suspended is not None:
            phase = "Suspended" if suspended else "Running"
            generation = new["metadata"]["generation"]
            status |= {"state": {"phase": phase}, "observedGeneration": generation}
        if attempt is not None:
            status["jobs"] = [{**job, "attempt": attempt} for job in status["jobs"]]
        if status != new["status"]:
            fleet.put(HYPERJOBS, {**new, "status": status})

    fleet.listen(heard)


Run = Callable[..., Result]


def runner(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command on this API server."""

    fleet.serve(monkeypatch, Kube)

    def run(*words: str) -> Result:
        fleet.kube = Kube(fleet, namespace="ml")  # each command has an event loop of its own
        return CliRunner().invoke(main, list(words), env={"COLUMNS": "300"})

    return run
