"""The pods in trouble of a member, by vcjob."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from hyperjob_engine.members.facts import MountFact, PodFact
from hyperjob_engine.members.podtroubles import SeenTrouble, continued
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind

_MOUNTS: Final = 1000
"""The pods of a member whose volumes cannot be mounted that are known: the latest ones."""


class Troubled:
    """The troubles of the pods of a member."""

    def __init__(self) -> None:
        # By vcjob and pod: the trouble as it is told, and the pod.
        self._jobs: dict[str, dict[str, tuple[PodTrouble, PodFact]]] = {}
        self._mounts: dict[str, MountFact] = {}
        self._news: set[str] = set()

    def put(self, pod: PodFact, before: PodFact | None) -> None:
        """Take over a pod of which anything has changed."""
        old = self._take(before)
        new = continued(old, pod.seen.trouble if pod.seen is not None else None)
        if new is not None:
            self._jobs.setdefault(pod.job, {})[pod.key] = new, pod
        told = self._is_told(pod.key, old) or self._is_told(pod.key, new)
        if told and new != old:
            self._news.add(pod.job)

    def drop(self, pod: PodFact) -> None:
        """Drop a pod."""
        if self._is_told(pod.key, self._take(pod)):
            self._news.add(pod.job)
        self._mounts.pop(pod.key, None)

    def mount(self, event: MountFact, pod: PodFact | None) -> None:
        """Take over an Event about a volume of a pod; the latest one of a pod counts."""
        self._mounts.pop(event.pod, None)
        self._mounts[event.pod] = event
        if len(self._mounts) > _MOUNTS:
            del self._mounts[next(iter(self._mounts))]
        if pod is not None and pod.key in self._jobs.get(pod.job, {}):
            self._news.add(pod.job)

    def news(self) -> frozenset[str]:
        """Return the vcjobs of which a pod has another trouble since the last call."""
        found = frozenset(self._news)
        self._news.clear()
        return found

    def worst(self, job: str, now: datetime) -> PodsTrouble | None:
        """Return the worst trouble of a vcjob's pods, and when that may be another one."""
        alike: dict[PodTrouble, list[str]] = {}
        changes: list[datetime] = []
        failed = 0
        for trouble, key, seen in self._seen(job):
            failed += trouble.failed
            changes += [each for each in (seen.since, seen.until) if each and each > now]
            begun = seen.since is None or seen.since <= now
            if begun and (seen.until is None or seen.until > now):
                alike.setdefault(trouble, []).append(key)
        if not alike and not changes:
            return None
        worst = min(alike, key=lambda each: each.order, default=None)
        pods = alike[worst] if worst is not None else []
        return PodsTrouble(
            trouble=worst,
            pod=min(pods, default="").partition("/")[2],
            pods=len(pods),
            failed=failed,
            changes=min(changes, default=None),
        )

    def _is_told(self, key: str, trouble: PodTrouble | None) -> bool:
        """Return whether `worst` may tell a trouble; a start without an Event is none."""
        if trouble is None:
            return False
        return trouble.kind is not TroubleKind.CREATING or key in self._mounts

    def _seen(self, job: str) -> Iterator[tuple[PodTrouble, str, SeenTrouble]]:
        for key, (told, pod) in self._jobs.get(job, {}).items():
            trouble = told
            if told.kind is TroubleKind.CREATING:
                event = self._mounts.get(key)
                if event is None or (pod.created is not None and event.last < pod.created):
                    continue  # without an Event, or with one about an earlier pod of the name
                trouble = event.trouble
            if pod.seen is not None:
                yield trouble, key, pod.seen

    def _take(self, pod: PodFact | None) -> PodTrouble | None:
        """Take back the trouble of a pod, and return it."""
        pods = self._jobs.get(pod.job, {}) if pod is not None else {}
        if pod is None or pod.key not in pods:
            return None
        trouble, _ = pods.pop(pod.key)
        if not pods:
            del self._jobs[pod.job]
        return trouble
