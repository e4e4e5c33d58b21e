"""What completed HyperJobs took: the running time to expect of others of their template or queue.

Pure. The HyperJobs themselves have the runs: a new leader learns those that are still there.
"""

from bisect import insort
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, integer, mapping, string
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import queue_of
from hyperjob_queueing.sizes import template_of

_MOST_KEYS: Final = 4096
_MOST_RUNS: Final = 16
"""The latest runs of a template or queue that count: some 100 bytes each."""


@dataclass(slots=True)
class PastRuns:
    """The latest runs of each template and queue: their end, their HyperJob, and how long they ran.

    The time that a HyperJob lost to stops does not count.
    """

    _runs: dict[str, list[tuple[str, str, timedelta]]] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Return whether there is any run."""
        return bool(self._runs)

    def note(self, raw: Object) -> None:
        """Remember the run of a HyperJob that has completed; the templates that ran last stay."""
        state = mapping(at(raw, "status", "state"))
        took = integer(at(raw, "status", "goodput", "milliseconds", TimeUse.PRODUCTIVE))
        if state.get("phase") != Phase.COMPLETED or not took:
            return
        hyperjob = parse_hyperjob(raw)
        if not hyperjob.replicated_jobs:
            return
        ended = string(state.get("lastTransitionTime"))
        run = (ended, hyperjob.uid, timedelta(milliseconds=took))
        queue = queue_of(hyperjob.replicated_jobs[0].template)
        for key in (template_of(hyperjob), f"queue {queue}"):
            runs = self._runs.pop(key, [])
            if run not in runs:
                insort(runs, run)
            self._runs[key] = runs[-_MOST_RUNS:]
        while len(self._runs) > _MOST_KEYS:
            del self._runs[next(iter(self._runs))]

    def took(self, template: str) -> timedelta | None:
        """Return the median of the runs of a template; None if there is none."""
        longer = self._longer(template, timedelta())
        return longer[len(longer) // 2] if longer else None

    def expect(self, template: str, queue: str, ran: timedelta) -> tuple[timedelta, str] | None:
        """Return the median of the runs that took longer than a HyperJob has run, and which."""
        for key, of in ((template, "template"), (f"queue {queue}", "queue")):
            longer = self._longer(key, ran)
            if longer:
                by = f"{len(longer)} earlier run{'s' * (len(longer) > 1)} of its {of}"
                return longer[len(longer) // 2], by
        return None

    def _longer(self, key: str, ran: timedelta) -> list[timedelta]:
        return sorted(took for *_, took in self._runs.get(key, ()) if took > ran)
