"""The lines of waiting HyperJobs, one per queue, in order and grouped by shape.

A shape is a set of HyperJobs that the same rules block; the module knows no reason of a wait.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hyperjob_queueing.workload import OrderInQueue, Shape

Groups = dict[Shape, list[OrderInQueue]]


@dataclass(slots=True)
class Lines:
    """One line per queue; a resting HyperJob is in its line and in no group.

    HyperJobs of a shape that is set aside are in their group and in no line: they have no place. A
    round still tries them.

    `changed` are the lines in which a HyperJob waits for another reason since the last search for
    stale messages, `moved` those in which only places changed.

    Invariants: every list is sorted and has an item, and what is in a group is in its line unless
    its shape is set aside.
    """

    changed: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    _lines: dict[str, list[OrderInQueue]] = field(default_factory=dict)
    _groups: dict[str, Groups] = field(default_factory=dict)
    _aside: set[tuple[str, Shape]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self._lines or self._groups)

    def queues(self) -> list[str]:
        """Return the queues in which HyperJobs wait that are not resting."""
        return sorted(self._groups)

    def line(self, queue: str) -> Sequence[OrderInQueue]:
        """Return the HyperJobs of a line, in order."""
        return self._lines.get(queue, ())

    def place(self, queue: str, order: OrderInQueue) -> int:
        """Return a place in a line, from 1."""
        return bisect_left(self.line(queue), order) + 1

    def groups(self) -> Iterator[tuple[str, Shape, Sequence[OrderInQueue]]]:
        """Yield the HyperJobs that wait and are not resting, by queue and shape."""
        for queue, groups in self._groups.items():
            for shape, orders in groups.items():
                yield queue, shape, orders

    def firsts(self, queue: str) -> list[OrderInQueue]:
        """Return the first of every group in a line, in order."""
        return sorted(orders[0] for orders in self._groups.get(queue, {}).values())

    def first(self, queue: str, shape: Shape) -> OrderInQueue | None:
        """Return the first of one group."""
        orders = self._groups.get(queue, {}).get(shape)
        return orders[0] if orders else None

    def join(self, queue: str, shape: Shape, order: OrderInQueue, *, resting: bool) -> None:
        """Add a HyperJob; a `resting` one keeps its place in the line and is not admitted."""
        if resting or (queue, shape) not in self._aside:
            insort(self._lines.setdefault(queue, []), order)
        if not resting:
            insort(self._groups.setdefault(queue, {}).setdefault(shape, []), order)
        self.moved.add(queue)

    def leave(self, queue: str, shape: Shape, order: OrderInQueue) -> None:
        """Remove a HyperJob from its line, and from its group unless it rests.

        It must have joined with this queue, shape and order.
        """
        self._take_out(queue, order)
        groups = self._groups.get(queue, {})
        if shape in groups and _remove(groups[shape], order) and not groups[shape]:
            del groups[shape]
            self._aside.discard((queue, shape))
            if not groups:
                del self._groups[queue]

    def set_aside(self, queue: str, shape: Shape) -> None:
        """Take the HyperJobs of a shape out of their line: they can never run as all is now."""
        if (queue, shape) not in self._aside:
            self._aside.add((queue, shape))
            for order in self._groups.get(queue, {}).get(shape, ()):
                self._take_out(queue, order)

    def take_back(self) -> None:
        """Put all that is set aside into its line again: a cluster or a Queue has changed."""
        for queue, shape in self._aside:
            for order in self._groups.get(queue, {}).get(shape, ()):
                insort(self._lines.setdefault(queue, []), order)
                self.moved.add(queue)
        self._aside.clear()

    def _take_out(self, queue: str, order: OrderInQueue) -> None:
        self.moved.add(queue)
        line = self._lines.get(queue, [])
        if _remove(line, order) and not line:
            del self._lines[queue]


def _remove(orders: list[OrderInQueue], order: OrderInQueue) -> bool:
    """Remove an item from a sorted list; return whether the list had it."""
    index = bisect_left(orders, order)
    found = index < len(orders) and orders[index] == order
    if found:
        del orders[index]
    return found
