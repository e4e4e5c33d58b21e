"""The trouble of one pod, from its spec and status as a member shows them.

The words name no restart count and no back-off: a crash loop that goes on is no news.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import (
    at,
    condition,
    integer,
    mapping,
    objects,
    string,
    timestamp,
)
from hyperjob_core.text import listed, shortened
from hyperjob_engine.members.podfailures import Container, containers_of, first_failure, task_of
from hyperjob_engine.reasons.pods import PodTrouble, TroubleKind

PATIENCE: Final = timedelta(seconds=10)
"""How old a failure or a pod that does not start must be: Volcano may react, an object may come."""
_STEADY: Final = timedelta(seconds=60)
"""How long a container runs until it has left its crash loop."""
_BACK_OFF_ENDS: Final = timedelta(minutes=10)
"""A container that ran for longer is started again without a pause, as in a kubelet."""
_STARTS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_LOOPS: Final = frozenset({"CrashLoopBackOff", "RunContainerError"})
_PULLS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError"}
)
_PULL_CAUSE: Final = re.compile(r"^Back-off pulling image \"[^\"]*\"(?:: )?(?:ErrImagePull: )?")
_MISSING: Final = re.compile(
    r"\b(configmap|secret|persistentvolumeclaim) \"([^\"]{1,253})\" not found"
)
_KINDS: Final = {
    "configmap": "ConfigMap",
    "secret": "Secret",
    "persistentvolumeclaim": "PersistentVolumeClaim",
}
_UNBOUND: Final = re.compile(
    r"unbound immediate PersistentVolumeClaims|available persistent volumes to bind"
)
_MOUNT: Final = re.compile(r"^MountVolume\.\w+ failed for volume \"[^\"]*\" ?: ")
_NUMBERS: Final = re.compile(r"\d+")
_NAME: Final = 253
_DETAIL: Final = 400


@dataclass(frozen=True, slots=True)
class SeenTrouble:
    """A trouble, and the time in which it counts; None is no bound."""

    trouble: PodTrouble
    since: datetime | None = None
    until: datetime | None = None


def trouble_of(pod: Object) -> SeenTrouble | None:
    """Return the trouble of a pod; None if it runs, has ended well or is being deleted."""
    metadata, status = mapping(pod.get("metadata")), mapping(pod.get("status"))
    phase, created = string(status.get("phase")), timestamp(metadata.get("creationTimestamp"))
    if phase == "Succeeded" or metadata.get("deletionTimestamp") is not None:
        return None
    if phase == "Running" and _is_steady(status):
        return None
    task = task_of(metadata)
    if phase == "Failed":
        return _failed(pod, task)
    containers = list(containers_of(pod))
    found = _ended(containers) or _looping(containers)  # the worst first
    if found is None:
        waits = _blocked(containers)
        if waits is None and phase != "Running":
            waits = _unscheduled(pod) or _starting(pod, containers)
        if waits is None:
            return None
        found = SeenTrouble(waits, None if created is None else created + PATIENCE)
    return replace(found, trouble=replace(found.trouble, task=task))


def mount_trouble(message: str) -> PodTrouble | None:
    """Return the trouble of an Event about a failed mount; None if its message has no cause."""
    said = " ".join(_MOUNT.sub("", message).split())
    if said.startswith(("Unable to attach or mount volumes", "failed to sync")):
        return None  # the kubelet says this beside the Event that names the cause
    return _missing(said) or PodTrouble(
        TroubleKind.BLOCKED, words="a volume cannot be mounted", detail=shortened(said, _DETAIL)
    )


def continued(before: PodTrouble | None, after: PodTrouble | None) -> PodTrouble | None:
    """Return the trouble as it was told before if only numbers or the detail's presence differ."""
    if before is None or after is None or replace(before, detail="") != replace(after, detail=""):
        return after
    same = _NUMBERS.sub("", before.detail) == _NUMBERS.sub("", after.detail)
    return before if same or not after.detail else after


def _failed(pod: Object, task: str) -> SeenTrouble | None:
    failure = first_failure([pod])
    if failure is None:
        return None
    code = failure.exit_code
    words = " failed" if code is None else f" ended with exit code {code}"
    reason = failure.reason if failure.reason != "Error" else ""
    why = ": ".join(filter(None, (reason, " ".join(failure.last_line.split()))))
    detail = shortened(why, _DETAIL)
    trouble = PodTrouble(TroubleKind.ENDED, task, words, detail, failed=True, exit_code=code)
    return SeenTrouble(trouble, _patient(failure.time))


def _is_steady(status: Object) -> bool:
    """Return whether no container has been started again, and each runs or has ended well.

    Nearly all pods are: it saves a look at the spec.
    """
    for each in (
        *objects(status.get("initContainerStatuses")),
        *objects(status.get("containerStatuses")),
    ):
        state = mapping(each.get("state"))
        ended = mapping(state.get("terminated"))
        if each.get("restartCount") or state.get("waiting") or ended.get("exitCode"):
            return False
    return True


