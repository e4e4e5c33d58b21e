"""The pods in trouble of a member, by vcjob: equal troubles are kept once."""

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
        # By vcjob and trouble: the pods that have it. `_pods` has vcjob and trouble by pod.
        self._jobs: dict[str, dict[PodTrouble, dict[str, PodFact]]] = {}
        self._pods: dict[str, tuple[str, PodTrouble]] = {}
        self._mounts: dict[str, MountFact] = {}
        self._news: set[str] = set()

    def put(self, pod: PodFact) -> None:
        """Take over a pod of which anything has changed."""
        before = self._take(pod.key)
        found = continued(before, pod.seen.trouble if pod.seen is not None else None)
        if found is not None:
            self._jobs.setdefault(pod.job, {}).setdefault(found, {})[pod.key] = pod
            self._pods[pod.key] = pod.job, found
        told = self._is_told(pod.key, before) or self._is_told(pod.key, found)
        if told and found != before:
            self._news.add(pod.job)

    def drop(self, pod: PodFact) -> None:
        """Drop a pod."""
        before = self._take(pod.key)
        if self._is_told(pod.key, before):
            self._news.add(pod.job)
        self._mounts.pop(pod.key, None)

    def mount(self, event: MountFact) -> None:
        """Take over an Event about a volume of a pod; the latest one of a pod counts."""
        self._mounts.pop(event.pod, None)
        self._mounts[event.pod] = event
        if len(self._mounts) > _MOUNTS:
            del self._mounts[next(iter(self._mounts))]
        if event.pod in self._pods:
            self._news.add(self._pods[event.pod][0])

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
        for trouble, pods in self._jobs.get(job, {}).items():
            creating = trouble.kind is TroubleKind.CREATING
            for key in pods.keys() & self._mounts.keys() if creating else pods:
                pod, found = pods[key], trouble
                if creating:
                    event = self._mounts[key]
                    if pod.created is not None and event.last < pod.created:
                        continue  # about an earlier pod of the name
                    found = event.trouble
                if pod.seen is not None:
                    yield found, key, pod.seen

    def _take(self, key: str) -> PodTrouble | None:
        """Take back the trouble of a pod, and return it."""
        if key not in self._pods:
            return None
        job, trouble = self._pods.pop(key)
        troubles = self._jobs[job]
        del troubles[trouble][key]
        if not troubles[trouble]:
            del troubles[trouble]
        if not troubles:
            del self._jobs[job]
        return trouble
