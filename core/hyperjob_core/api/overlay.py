"""A replicatedJob as one of its alternatives, or of its sizes, has it. Pure.

An alternative changes a few fields of the template as its author wrote it, before any default: a
number of pods that is left out then follows from the changed one. A size is the number of sub-jobs
of a replicatedJob with `minReplicas` or `maxReplicas`, and an alternative that changes nothing
else.
"""

from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.defaults import with_names
from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.merge import merged
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import AlternativeStatus
from hyperjob_core.api.wire import integer, mapping, objects

BOUNDS: Final = ("maxReplicas", "minReplicas")
"""The fields that leave the number of sub-jobs open: the larger one first."""
_CHOICES: Final = frozenset({"alternatives", *BOUNDS})
_OF_JOB: Final = ("replicas", "clusterNames", "splitPolicy")
_REPLACED: Final = frozenset({"resources"})


def applied(job: Object, alternative: Object) -> Object:
    """Return a replicatedJob as one of its alternatives has it: an ordinary one.

    Maps merge, tasks and containers merge by name, and a variable replaces the one of its name. All
    else is replaced: `resources` too, because the accelerator of the template must not stay.
    """
    made = {name: value for name, value in job.items() if name not in _CHOICES}
    given = {name: alternative.get(name) for name in _OF_JOB}
    made |= {name: value for name, value in given.items() if value is not None}
    overlay = mapping(alternative.get("templateSpec"))
    if overlay:
        template = with_names(mapping(job.get("templateSpec")))
        made["templateSpec"] = merged(template, overlay, replaced=_REPLACED, grows=False)
    return made


def taken(status: Object) -> dict[str, AlternativeStatus]:
    """Return the alternatives in the status of a HyperJob, by the name of the replicatedJob."""
    found = table.read_all(AlternativeStatus, status.get("alternatives"))
    return {each.replicated_job: each for each in found}


def wanted_of(job: Object) -> int:
    """Return the number of sub-jobs that a replicatedJob would like."""
    wanted = integer(job.get("replicas"))
    return 1 if wanted is None else wanted


def sizes_of(job: Object) -> list[int]:
    """Return the sizes of a replicatedJob, the largest first; empty if its number is not open.

    Of many sizes it has those in equal steps from the largest, the smallest and the wanted one.
    """
    wanted = wanted_of(job)
    most, least = (
        wanted if (given := integer(job.get(each))) is None else given for each in BOUNDS
    )
    fixed = all(job.get(each) is None for each in BOUNDS)
    if fixed or not 0 < least <= wanted <= most or job.get("alternatives"):
        return []
    steps = MAX_COMBINATIONS - 1 - (most > wanted)
    step = max(1, -(-(most - least) // steps))
    return sorted({*range(most, least, -step), wanted, least}, reverse=True)


def with_alternative(job: Object, name: str | None) -> Object:
    """Return a replicatedJob with the alternative of a name, else with the first one, if any."""
    found = objects(job.get("alternatives"))
    sizes = found or [{"name": str(size), "replicas": size} for size in sizes_of(job)]
    named = next((each for each in sizes if each.get("name") == name), None)
    alternative = named if named is not None else next(iter(found), None)
    return job if alternative is None else applied(job, alternative)
