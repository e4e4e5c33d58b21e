"""The priority and the preemptionPolicy of a HyperJob, from its PriorityClasses. Pure."""

from collections.abc import Mapping

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, integer, string
from hyperjob_engine.model.observed import HyperJob


def priority_of(hyperjob: HyperJob, classes: Mapping[str, Object]) -> int:
    """Return the highest priority of a HyperJob's templates; `classes` are by name."""
    return max((value_of(name, classes) for name in _names(hyperjob)), default=0)


def preempts(hyperjob: HyperJob, classes: Mapping[str, Object]) -> bool:
    """Return whether every PriorityClass of a HyperJob has preemptionPolicy PreemptLowerPriority.

    That is the API's default, for a class without the field and for a template without a class.
    """
    return all(
        at(_class_of(name, classes), "preemptionPolicy") != "Never" for name in _names(hyperjob)
    )


def missing_from(hyperjob: HyperJob, classes: Mapping[str, Object]) -> frozenset[str]:
    """Return the PriorityClasses that a HyperJob's templates name and that do not exist."""
    return frozenset(_names(hyperjob) - classes.keys() - {""})


def value_of(name: str, classes: Mapping[str, Object]) -> int:
    """Return the value of a PriorityClass; for an empty name the global default's.

    A class that does not exist counts as 0.
    """
    return integer(at(_class_of(name, classes), "value")) or 0


def _names(hyperjob: HyperJob) -> set[str]:
    """Return the names of the PriorityClasses of a HyperJob; empty for a template without one."""
    return {string(group.template.get("priorityClassName")) for group in hyperjob.replicated_jobs}


def _class_of(name: str, classes: Mapping[str, Object]) -> Object | None:
    """Return a PriorityClass; for an empty name the global default, the least one of several."""
    if name:
        return classes.get(name)
    defaults = [each for each in classes.values() if each.get("globalDefault") is True]
    return min(defaults, key=lambda each: integer(each.get("value")) or 0, default=None)