def _patient(time: object) -> datetime | None:
    moment = timestamp(time)
    return None if moment is None else moment + PATIENCE


def _looping(containers: list[Container]) -> SeenTrouble | None:
    """Return the crash loop of a container, also while it runs for a moment between two ends."""
    for each in containers:
        last = each.ended or each.last
        code = integer(last.get("exitCode"))
        if code is None or not each.restarts_after(code):
            continue
        always = code == 0 and not each.is_init
        again = ", since restartPolicy is Always" if always else " and again"
        words = f": {each.words} ended with exit code {code} and is started again{again}"
        why = string(last.get("reason"))[:_NAME]
        if why in ("Error", "Completed"):
            why = ""
        trouble = PodTrouble(TroubleKind.CRASH_LOOP, words=words, detail=why)
        if string(each.waiting.get("reason")) in _LOOPS or (each.ended and each.restarts):
            return SeenTrouble(trouble)
        if each.running and each.last and each.restarts and always:
            return SeenTrouble(trouble)  # its pod never completes, however long the program takes
        started = timestamp(each.running.get("startedAt"))
        if started is not None and each.restarts > 1 and _was_short(each.last):
            return SeenTrouble(trouble, until=started + _STEADY)
    return None


def _was_short(ended: Object) -> bool:
    begin, end = timestamp(ended.get("startedAt")), timestamp(ended.get("finishedAt"))
    return begin is not None and end is not None and end - begin < _BACK_OFF_ENDS


def _ended(containers: list[Container]) -> SeenTrouble | None:
    """Return the container that ended with an error while others of its pod run."""
    for each in containers:
        code = integer(each.ended.get("exitCode"))
        if code and not each.restarts_after(code):
            words = f": {each.words} ended with exit code {code}"
            trouble = PodTrouble(TroubleKind.ENDED, words=words)
            return SeenTrouble(trouble, _patient(each.ended.get("finishedAt")))
    return None


def _blocked(containers: list[Container]) -> PodTrouble | None:
    """Return the container that the kubelet cannot create."""
    for each in containers:
        reason = string(each.waiting.get("reason"))[:_NAME]
        if reason in _STARTS or reason in _LOOPS:
            continue
        said = shortened(" ".join(string(each.waiting.get("message")).split()), _DETAIL)
        if reason in _PULLS:
            words = f"image {each.image} of {each.words} cannot be pulled"
            cause = _PULL_CAUSE.sub("", said)
            return PodTrouble(TroubleKind.BLOCKED, words=words, detail=cause)
        words = f"{reason} of {each.words}"
        return _missing(said) or PodTrouble(TroubleKind.BLOCKED, words=words, detail=said)
    return None


def _unscheduled(pod: Object) -> PodTrouble | None:
    """Return why a pod has no node."""
    spec = mapping(pod.get("spec"))
    if spec.get("nodeName"):
        return None
    gates = [string(each.get("name"))[:_NAME] for each in objects(spec.get("schedulingGates"))]
    if gates:
        words = f"scheduling gate {listed(gates, shown=3)} is not removed"
        return PodTrouble(TroubleKind.BLOCKED, words=words)
    said = condition(mapping(pod.get("status")), "PodScheduled")
    scheduler = string(spec.get("schedulerName"))[:_NAME]
    if not said and scheduler not in ("", "volcano"):
        words = f"scheduler {scheduler} says nothing of the pod"
        return PodTrouble(TroubleKind.WAITING, words=words)
    message = shortened(" ".join(string(said.get("message")).split()), _DETAIL)
    if said.get("status") != "False" or not message:
        return None
    if _UNBOUND.search(message):
        words = f"PersistentVolumeClaim {listed(list(_claims(spec)), shown=3)} is not bound"
        return PodTrouble(TroubleKind.BLOCKED, words=words)
    return _missing(message) or PodTrouble(
        TroubleKind.WAITING, words="no node for the pod", detail=message
    )


def _starting(pod: Object, containers: list[Container]) -> PodTrouble | None:
    """Return what a pod with a node waits for: an init container that runs, or its volumes."""
    for each in containers:
        if each.is_init and each.policy != "Always" and each.running:
            return PodTrouble(TroubleKind.WAITING, words=f"{each.words} runs")
    if at(pod, "spec", "nodeName") and not any(each.running or each.ended for each in containers):
        return PodTrouble(TroubleKind.CREATING)
    return None


def _missing(message: str) -> PodTrouble | None:
    """Return the object that a message of Kubernetes says is missing."""
    found = _MISSING.search(message)
    if found is None:
        return None
    return PodTrouble(TroubleKind.BLOCKED, words=f"{_KINDS[found[1]]} {found[2]} not found")


def _claims(spec: Object) -> Iterator[str]:
    for volume in objects(spec.get("volumes")):
        if name := string(at(volume, "persistentVolumeClaim", "claimName"))[:_NAME]:
            yield name
