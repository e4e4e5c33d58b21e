"""Compare placement by nodes with a real Volcano: does a gang fit, and does the scheduler bind it?

usage: python -m benchmarks.judge_volcano --kubeconfig FILE [--cases 1000] [--seed 1] [--minimum]
       [--check]

The kubeconfig is of an API server with Volcano's CRDs, a Queue `default`, Volcano's scheduler and
its job controller, and with no nodes of its own. The scheduler has its default configuration and
the plugin `network-topology-aware`, without which it keeps no hard topology. The API server runs
without the admission plugins ServiceAccount and TaintNodesByCondition. No kubelet is needed: a
bound gang is enough. The judge creates nodes, pods, HyperNodes and vcjobs in batches, and deletes
them again.

With `--minimum` gangs start with fewer pods than they have. `--check` fails where placement says
that a gang fits and Volcano binds it not in more than 0.5 % of the cases, or the opposite in more
than 2 %.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.judge_cases import CASE, GPU, Case, case_of
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, KubeError, NotFound
from hyperjob_core.kube.resources import (
    HYPERNODES,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    VCJOBS,
    Resource,
)
from hyperjob_engine.expansion.expand import demand_of, items_of
from hyperjob_engine.expansion.templates import in_order
from hyperjob_engine.members.facts import hypernode_fact, node_fact, pod_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.room import Room

NAMESPACE: Final = "judge"
_BALLAST: Final = 8
_QUIET_SECONDS: Final = 8.0
_DOUBT_SECONDS: Final = 30.0
_MOST_FIT_ONLY: Final = 0.005
_MOST_BOUND_ONLY: Final = 0.02
_JOB: Final = "volcano.sh/job-name"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What placement says of a case, what Volcano did, and the words of both."""

    case: Case
    fits: bool
    bound: bool
    ours: str
    theirs: str


