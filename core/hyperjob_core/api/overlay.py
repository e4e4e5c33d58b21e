"""A replicatedJob as one of its alternatives, and of its sizes, has it. Pure.

An alternative changes a few fields of the template as its author wrote it, before any default: a
number of pods that is left out then follows from the changed one. A size is the number of sub-jobs
of a replicatedJob with `minReplicas` or `maxReplicas`, or that of the accelerators of an automatic
split with `minAccelerators` or `maxAccelerators`; each alternative has sizes of its own.
"""

from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.defaults import with_names
from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.merge import merged
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import AlternativeStatus
from hyperjob_core.api.wire import integer, mapping, natural, objects

BOUNDS: Final = ("maxReplicas", "minReplicas")
"""The fields that leave the number of sub-jobs open: the larger one first."""
SPLIT_BOUNDS: Final = ("maxAccelerators", "minAccelerators")
"""The fields of an automatic split that leave the number of its accelerators open."""
_OF_JOB: Final = ("replicas", *BOUNDS, "clusterNames", "splitPolicy")
_REPLACED: Final = frozenset({"resources"})


def applied(job: Object, alternative: Object) -> Object:
    """Return a replicatedJob as one of its alternatives has it: without others, with its bounds.

    Maps merge, tasks and containers merge by name, and a variable replaces the one of its name. All
    else is replaced: `resources` too, because the accelerator of the template must not stay.
    """
    made = {name: value for name, value in job.items() if name != "alternatives"}
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


def number_of(job: Object) -> tuple[Object, str, tuple[str, str]]:
    """Return the object with the size of a replicatedJob, its field, and those of its bounds."""
    policy = mapping(job.get("splitPolicy"))
    if policy.get("mode") == "auto":
        return policy, "accelerators", SPLIT_BOUNDS
    return job, "replicas", BOUNDS


def wanted_of(job: Object) -> int:
    """Return the number of sub-jobs, or of accelerators to split, that a replicatedJob wants."""
    holder, field, _ = number_of(job)
    wanted = integer(holder.get(field))
    return 1 if wanted is None else wanted


def sizes_of(job: Object, unit: int = 1, shapes: int = 1) -> list[int]:
    """Return the sizes of a replicatedJob, the largest first; empty if its number is not open.

    Of many sizes it has those in equal steps of whole units from the largest, the smallest and the
    wanted one: fewer if it is one of several `shapes`.
    """
    wanted, (holder, _, bounds) = wanted_of(job), number_of(job)
    most, least = (
        wanted if (given := integer(holder.get(each))) is None else given for each in bounds
    )
    fixed = all(holder.get(each) is None for each in bounds)
    if fixed or not 0 < least <= wanted <= most:
        return []
    steps = max(3, MAX_COMBINATIONS // shapes) - 1 - (most > wanted)
    step = unit * max(1, -(-(most - least) // (steps * unit)))
    return sorted({*range(most, least, -step), wanted, least}, reverse=True)


def sized(job: Object, size: int) -> Object:
    """Return a replicatedJob with one of its sizes: an ordinary one."""
    holder, field, bounds = number_of(job)
    fixed = {name: value for name, value in holder.items() if name not in bounds} | {field: size}
    return fixed if holder is job else {**job, "splitPolicy": fixed}


def shape_of(job: Object, name: str | None) -> Object:
    """Return a replicatedJob with the alternative of a name in the status, else with the first.

    The name may have numbers: of `2 h100 + 1 a100` it has the first alternative in order.
    """
    found, parts = objects(job.get("alternatives")), (name or "").split(" + ")
    names = {each.split(" ")[-1] for each in parts}
    named = next((each for each in found if each.get("name") in names), None)
    alternative = named if named is not None else next(iter(found), None)
    return job if alternative is None else applied(job, alternative)


def size_in(name: str) -> int:
    """Return the size in a name in the status, such as `4`, `4 h100`, `2 h100 + 1 a100`; else 0."""
    return sum(natural(each.split(" ")[0]) or 0 for each in name.split(" + "))


def with_alternative(job: Object, name: str | None) -> Object:
    """Return a replicatedJob with the alternative and the size of a name, else with the first."""
    job, size = shape_of(job, name), size_in(name or "")
    sizes = sizes_of(job)
    return sized(job, size) if sizes and sizes[-1] <= size <= sizes[0] else job
