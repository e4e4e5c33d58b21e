"""What the metrics say of queues: who waits and holds, shares, and who makes way for whom."""

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hyperjob_controller.admission.releases import count_evicted
from hyperjob_controller.insight.measures import queue_metrics
from hyperjob_queueing.round import schedule
from tests.support.counts import Counts
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit, world


def numbers(made: QueueWorld) -> dict[tuple[str, ...], float]:
    """The samples by name and values of labels, as a scrape has them."""

    class Scraped(Collector):
        def collect(self) -> list[Metric]:
            return list(queue_metrics(made.state))

    registry = CollectorRegistry()
    registry.register(Scraped())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def borrowing() -> QueueWorld:
    """Queue x uses all of 32 GPUs, of which half are the share of queue y."""
    made = world([unit("lent", 32, queue="x")], queue("x", reclaimable=True), queue("y"))
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("owner", 16, queue="y", age=5), unit("next", 16, queue="y", age=6))
    return made


def test_each_queue_shows_who_waits_who_holds_and_what_it_uses_of_its_share() -> None:
    made = borrowing()
    assert numbers(made) == {
        ("hyperjob_pending_workloads", "x"): 0,
        ("hyperjob_pending_workloads", "y"): 2,
        ("hyperjob_admitted_active_workloads", "x"): 1,
        ("hyperjob_admitted_active_workloads", "y"): 0,
        ("hyperjob_queue_resource_share", "x", GPU): 16,
        ("hyperjob_queue_resource_share", "y", GPU): 16,
        ("hyperjob_queue_resource_usage", "x", GPU): 32,
        ("hyperjob_queue_resource_usage", "y", GPU): 0,
        ("hyperjob_queue_resource_borrowed", "x", GPU): 16,
        ("hyperjob_queue_resource_borrowed", "y", GPU): 0,
    }


def test_a_reclaim_counts_for_the_queue_that_takes_back() -> None:
    counts, made = Counts(), borrowing()
    decided = schedule(made.state, made.clusters(), now=made.now)
    count_evicted(made.state, decided.evicted)
    name = "hyperjob_preempted_workloads_total"
    assert counts(name, preempting_queue="y", reason="Reclamation") == 1
    assert counts(name, preempting_queue="x", reason="Reclamation") is None


def test_a_preemption_counts_in_its_own_queue() -> None:
    counts = Counts()
    own = queue("z", preemption=True)
    made = world([unit("patient", 32, queue="z")], own)
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("urgent", 16, queue="z", priority=9, age=5))
    decided = schedule(made.state, made.clusters(), now=made.now)
    assert decided.evicted == ["ns/patient"]
    count_evicted(made.state, decided.evicted)
    name = "hyperjob_preempted_workloads_total"
    assert counts(name, preempting_queue="z", reason="InQueue") == 1
