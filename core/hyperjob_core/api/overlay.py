"""A replicatedJob as one of its alternatives has it. Pure.

An alternative changes a few fields of the template as its author wrote it, before any default: a
number of pods that is left out then follows from the changed one.
"""

from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.defaults import with_names
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import AlternativeStatus
from hyperjob_core.api.wire import mapping, objects

_OF_JOB: Final = ("replicas", "clusterNames", "splitPolicy")
_NAMED: Final = frozenset({"tasks", "containers"})
"""Lists whose items an alternative changes by name."""


def applied(job: Object, alternative: Object) -> Object:
    """Return a replicatedJob as one of its alternatives has it: an ordinary one.

    Maps merge, tasks and containers merge by name, and a variable replaces the one of its name. All
    else is replaced: `resources` too, because the accelerator of the template must not stay.
    """
    made = {name: value for name, value in job.items() if name != "alternatives"}
    given = {name: alternative.get(name) for name in _OF_JOB}
    made |= {name: value for name, value in given.items() if value is not None}
    overlay = mapping(alternative.get("templateSpec"))
    if overlay:
        made["templateSpec"] = _merged(with_names(mapping(job.get("templateSpec"))), overlay)
    return made


def taken(status: Object) -> dict[str, AlternativeStatus]:
    """Return the alternatives in the status of a HyperJob, by the name of the replicatedJob."""
    found = table.read_all(AlternativeStatus, status.get("alternatives"))
    return {each.replicated_job: each for each in found}


def with_alternative(job: Object, name: str | None) -> Object:
    """Return a replicatedJob with the alternative of a name, else with the first one, if any."""
    found = objects(job.get("alternatives"))
    named = next((each for each in found if each.get("name") == name), None)
    alternative = named if named is not None else next(iter(found), None)
    return job if alternative is None else applied(job, alternative)


def _merged(old: Object, new: Object) -> Object:
    made = dict(old)
    for name, value in new.items():
        before = old.get(name)
        if value is None:
            continue
        if name in _NAMED and isinstance(value, list):
            made[name] = _merged_items(objects(before), objects(value))
        elif name == "env" and isinstance(value, list):
            by_name = {each.get("name"): each for each in (*objects(before), *objects(value))}
            made[name] = list(by_name.values())
        elif isinstance(value, dict) and isinstance(before, dict) and name != "resources":
            made[name] = _merged(before, value)
        else:
            made[name] = value
    return made


def _merged_items(old: list[Object], new: list[Object]) -> list[Object]:
    """Return the items of a list with the changes of those with the same name, in their order."""
    changes = {each.get("name"): each for each in new}
    return [_merged(each, changes.get(each.get("name"), {})) for each in old]
