"""The priority and the preemptionPolicy of a HyperJob, from its PriorityClasses. Pure."""

from collections.abc import Mapping

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, integer, string
from hyperjob_engine.model.observed import HyperJob


def priority_of(hyperjob: HyperJob, classes: Mapping[str, Object]) -> int:
    """Return the highest priority of a HyperJob's templates."""
    names = {string(group.template.get("priorityClassName")) for group in hyperjob.replicated_jobs}
    return max((value_of(name, classes) for name in names), default=0)


def preempts(hyperjob: HyperJob, classes: Mapping[str, Object]) -> bool:
    """Return whether every PriorityClass of a HyperJob has preemptionPolicy PreemptLowerPriority.

    That is the API's default, for a class and for pods without one.
    """
    names = {string(group.template.get("priorityClassName")) for group in hyperjob.replicated_jobs}
    return all(at(classes.get(name), "preemptionPolicy") != "Never" for name in names)


def value_of(name: str, classes: Mapping[str, Object]) -> int:
    """Return the value of a PriorityClass; for an empty name the global default's, else 0."""
    if not name:
        defaults = (each for each in classes.values() if each.get("globalDefault") is True)
        return max((integer(each.get("value")) or 0 for each in defaults), default=0)
    return integer(at(classes.get(name), "value")) or 0