async def main() -> None:
    """Judge all cases, in batches with and without HyperNodes in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minimum", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dump", type=Path, help="write the cases with different answers here")
    options = parser.parse_args()
    found: list[Verdict] = []
    async with Kube.connect(kubeconfig=options.kubeconfig) as kube:
        await _prepare(kube)
        for first in range(0, options.cases, options.batch):
            numbers = range(first, min(options.cases, first + options.batch))
            started = time.monotonic()
            cases = [
                case_of(
                    f"c{number}",
                    f"{options.seed}/{number}",
                    namespace=NAMESPACE,
                    topology=first // options.batch % 2 == 1,
                    minimum=options.minimum,
                )
                for number in numbers
            ]
            found += await _batch(kube, cases)
            print(f"{len(found)} cases, {time.monotonic() - started:.0f} s: {_line(found)}")
    _report(found, options.dump)
    false_fits = sum(each.fits and not each.bound for each in found)
    others = sum(each.bound and not each.fits for each in found)
    too_many = false_fits > _MOST_FIT_ONLY * len(found) or others > _MOST_BOUND_ONLY * len(found)
    if options.check and too_many:
        raise SystemExit(1)


async def _prepare(kube: Kube) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    with suppress(AlreadyExists):
        await kube.create(NAMESPACES, namespace)
    await _clean(kube)
    for number in range(_BALLAST):  # room that Volcano may promise to the gangs that do not fit
        amounts = {GPU: "5000", "cpu": "5000", "memory": "50Ti", "pods": "5000"}
        ready = {"type": "Ready", "status": "True"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"ballast-{number}", "labels": {CASE: "none"}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
        }
        with suppress(AlreadyExists):
            await _node(kube, node)


async def create_members(kube: Kube, cases: Sequence[dict[str, Any]]) -> None:
    """Create the nodes, HyperNodes and other pods of cases."""
    await each_of(_node(kube, node) for case in cases for node in case["nodes"])
    await each_of(kube.create(HYPERNODES, each) for case in cases for each in case["hypernodes"])
    await each_of(kube.create(PODS, pod) for case in cases for pod in case["pods"])


async def _node(kube: Kube, node: dict[str, Any]) -> None:
    """Create a node with its own taints alone: admission adds one."""
    await kube.create(NODES, node)
    taints = {"spec": {"taints": node.get("spec", {}).get("taints", [])}}
    await kube.patch(NODES, node["metadata"]["name"], taints, kind=PatchType.MERGE)


async def _batch(kube: Kube, cases: Sequence[Case]) -> list[Verdict]:
    await create_members(kube, [asdict(case) for case in cases])
    view = await _view(kube)
    ours = {case.name: _judged(case, view) for case in cases}
    await asyncio.sleep(2)  # Volcano's cache must have the nodes before the first gang
    jobs = [{**case.job, "spec": in_order(case.job["spec"])} for case in cases]
    await each_of(kube.create(VCJOBS, job) for job in jobs)
    bound = await _bound(kube, cases, {name for name, text in ours.items() if not text})
    theirs = await _words(kube)
    await _clean(kube)
    return [
        Verdict(
            case,
            not ours[case.name],
            case.name in bound,
            ours[case.name],
            theirs.get(case.name, ""),
        )
        for case in cases
    ]


async def _view(kube: Kube) -> MemberView:
    nodes, pods = await kube.list(NODES), await kube.list(PODS)
    hypernodes = await kube.list(HYPERNODES)
    return view_of(
        {
            PODS: map(pod_fact, pods.items),
            NODES: map(node_fact, nodes.items),
            HYPERNODES: map(hypernode_fact, hypernodes.items),
        }
    )


def _judged(case: Case, view: MemberView) -> str:
    """Return why the gang of a case does not fit; empty if it does."""
    ground = ground_of("member", view)
    cluster = Cluster(
        name="member",
        usable=True,
        trouble=None,
        free=ground.free,
        allocatable=ground.allocatable,
        view=view,
    )
    spec = case.job["spec"]
    wanted = PlacementRequest(
        name=case.name, group="g", demand=demand_of(spec), pods=items_of(spec)
    )
    found = place([wanted], Room([cluster]))
    return "" if found.assigned else found.unplaced[case.name].text


async def _bound(kube: Kube, cases: Sequence[Case], expected: set[str]) -> set[str]:
    """Return the gangs that Volcano has bound, after it has bound no pod for some time."""
    wanted = {case.name: case.job["spec"]["minAvailable"] for case in cases}
    last, since = Counter[str](), time.monotonic()
    while True:
        await asyncio.sleep(1)
        pods = (await kube.list(PODS, namespace=NAMESPACE)).items
        numbers = Counter(
            job
            for pod in pods
            if pod["spec"].get("nodeName")
            and (job := (pod["metadata"].get("annotations") or {}).get(_JOB))
        )
        bound = {name for name, number in wanted.items() if numbers[name] >= number}
        if numbers != last:
            last, since = numbers, time.monotonic()
        quiet = time.monotonic() - since
        if len(bound) == len(wanted) or quiet > (
            _QUIET_SECONDS if expected <= bound else _DOUBT_SECONDS
        ):
            return bound


async def _words(kube: Kube) -> dict[str, str]:
    """Return what the PodGroup of each gang says last, by the name of its vcjob."""
    found = {}
    for group in (await kube.list(PODGROUPS, namespace=NAMESPACE)).items:
        conditions = (group.get("status") or {}).get("conditions") or [{}]
        owners = group["metadata"].get("ownerReferences") or [{}]
        found[str(owners[0].get("name"))] = (
            f"{(group.get('status') or {}).get('phase')}: {conditions[-1].get('message', '')}"
        )
    return found


async def _clean(kube: Kube) -> None:
    """Delete the objects of a batch; pods without a kubelet end at once."""
    await delete_all(kube, VCJOBS, namespace=NAMESPACE)
    for _ in range(30):
        await delete_all(kube, PODS, namespace=NAMESPACE)
        await asyncio.sleep(0.3)
        if not (await kube.list(PODS, namespace=NAMESPACE)).items:
            break
    await delete_all(kube, PODGROUPS, namespace=NAMESPACE)
    await delete_all(kube, HYPERNODES)
    await delete_all(kube, NODES, keep="ballast-")


async def delete_all(
    kube: Kube, resource: Resource, *, namespace: str | None = None, keep: str = "\0"
) -> None:
    """Delete all objects of a resource without a grace period, but those whose names begin so."""

    async def one(name: str) -> None:
        path = resource.path(namespace, name)
        params = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
        try:
            await kube.raw("DELETE", path, params=params)
        except NotFound:
            return

    found = (await kube.list(resource, namespace=namespace)).items
    names = [each["metadata"]["name"] for each in found]
    await each_of(one(name) for name in names if not name.startswith(keep))


async def each_of(work: Iterable[Any]) -> None:
    """Await all work, at most sixteen at a time."""
    limit = asyncio.Semaphore(16)

    async def one(each: Any) -> None:  # noqa: ANN401 - any awaitable
        async with limit:
            await each

    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(one(each))


def _line(found: Sequence[Verdict]) -> str:
    both = sum(each.fits and each.bound for each in found)
    neither = sum(not each.fits and not each.bound for each in found)
    wrong = sum(each.fits and not each.bound for each in found)
    shy = sum(each.bound and not each.fits for each in found)
    return f"{both} fit and bound, {neither} neither, {wrong} fit only, {shy} bound only"


def _report(found: Sequence[Verdict], dump: Path | None) -> None:
    print(_line(found))
    tried = Counter(mark for each in found for mark in each.case.marks)
    print("tried:", ", ".join(f"{mark} {number}" for mark, number in sorted(tried.items())))
    different = [each for each in found if each.fits != each.bound]
    for fits, words in ((True, "fit only"), (False, "bound only")):
        number = sum(each.fits is fits for each in different)
        print(f"{words}: {number} ({number / len(found):.1%})")
    for each in different:
        marks = ", ".join(sorted(each.case.marks))
        print(f"{each.case.name} ({marks}): fits {each.fits}, bound {each.bound}")
        print(f"   ours: {each.ours or 'fits'}\n   Volcano: {each.theirs}")
    if dump is not None:
        cases = [
            {
                "name": each.case.name,
                "fits": each.fits,
                "nodes": each.case.nodes,
                "pods": each.case.pods,
                "hypernodes": each.case.hypernodes,
                "job": each.case.job,
            }
            for each in different
        ]
        dump.write_text(json.dumps(cases, indent=1))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KubeError as error:
        raise SystemExit(f"judge_volcano: {error}") from None
