"""The metrics that are computed at a scrape, from the HyperJobs, the clusters and the mode."""

from collections.abc import Callable
from datetime import datetime

from hyperjob_controller.caches.informers import Caches
from hyperjob_controller.insight.accelerators import accelerator_samples
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.insight.timeuse import TimeUses
from hyperjob_controller.memory.memory import Memory
from hyperjob_core.telemetry.families import Families
from hyperjob_core.telemetry.training import show_accelerators, show_queue_admission, show_time_use


def show(
    families: Families,
    caches: Caches,
    memory: Memory,
    *,
    meter: Meter,
    mode: Callable[[], str],
    now: Callable[[], datetime],
) -> None:
    """Follow HyperJobs for the metrics, and add those that a scrape computes to `families`."""
    uses = TimeUses()
    caches.hyperjobs.add_handler(meter.seen)
    caches.hyperjobs.add_handler(uses.seen)
    show_time_use(
        families,
        {
            "hyperjob_time_seconds": lambda: uses.seconds(now()),
            "hyperjob_goodput_ratio": lambda: uses.ratios(now()),
            "hyperjob_training_reporting": uses.reporting,
        },
    )
    show_queue_admission(families, mode)
    show_accelerators(
        families,
        accelerator_samples(
            lambda: memory.capacity.clusters(now=now()),
            lambda: memory.reservations.reserved(now=now()),
        ),
    )
