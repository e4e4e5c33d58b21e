"""A day of use and two deleted HyperJobs, for the history of a page."""

from datetime import UTC, datetime, timedelta

from hyperjob.client.summary import read
from hyperjob.client.usage import ClusterUse, QueueUse
from hyperjob_core.api.wire import timestamp
from tests.support.uiscene import GPU, hyperjob, training

STEP = timedelta(minutes=12)
CLUSTERS = {"east": 64, "west": 64, "south": 64}
QUEUES = {"research": 64, "production": 128, "default": 32}


def remember(history, hyperjobs):
    """Record the history of a page that has run for a day, and the progress of HyperJobs."""
    now = datetime.now(UTC)
    for each in hyperjobs:
        last = each["status"].get("training", {}).get("step", 0)
        since = timestamp(each["status"]["startTime"])
        for step in range(10, last, 10):
            back = (now - since).total_seconds()
            status = {**each["status"], "training": training(step, back)}
            history.record(since, read({**each, "status": status}))
    for step in range(120, 0, -1):
        moment = now - step * STEP
        if 52 < step < 60:  # the page did not run at this time
            continue
        busy = {
            name: _wave(step, seed, total) for seed, (name, total) in enumerate(CLUSTERS.items())
        }
        whole = sum(busy.values())
        parts = {"research": whole // 2, "production": whole // 3, "default": whole // 12}
        history.sample(
            moment,
            [_cluster(name, busy[name], total) for name, total in CLUSTERS.items()],
            [_queue(name, parts[name], share) for name, share in QUEUES.items()],
        )
    for hours, name, phase, reason in (
        (3, "vision-sweep-7", "Completed", "JobsCompleted"),
        (20, "llm-ablation", "Failed", "MaxRestartsExceeded"),
    ):
        for back, phase_then, restarts in (
            (5400, "Queued", 0),
            (4800, "Running", 0),
            (2400, "Restarting", 1),
            (2200, "Running", 1),
            (600, phase, 1),
        ):
            moment = now - timedelta(hours=hours, seconds=back)
            shown = hyperjob(
                name,
                phase_then,
                clusters=("", "") if phase_then == "Queued" else ("east", "west"),
                reason=reason if phase_then == phase else "",
                message="" if phase_then != "Failed" else f"{name}-trainer-0: exit code 137",
                restarts=restarts,
                since=hours * 3600 + back,
            )
            history.record(moment, read(shown))
        history.removed(now - timedelta(hours=hours), f"uid-team-a-{name}")


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
