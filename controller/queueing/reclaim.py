"""Who gives back what was lent, for the first of a line that is within its queue's share.

Only HyperJobs of queues with `reclaimable: true` give back, each whole, and none for a queue of
lower priority. Tries things out on copies.
"""

from collections.abc import Sequence
from typing import Final

from controller.model.resources import Resources, total
from controller.queueing.account import Account
from controller.queueing.admit import Grant, gang_of, try_to_admit
from controller.queueing.book import Book, Entry, Waiting
from controller.queueing.room import Space

_MOST: Final = 64  # more HyperJobs than this never give back for one


def borrowers_for(book: Book, waiting: Waiting) -> Sequence[str] | None:
    """Return the fewest that must give back for a HyperJob to start, the least urgent of them.

    None: that cannot help it. Nobody: what has ended leaves enough, and only has to be seen.
    """
    gang = gang_of(waiting.parts, waiting.shape.site, book.account)
    queues = {part.queue for part in gang}
    if len(queues) != 1:
        return None
    queue, demand = queues.pop(), total(part.request.demand for part in gang)
    trial = _Trial(waiting, book.account.copy(), book.coming())
    holders = [(entry.unit.order, key) for key, entry in book.entries.items() if entry.holding]
    taken: list[Entry] = []
    for _, key in sorted(holders, reverse=True):
        if len(taken) == _MOST or trial.is_enough():
            break
        entry = book.entries[key]
        borrowers = {part.queue for part, _ in entry.holding.values()}
        if all(trial.account.owes(each, queue, demand) for each in borrowers):
            trial.take_from(entry)
            taken.append(entry)
    if not trial.is_enough():
        return None
    needed = []
    for entry in reversed(taken):
        trial.give_to(entry)
        if not trial.is_enough():
            trial.take_from(entry)
            needed.append(entry.unit.key)
    return needed


class _Trial:
    """Queues and clusters as they would be if some gave back what they hold."""

    def __init__(self, waiting: Waiting, account: Account, space: Space) -> None:
        self._waiting = waiting
        self.account = account
        self._space = space

    def take_from(self, entry: Entry) -> None:
        self._move(entry, -1)

    def give_to(self, entry: Entry) -> None:
        self._move(entry, 1)

    def is_enough(self) -> bool:
        """Tell whether the one that waits could start."""
        site = self._waiting.shape.site
        if not self._space.allows(site.floor):
            return False
        found = try_to_admit(self._waiting.parts, site, self.account, self._space)
        return isinstance(found, Grant)

    def _move(self, entry: Entry, sign: int) -> None:
        for part, cluster in entry.holding.values():
            demand: Resources = part.request.demand
            self.account.add(part.queue, demand, sign)
            self._space.take(cluster, demand, sign)
