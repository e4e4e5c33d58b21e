"""What each queue has and what waits in it, from the state of the queue engine at a scrape.

The names are those of Kueue, with `hyperjob` and `queue` for `kueue` and `cluster_queue`.
"""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric

from hyperjob_core.api.quantity import NANO
from hyperjob_core.registry import filled
from hyperjob_engine.queueing.confirm import IMPLICIT
from hyperjob_engine.queueing.queues import ROOT
from hyperjob_engine.queueing.state import QueueState
from hyperjob_engine.resources import is_counted


def queue_metrics(state: QueueState | None) -> Iterator[Metric]:
    """Yield the HyperJobs of each queue, and its share and use of extended resources."""
    entries = () if state is None else state.entries.values()
    waits = Counter(entry.waiting.queue for entry in entries if entry.waiting is not None)
    holds = Counter(queue for entry in entries for queue in entry.queues)
    tree = None if state is None else state.usage.tree
    queues = () if tree is None else tree.queues.keys() - {ROOT, IMPLICIT}
    for name, text, numbers in (
        ("hyperjob_pending_workloads", "HyperJobs that wait in a queue", waits),
        ("hyperjob_admitted_active_workloads", "HyperJobs that hold a share of a queue", holds),
    ):
        samples = (((queue,), float(numbers[queue])) for queue in sorted(queues))
        yield filled(Gauge(name, text, labels=("queue",)), samples)
    share, used, borrowed = (
        Gauge(f"hyperjob_queue_resource_{kind}", text, labels=("queue", "resource"))
        for kind, text in (
            ("share", "What a queue is entitled to of a resource while others want theirs"),
            ("usage", "What a queue and its children use of a resource"),
            ("borrowed", "What a queue uses of a resource beyond its share"),
        )
    )
    if state is not None and tree is not None:
        for resource in filter(is_counted, sorted(state.shares.total)):
            entitled = tree.entitled(resource)
            for queue in sorted(queues):
                labels, has = (queue, resource), entitled.get(queue, 0) // NANO
                uses = state.usage.used(queue).get(resource, 0) / NANO
                share.add_metric(labels, has)
                used.add_metric(labels, uses)
                borrowed.add_metric(labels, max(0.0, uses - has))
    yield from (share, used, borrowed)
