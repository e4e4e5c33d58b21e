"""The pods of a sub-job, and an upper bound of the pods that the nodes of a cluster can hold.

The bound is from the resource models of the Cluster.

Karmada counts the nodes of a cluster by grade, that is by the range of their free resources. The
grades cannot prove that a pod fits on a node, but together with the free resources of all nodes
they can prove that it does not. The controller uses them for this proof only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, integer, mapping, objects, string
from hyperjob_engine.model.members import ANY_NODE, NodeWants
from hyperjob_engine.resources import Resources, parse_resources, subtract

Frozen: TypeAlias = tuple[tuple[str, int], ...]
"""A request as sorted pairs of resource and amount, which can be a key."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Pods that must be inside one HyperNode of a tier of at most `tier`, or of this tier's name.

    `each` is how many of a group's pods one domain has. The groups that share domains have an equal
    `key`.
    """

    tier: int
    tier_name: str
    each: int
    key: str


@dataclass(frozen=True, slots=True)
class PodGroup:
    """`number` pods with equal requests; a request includes 1 of the resource `pods`.

    `domains` are from outside inwards: that of the whole job, that of a partition.
    """

    request: Resources
    number: int
    wants: NodeWants = ANY_NODE
    domains: tuple[Domain, ...] = ()

    @property
    def frozen(self) -> Frozen:
        """Return the request as a key."""
        return tuple(sorted(self.request.items()))


@dataclass(frozen=True, slots=True)
class Grade:
    """The nodes of one grade: each has at least `least` free and, if known, less than `below`."""

    count: int
    least: Resources
    below: Resources


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a cluster by grade, and `left`, the free resources of all nodes together.

    `all_counted`: the grades contain every node.
    """

    grades: tuple[Grade, ...]
    left: Resources
    all_counted: bool

    @property
    def resources(self) -> frozenset[str]:
        """Return the resources that the models describe."""
        return frozenset(name for grade in self.grades for name in grade.least)

    def most(self, name: str, amount: int) -> int:
        """Return an upper bound of the pods that fit, each with `amount` nano-units of a resource.

        `amount` must be above 0.

        The lower end of each grade holds some pods. Each further pod needs a node with more than
        its lower end, and `left` bounds how much more all nodes have together.
        """
        found, spare = 0, self.left.get(name, 0)
        steps: list[tuple[int, int | None]] = [] if self.all_counted else [(amount, None)]
        for grade in self.grades:
            least, below = grade.least.get(name, 0), grade.below.get(name)
            held, rest = divmod(least, amount)
            found += held * grade.count
            spare -= least * grade.count
            more = None if below is None else (below - 1) // amount - held
            if more is None or more > 0:
                steps.append((amount - rest, grade.count))
                steps.append((amount, None if more is None else (more - 1) * grade.count))
        for needed, number in sorted(steps, key=lambda step: step[0]):
            fitting = max(0, spare) // needed
            taken = fitting if number is None else min(fitting, number)
            found += taken
            spare -= taken * needed
        return found


def parse_nodes(raw: Object) -> Nodes | None:
    """Return the nodes from a Cluster's resource models; None if it reports none, or bad ones."""
    summary = mapping(at(raw, "status", "resourceSummary"))
    counts = {
        number: count(item.get("count"))
        for item in objects(summary.get("allocatableModelings"))
        if (number := integer(item.get("grade"))) is not None
    }
    models = dict(_models(raw))
    if not counts or set(counts) != set(models):
        return None
    # A node is in the grade that its scarcest resource reaches: only if there is one resource
    # alone is it known which one is below the grade's upper end.
    single = all(len(least) == 1 for least, _ in models.values())
    total = at(raw, "status", "nodeSummary", "totalNum")
    return Nodes(
        grades=tuple(
            Grade(number, models[grade][0], models[grade][1] if single else {})
            for grade, number in sorted(counts.items())
            if number
        ),
        left=subtract(
            parse_resources(summary.get("allocatable")), parse_resources(summary.get("allocated"))
        ),
        all_counted=integer(total) == sum(counts.values()),
    )


def _models(raw: Object) -> Iterator[tuple[int, tuple[Mapping[str, int], Mapping[str, int]]]]:
    """Yield grade, least and upper end of each resource model."""
    for model in objects(at(raw, "spec", "resourceModels")):
        grade = integer(model.get("grade"))
        ranges = objects(model.get("ranges"))
        if grade is not None:
            yield (
                grade,
                (
                    parse_resources({string(each.get("name")): each.get("min") for each in ranges}),
                    parse_resources({string(each.get("name")): each.get("max") for each in ranges}),
                ),
            )
