"""Measure the placement of sub-jobs, against a bare first fit over the same numbers.

usage: python benchmarks/bench_placement.py [--jobs 1000] [--clusters 100]

`automatic split` divides accelerators over the clusters; first fit fills one cluster after the
other. `pass` is a whole plan of a HyperJob whose sub-jobs all run, the cost of every change of a
sub-job.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.parse import parse_hyperjob, parse_job, parse_policy
from hyperjob_engine.model.request import PlacementRequest, kind_of
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import Resources, fits, parse_resources, subtract, whole

GPU = "nvidia.com/gpu"
ROUNDS = 3

T = TypeVar("T")


def clusters(number: int) -> tuple[Cluster, ...]:
    """Return clusters of different sizes in a few regions."""
    return tuple(
        Cluster(
            name=f"cluster-{index:03}",
            usable=True,
            trouble=None,
            free=(free := _resources(80 + index * 37 % 90)),
            allocatable=free,
            provider="p",
            region=f"region-{index % 7}",
            zone=f"zone-{index % 13}",
        )
        for index in range(number)
    )


def requests(number: int, kinds: int) -> list[PlacementRequest]:
    """Return sub-jobs of several sizes, each kind with its own preferences."""
    return [
        PlacementRequest(
            name=f"job-{index}",
            group=f"group-{index % kinds}",
            demand=_resources(4 + 4 * (index % kinds)),
            preferred=(f"cluster-{index % kinds:03}",),
        )
        for index in range(number)
    ]


def first_fit(wanted: Sequence[PlacementRequest], where: Sequence[Cluster]) -> dict[str, str]:
    """Return the first cluster that fits each sub-job, without preferences."""
    free: dict[str, Resources] = {cluster.name: cluster.free for cluster in where}
    found = {}
    for request in wanted:
        for name, left in free.items():
            if fits(request.demand, left):
                free[name] = subtract(left, request.demand)
                found[request.name] = name
                break
    return found


def fill(wish: Wish, where: Sequence[Cluster]) -> dict[str, int]:
    """Return accelerators by cluster, without preferences."""
    left, found = wish.accelerators, {}
    for cluster in where:
        taken = min(left, cluster.free[GPU] // whole(1))
        found[cluster.name] = taken
        left -= taken
    return found


def running(number: int) -> Observed:
    """Return the observation of a HyperJob whose sub-jobs all run."""
    pod = {"spec": {"containers": [{"resources": {"requests": {GPU: "1"}}}]}}
    template = {"tasks": [{"name": "worker", "replicas": 4, "template": pod}]}
    group = {"name": "trainer", "replicas": number, "templateSpec": template}
    owner = {"kind": "HyperJob", "name": "hj", "uid": "u", "controller": True}
    raw = {
        "metadata": {"namespace": "default", "name": "hj", "uid": "u", "generation": 1},
        "spec": {"replicatedJobs": [group]},
    }
    parsed = parse_hyperjob(raw)
    labels = {"volcano.sh/hyperjob-name": "hj", "volcano.sh/replicatedjob-name": "trainer"}
    jobs, policies = {}, {}
    for index in range(number):
        name = f"hj-trainer-{index}"
        metadata = {"name": name, "uid": name, "labels": labels, "ownerReferences": [owner]}
        document: dict[str, Any] = {"metadata": metadata, "spec": template}
        state = {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        jobs[name] = parse_job(document | {"status": {"state": state, "running": 4}}, owner=parsed)
        affinity = {"clusterAffinities": [{"clusterNames": [f"cluster-{index % 10:03}"]}]}
        policies[name] = parse_policy(document | {"spec": {"placement": affinity}}, owner=parsed)
    return Observed(
        hyperjob=parsed,
        jobs=jobs,
        policies=policies,
        bindings={},
        clusters=clusters(10),
        refusals={},
        admission=QueueAdmission.NONE,
        now=datetime(2026, 1, 2, tzinfo=UTC),
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the shortest time of several rounds, and the result."""
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return min(times), result


def main() -> None:
    """Read arguments, measure, print a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=100)
    options = parser.parse_args()
    where = clusters(options.clusters)
    for kinds, max_domains in ((1, None), (4, None), (1, 5)):
        wanted = requests(options.jobs, kinds)
        bare, _ = timed(lambda wanted=wanted: first_fit(wanted, where))
        took, found = timed(
            lambda wanted=wanted, limit=max_domains: place(wanted, Room(where), max_domains=limit)
        )
        print(
            f"{options.jobs} sub-jobs of {kinds} kinds on {options.clusters} clusters,"
            f" maxDomains {max_domains}: {took:6.3f} s, placed {len(found.assigned)};"
            f" first fit {bare:6.3f} s, ratio {bare / took:5.2f}"
        )
    free = sum(cluster.free[GPU] for cluster in where) // whole(1)
    for share_of in (1, 2, 10, 50, 90):
        wish = Wish(
            like=PlacementRequest(name="", group="g", demand={}),
            accelerators=max(1, free * share_of // 100),
            kind=GPU,
            fixed=0,
            per_pod=1,
            pod=kind_of(_resources(1)),
        )
        bare, _ = timed(lambda wish=wish: fill(wish, where))
        room = Room(where)
        took, shares = timed(lambda wish=wish, room=room: share(wish, room, max_domains=None))
        print(
            f"automatic split of {wish.accelerators} GPUs ({share_of} % of what is free) over"
            f" {options.clusters} clusters: {took * 1000:7.1f} ms, {len(shares)} sub-jobs;"
            f" first fit {bare * 1000:5.2f} ms"
        )
    seen = running(options.jobs)
    took, _ = timed(lambda: plan(seen))
    print(f"pass over {options.jobs} running sub-jobs: {took * 1000:7.1f} ms")


def _resources(gpus: int) -> dict[str, int]:
    return parse_resources({GPU: str(gpus), "cpu": str(gpus * 8), "pods": str(gpus)})


if __name__ == "__main__":
    main()
