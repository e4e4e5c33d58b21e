"""The accelerator seconds of queues: the pods' own times, whatever is deleted or killed."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from hyperjob_controller.insight.usage import Usage
from hyperjob_core.kube.resources import PODS
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.members.facts import pod_fact
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.model.members import PodHeld
from tests.unit.engine.builders import GPU, Object

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOOK = timedelta(seconds=5)
METRIC = "hyperjob_accelerator_seconds_total"


def pod(name: str, job: str, *, gpus: int = 8, node: str = "n", namespace: str = "ml") -> Object:
    owner = {"controller": True, "kind": "Job", "name": job, "uid": f"u-{job}"}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {"volcano.sh/job-name": job},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {GPU: gpus, "cpu": 4}}}],
        },
        "status": {"phase": "Running"},
    }


def vcjob(hyperjob: str, queue: str, **metadata: Any) -> Object:
    labels = {"volcano.sh/hyperjob-name": hyperjob}
    return {"metadata": {"namespace": "ml", "labels": labels, **metadata}, "spec": {"queue": queue}}


class World:
    """A member and the caches of a controller, and the leader that counts."""

    def __init__(self) -> None:
        self.now = T0
        self.fold = MemberFold()
        self.known = True
        self.jobs: dict[str, Object] = {}
        self.hyperjobs: dict[str, Object] = {}
        self.counted = self.lead()

    def lead(self, **options: Any) -> Usage:
        return Usage(
            self.held,
            job=self.jobs.get,
            hyperjob=self.hyperjobs.get,
            now=lambda: self.now,
            **options,
        )

    def held(self, _: datetime) -> Iterator[tuple[str, Iterator[PodHeld]]]:
        if self.known:
            yield "a", self.fold.held()

    def run(self, name: str, queue: str = "vision", *, status: Object | None = None) -> None:
        self.jobs[f"ml/{name}-w-0"] = vcjob(name, queue)
        self.hyperjobs[f"ml/{name}"] = {"status": status or using("productive")}
        self.fold.put(PODS, pod_fact(pod(f"{name}-w-0-0", f"{name}-w-0")))

    def ends(self, name: str) -> None:
        self.fold.drop(PODS, f"ml/{name}-w-0-0")

    def passes(self, seconds: float) -> None:
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.now = min(until, self.now + LOOK)
            self.counted.count()


@pytest.fixture
def world() -> World:
    made = World()
    made.counted.count()
    return made


def using(use: str, /, **status: Any) -> Object:
    return {"goodput": {"state": use}, **status}


def spent(world: "World", queue: str) -> Mapping[str, float]:
    """The seconds of a queue by use, after a scrape of each state."""
    world.counted.scraped()
    world.counted.scraped()
    return read(queue)


def read(queue: str) -> Mapping[str, float]:
    return {labels["use"]: seconds for labels, seconds in series() if labels["queue"] == queue}


def series() -> Iterator[tuple[Mapping[str, str], float]]:
    for family in REGISTRY.restricted_registry([METRIC]).collect():
        yield from ((sample.labels, sample.value) for sample in family.samples)


STEPS = {"training": {"step": 7}, "checkpoint": {"stoppedStep": 9}}
STATUSES: dict[str, tuple[Object, str]] = {
    "a training": (using("productive"), "productive"),
    "its last steps are done": (using("finishing"), "productive"),
    "without its first line": (using("starting"), "starting"),
    "it hangs": (using("stalled"), "stalled"),
    "it waits for others": (using("degraded"), "lost"),
    "a quorum trains on": (using("degraded", state={"reason": "QuorumMet"}), "productive"),
    "it repeats steps": (using("productive", **STEPS), "lost"),
    "others start again": (using("lostToFailures"), "lost"),
    "it is suspended": (using("suspended"), "stopping"),
    "it has ended": ({"goodput": {}, "completionTime": "2026-01-02T03:04:05Z"}, "stopping"),
}


@pytest.mark.parametrize(("status", "use"), STATUSES.values(), ids=list(STATUSES))
def test_pods_count_for_what_their_hyperjob_does(
    world: World, status: Object, use: str, request: pytest.FixtureRequest
) -> None:
    queue = request.node.name
    world.run("one", queue, status=status)
    world.counted.count()
    world.passes(60)
    assert spent(world, queue) == {use: 8 * 60}


def test_pods_without_a_node_and_of_others_do_not_count(world: World) -> None:
    world.run("waits", "nodeless")
    world.fold.put(PODS, pod_fact(pod("waits-w-0-0", "waits-w-0", node="")))
    world.fold.put(PODS, pod_fact(pod("x", "theirs")))
    world.passes(60)
    assert spent(world, "nodeless") == {}


def test_pods_of_a_deleted_hyperjob_are_stopping_until_they_end(world: World) -> None:
    world.run("gone", "deleted")
    world.counted.count()
    world.passes(50)
    world.jobs.clear()
    world.hyperjobs.clear()
    world.passes(20)
    world.ends("gone")
    world.passes(100)
    assert spent(world, "deleted") == {"productive": 8 * 50, "stopping": 8 * 20}


def test_the_next_leader_counts_what_no_scrape_has_read(world: World) -> None:
    world.run("long", "handed")
    world.counted.count()
    world.passes(60)
    assert spent(world, "handed") == {"productive": 8 * 60}
    world.counted.scraped()
    world.passes(15)  # no scrape reads these
    left = world.counted.record()
    world.now += timedelta(seconds=25)  # nobody leads
    world.counted = world.lead()
    world.counted.restore(left)
    world.counted.count()
    assert spent(world, "handed") == {"productive": 8 * 100}


def test_a_member_that_was_not_known_counts_again_from_its_last_look(world: World) -> None:
    world.run("hidden", "hidden")
    world.counted.count()
    world.known = False
    world.passes(60)
    world.known = True
    world.passes(5)
    assert spent(world, "hidden") == {"productive": 8 * 65}


def test_a_first_leader_counts_nothing_before_it_leads(world: World) -> None:
    world.run("early", "first")
    world.counted = world.lead()
    world.counted.count()
    assert not sum(spent(world, "first").values())


def test_beyond_its_bound_of_series_a_leader_leaves_the_namespace_out(world: World) -> None:
    world.counted = world.lead(most_series=1)
    for name in ("one", "two"):
        world.run(name, f"bounded-{name}")
    world.counted.count()
    world.passes(5)
    world.passes(5)
    world.counted.scraped()
    world.counted.scraped()
    found = [
        (labels["namespace"], seconds)
        for labels, seconds in series()
        if labels["queue"].startswith("bounded")
    ]
    assert sorted(found) == [("", 80), ("ml", 80)]


class Prometheus:
    """Scrapes a leader; what a series had before its first scrape is not known to `increase()`."""

    def __init__(self) -> None:
        self.increase = 0.0
        self.before: dict[str, float] = {}

    def scrapes(self, world: World, queue: str, base: Mapping[str, float]) -> None:
        now = {use: value - base.get(use, 0.0) for use, value in read(queue).items()}
        world.counted.scraped()
        self.increase += sum(value - self.before.get(use, value) for use, value in now.items())
        self.before = now


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_hyperjobs_with_kills_are_counted_to_half_a_percent(
    world: World, seed: int
) -> None:
    """Pods and leaders are killed at any time, HyperJobs are deleted as soon as they have ended."""
    random, queue, truth, prometheus = Random(seed), f"thousand-{seed}", 0.0, Prometheus()
    starts = sorted((random.uniform(0, 40_000), number) for number in range(1000))
    alive: dict[int, tuple[datetime, datetime]] = {}
    kills = sorted(random.uniform(0, 40_000) for _ in range(12))
    base: Mapping[str, float] = {}
    after = 100
    while starts or alive or after:
        after -= not (starts or alive)
        world.now += timedelta(seconds=1)
        clock = (world.now - T0).total_seconds()
        while starts and starts[0][0] <= clock:
            number = starts.pop(0)[1]
            world.run(f"hj{number}", queue)
            killed = random.random() < 0.3
            lasts = random.uniform(1, 300) if killed else random.lognormvariate(6.5, 1)
            alive[number] = world.now, world.now + timedelta(seconds=lasts)
        for number, (began, end) in list(alive.items()):
            if end <= world.now:
                world.ends(f"hj{number}")
                truth += 8 * (world.now - began).total_seconds()
                world.jobs.pop(f"ml/hj{number}-w-0")
                world.hyperjobs.pop(f"ml/hj{number}")
                del alive[number]
        if kills and kills[0] <= clock:
            kills.pop(0)
            left = world.counted.record()
            world.now += timedelta(seconds=random.randint(5, 30))
            base, prometheus.before = read(queue), {}
            world.counted = world.lead()
            world.counted.restore(left)
        if int(clock) % 5 == 0:
            world.counted.count()
        if int(clock) % 30 == 0:
            prometheus.scrapes(world, queue, base)
    error = prometheus.increase / truth - 1
    assert abs(error) < 0.005, f"{truth:.0f} s of pods, Prometheus {error:+.3%}"
