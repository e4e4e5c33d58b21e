"""A day of use, for the memory of a page that has just begun."""

from datetime import UTC, datetime, timedelta

from hyperjob.client.usage import ClusterUse, QueueUse
from tests.support.uiscene import GPU

STEP = timedelta(minutes=12)


def remember(memory, objects):
    """Remember the use of a day of the Clusters with GPUs, half of it by the first Queue."""
    totals = {}
    for each in objects:
        found = each["status"].get("resourceSummary", {}).get("allocatable", {})
        if each["kind"] == "Cluster" and GPU in found:
            totals[each["metadata"]["name"]] = int(found[GPU])
    queues = [each["metadata"]["name"] for each in objects if each["kind"] == "Queue"]
    now = datetime.now(UTC)
    for step in range(120, 0, -1):
        busy = {name: _wave(step, seed, total) for seed, (name, total) in enumerate(totals.items())}
        whole = sum(busy.values())
        memory.add(
            now - step * STEP,
            [_cluster(name, busy[name], total) for name, total in totals.items()],
            [
                _queue(name, whole >> place, sum(totals.values()) >> place)
                for place, name in enumerate(queues, start=1)
            ],
        )


def _wave(step, seed, total):
    """Return a number that rises and falls over a day, equal for equal arguments."""
    turn = (step * (7 + seed) + seed * 31) % 48
    return total * (16 + min(turn, 48 - turn)) // 44


def _cluster(name, used, total):
    return ClusterUse(
        cluster=name,
        ready=True,
        accelerator=GPU,
        allocatable=total,
        used=used,
        free=total - used,
        hyperjobs=used,
    )


def _queue(name, used, share):
    return QueueUse(
        queue=name,
        state="Open",
        accelerator=GPU,
        share=share,
        deserved=None,
        capability=None,
        used=used,
        ended=None,
        waiting=0,
        running_hyperjobs=1,
        waiting_hyperjobs=0,
    )
