"""The step before each pass: what the controller remembers is brought up to date.

All that a pass changes in memory before it decides is changed here, so observing changes nothing.
"""

from controller.ledger import Ledger
from controller.line import Line
from controller.model.observed import Observed
from controller.namesakes import Namesakes
from controller.observe import Observer, not_applied


class Learner:
    """Takes in what the API server says of one HyperJob at a time."""

    def __init__(
        self, observer: Observer, line: Line, *, ledger: Ledger, namesakes: Namesakes
    ) -> None:
        self._observer = observer
        self._line = line
        self._ledger = ledger
        self._namesakes = namesakes

    def learn(self, key: str) -> Observed | None:
        """Learn of a HyperJob, then observe it; None when there is none."""
        seen = self._observer.see(key)
        if seen is None:
            return None
        self._ledger.expire(now=seen.now)
        self._line.freed(self._ledger.take_freed())
        for uid in not_applied(seen.bindings.values()):
            self._namesakes.not_applied(uid)
        self._line.learn(seen)
        return self._observer.judge(seen)

    def forget(self, key: str) -> None:
        """Learn that a HyperJob is gone."""
        self._observer.forget(key)
        self._line.forget(key)
