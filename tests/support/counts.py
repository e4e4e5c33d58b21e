"""What the metrics of this process have counted since some moment."""

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from hyperjob_core.registry import REGISTRY


class Counts:
    """The numbers of all series, less those at the construction."""

    def __init__(self) -> None:
        self._before = _values()

    def __call__(self, name: str, /, **labels: str) -> float | None:
        """Return the difference of a series, whose value before may be missing; None if none is."""
        key = name, frozenset(labels.items())
        after = _values().get(key)
        return None if after is None else after - self._before.get(key, 0.0)


def value(collector: Collector, name: str, /, **labels: str) -> float | None:
    """Return the number of one series of a collector that no process has registered."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry.get_sample_value(name, labels)


def _values() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
    }
