"""How many series Prometheus keeps of a leader with 5,000 HyperJobs, as docs/scale.md says."""

import re
from datetime import timedelta
from pathlib import Path

from prometheus_client.registry import Collector

from hyperjob_controller.insight.measures import Meter, Scrape
from hyperjob_controller.insight.usage import Usage
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.members import PodHeld
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import GPU, NOW, cluster, hyperjob, observed
from tests.unit.queueing.queueworld import queue, world

HYPERJOBS, CLUSTERS = 5000, ["c1", "c2", "c3", "c4", "c5"]
TEAMS = [f"team-{number}" for number in range(200)]
USES = ("productive", "starting", "stalled", "lostToFailures", "suspended")
GPUS = parse_resources({GPU: "8", "cpu": "4"})


def samples(collector: Collector) -> int:
    return sum(len(family.samples) for family in collector.collect())


def test_a_leader_of_5000_hyperjobs_has_as_many_series_as_the_page_says() -> None:
    begun, now, meter = samples(REGISTRY), NOW, Meter()
    fleet = world((), *map(queue, TEAMS), **dict.fromkeys(CLUSTERS, 8))
    fleet.decide()
    scrape = Scrape(
        lambda _: (map(cluster, CLUSTERS), dict.fromkeys(CLUSTERS, GPUS)),
        meter=meter,
        mode=lambda: "builtin",
        now=lambda: now,
        queues=lambda: fleet.state,
    )
    # Each team has one queue, one namespace, and HyperJobs in all clusters, for each use.
    pods: dict[str, list[PodHeld]] = {name: [] for name in CLUSTERS}
    for number in range(HYPERJOBS):
        team, place = TEAMS[number % len(TEAMS)], CLUSTERS[number // len(TEAMS) % len(CLUSTERS)]
        pods[place].append(PodHeld(team, f"j{number}-0", "n", GPUS, job=f"j{number}"))
    goodput: dict[str, str] = {}
    usage = Usage(
        lambda _: pods.items(),
        job=lambda key: {
            "metadata": {"namespace": key, "labels": {"volcano.sh/hyperjob-name": "h"}},
            "spec": {"queue": key.partition("/")[0]},
        },
        hyperjob=lambda _: {"status": {"goodput": goodput}},
        now=lambda: now,
    )
    for goodput["state"] in USES:
        usage.count()
        now += timedelta(seconds=5)
        usage.count()
        usage.scraped()
    for team in TEAMS:
        started = {"startTime": "x", "state": {"phase": "Starting"}, "queue": team}
        meter.written(observed(hyperjob(status={})).hyperjob, started, now=now)
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    told = [
        int(number.replace(",", ""))
        for name in ("accelerator seconds", "waits of queues", "all others of queues and clusters")
        for number in re.findall(rf"^\| {name} \|.*\| ([0-9,]+) \|$", page, re.MULTILINE)
    ]
    waits = 16 * len(TEAMS)
    assert told == [samples(REGISTRY) - begun - waits, waits, samples(scrape)]
