"""Measure how soon a HyperJob leaves a cluster on which Volcano finds no nodes for its gang.

usage: python -m benchmarks.judge_leave --kubeconfig FILE --member member1=FILE --cases FILE
       [--tries 5]

`--cases` is what `judge_volcano --dump` has written: of its cases those count that fit by placement
and that Volcano has not bound. The kubeconfig is of a Karmada with a HyperJob controller that reads
its members, and `--member` of a cluster with Volcano, the plugin `network-topology-aware`, and fake
nodes. The nodes and other pods of the cases are created there, and a HyperJob for each case, which
may use this cluster alone. Volcano takes the pods in the order of their UIDs: a gang that it binds
is tried again with new pods, at most `--tries` times.

The times count from the creation of the PodGroup: until Volcano's words are on it, and until the
status excludes the cluster with these words.
"""

import argparse
import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.judge_volcano import NAMESPACE, create_members, delete_all, each_of
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.resources import HYPERJOBS, HYPERNODES, NAMESPACES, NODES, PODGROUPS, PODS
from hyperjob_engine.members.facts import podgroup_fact

Object = dict[str, Any]


@dataclass(slots=True)
class Gang:
    """One try of a case: when its PodGroup, Volcano's words and the departure were first seen."""

    created: float | None = None
    said: float | None = None
    left: float | None = None
    bound: bool = False
    words: str = ""

    @property
    def is_over(self) -> bool:
        return self.bound or self.left is not None


async def main() -> None:
    """Try each case until Volcano refuses its gang, and print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--member", required=True, help="NAME=FILE")
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--tries", type=int, default=5)
    options = parser.parse_args()
    name, _, file = options.member.partition("=")
    cases = {each["name"]: each for each in json.loads(options.cases.read_text()) if each["fits"]}
    left: dict[str, Gang] = {}
    async with (
        Kube.connect(kubeconfig=options.kubeconfig) as karmada,
        Kube.connect(kubeconfig=Path(file)) as member,
    ):
        named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        for kube in (karmada, member):
            with suppress(AlreadyExists):
                await kube.create(NAMESPACES, named)
        made = list(cases.values())
        await create_members(member, made)
        try:
            for _ in range(options.tries):
                todo = [each for name, each in cases.items() if name not in left]
                left |= await _try(karmada, member, name, todo)
        finally:
            await _clean(member, made)
    for case, gang in sorted(left.items()):
        print(
            f"{case}: words after {_text(gang.said)}, left after {_text(gang.left)}: {gang.words}"
        )
    times = [each.left for each in left.values() if each.left is not None]
    print(f"{len(times)} of {len(cases)} gangs left, the others were bound in each try")
    if times:
        print(f"they left after {median(times):.1f} s, at most {max(times):.1f} s")


async def _try(karmada: Kube, member: Kube, cluster: str, cases: list[Object]) -> dict[str, Gang]:
    """Create a HyperJob for each case; return the gangs that left the cluster."""
    await asyncio.sleep(3)  # the readers of the member must know the nodes
    await each_of(karmada.create(HYPERJOBS, _hyperjob(case, cluster)) for case in cases)
    gangs = {case["name"]: Gang() for case in cases}
    until = time.monotonic() + 120
    while time.monotonic() < until and not all(each.is_over for each in gangs.values()):
        await asyncio.sleep(0.25)
        for raw in (await member.list(PODGROUPS, namespace=NAMESPACE)).items:
            fact = podgroup_fact(raw)
            gang = None if fact is None else gangs.get(_case_of(fact.job))
            if gang is None or fact is None:
                continue
            gang.created = gang.created or time.monotonic()
            gang.bound = at(raw, "status", "phase") == "Running"
            if fact.said is not None and fact.said.message and gang.said is None:
                gang.said, gang.words = time.monotonic() - gang.created, fact.said.message[:80]
        for raw in (await karmada.list(HYPERJOBS, namespace=NAMESPACE)).items:
            gang = gangs.get(string(at(raw, "metadata", "name")))
            for job in objects(mapping(raw.get("status")).get("jobs")):
                if gang and gang.created and gang.left is None and job.get("excludedClusters"):
                    gang.left = time.monotonic() - gang.created
    await delete_all(karmada, HYPERJOBS, namespace=NAMESPACE)
    while (await member.list(PODGROUPS, namespace=NAMESPACE)).items:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.5)
    return {name: gang for name, gang in gangs.items() if gang.left is not None}


def _hyperjob(case: Object, cluster: str) -> Object:
    group = {
        "name": "g",
        "replicas": 1,
        "templateSpec": case["job"]["spec"],
        "clusterNames": [cluster],
        "clusterPolicy": "Required",
    }
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": "HyperJob",
        "metadata": {"name": case["name"], "namespace": NAMESPACE},
        "spec": {"replicatedJobs": [group]},
    }


def _case_of(job: str) -> str:
    """Return the case of a vcjob, by its namespace/name."""
    return job.partition("/")[2].removesuffix("-g-0")


async def _clean(member: Kube, cases: list[Object]) -> None:
    await delete_all(member, PODS, namespace=NAMESPACE)
    await delete_all(member, HYPERNODES)
    for case in cases:
        for node in case["nodes"]:
            with suppress(NotFound):
                await member.delete(NODES, node["metadata"]["name"])


def _text(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


if __name__ == "__main__":
    asyncio.run(main())
