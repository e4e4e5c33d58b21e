"""Create the HyperJob of the smoke test, wait for its end and read its logs."""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing

import yaml

from hyperjob.client.clusters import is_ready
from hyperjob.client.errors import ClientError
from hyperjob.client.goals import Goal, parse_goal, reach
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.standing import ChosenLogs
from hyperjob.client.summary import read
from hyperjob_core.api.lines import LogLine
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, key_of

_GOAL: Goal = parse_goal("condition=Completed")
_CLUSTERS = 2


def manifest(
    example: str, *, clusters: Sequence[str], image: str | None = None, queue: str | None = None
) -> Object:
    """Return the example with a name of its own and a replicated job pinned to each cluster."""
    made: Object = yaml.safe_load(example)
    made["metadata"]["name"] = f"smoke-test-{secrets.token_hex(2)}"
    (pattern,) = made["spec"]["replicatedJobs"]
    template = pattern["templateSpec"]
    if queue:
        template["queue"] = queue
    if image:
        template["tasks"][0]["template"]["spec"]["containers"][0]["image"] = image
    made["spec"]["minAvailable"] = len(clusters)
    made["spec"]["replicatedJobs"] = [
        {
            "name": f"hello-{number}",
            "clusterNames": [cluster],
            "clusterPolicy": "Required",
            "templateSpec": template,
        }
        for number, cluster in enumerate(clusters)
    ]
    return made


class Trial:
    """One run of the smoke test in a namespace."""

    def __init__(self, kube: Kube, namespace: str, *, say: Callable[[str], None]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._say = say
        self._started = time.monotonic()
        self._last = ""

    async def clusters(self, wanted: Sequence[str]) -> list[str]:
        """Return the clusters `wanted`, else the first two by name that are Ready."""
        if wanted:
            return list(dict.fromkeys(wanted))
        listed = await self._kube.list(CLUSTERS)
        return sorted(map(key_of, filter(is_ready, listed.items)))[:_CLUSTERS]

    async def run(self, made: Object, *, seconds: float) -> Object:
        """Run the HyperJob and return a report; ClientError when the HyperJob does not complete."""
        name = made["metadata"]["name"]
        clusters = [job["clusterNames"][0] for job in made["spec"]["replicatedJobs"]]
        self._tell(f"creating HyperJob {name} on {', '.join(clusters)}")
        created = await self._kube.create(HYPERJOBS, made, namespace=self._namespace)
        try:
            await reach(
                self._kube, self._namespace, name, _GOAL, seconds=seconds, progress=self._tell
            )
        except ClientError as error:
            where = f"{name} -n {self._namespace}"
            hint = f"the HyperJob is kept: kubectl hyperjob why {where}; kubectl delete hj {where}"
            raise type(error)(f"{error}; {hint}") from None
        lines = await self._logs(name)
        took = time.monotonic() - self._started
        uid = created["metadata"]["uid"]
        await self._kube.delete(HYPERJOBS, name, namespace=self._namespace, uid=uid)
        self._tell(f"completed on {', '.join(clusters)}")
        return {
            "name": name,
            "namespace": self._namespace,
            "completed": True,
            "seconds": round(took, 1),
            "clusters": clusters,
            "logs": lines,
        }

    async def _logs(self, name: str) -> list[str]:
        """Return the last line of every sub-job's log; an unreadable log does not fail the test."""
        lines: list[str] = []
        summary = read(await self._kube.get(HYPERJOBS, name, namespace=self._namespace))
        try:
            standing = await ChosenLogs.of(
                self._kube,
                summary,
                Wanted(),
                query={"timestamps": "true"},
                tail=1,
                say=self._tell,
            )
            async with aclosing(standing.lines()) as found:
                async for source, line in found:
                    text = LogLine.of(line).text.decode(errors="replace")
                    lines.append(f"[{source.label}] {text}")
        except (ClientError, KubeError) as error:
            self._tell(f"its logs cannot be read: {error}")
        for text in lines:
            self._tell(text)
        return lines

    def _tell(self, text: str) -> None:
        """Print a line behind the seconds since the begin; a repeated one once."""
        if text != self._last:
            self._last = text
            self._say(f"{time.monotonic() - self._started:6.1f} s  {text}")
