"""The details of the reason of a sub-job or a HyperJob: codes, numbers and sentences."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, assert_never

from hyperjob_core.api.choices import DependencyStatus
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.reasons.podsrefused import refused_text
from hyperjob_engine.reasons.shortage import (
    Overflow,
    Shortage,
    SplitOverflow,
    SplitShortage,
    overflow_text,
    shortage_text,
)
from hyperjob_engine.reasons.splitter import SplitTrouble, split_trouble_text
from hyperjob_engine.reasons.waiting import (
    GangShortage,
    KeptRoom,
    NextInLine,
    RoomDetail,
    SplitRoom,
    Wait,
    room_text,
    wait_text,
)


class Plain(enum.StrEnum):
    """Details without a number."""

    SUSPENDED = "Suspended"
    OLD_SUB_JOBS_LEAVE = "OldSubJobsLeave"


@dataclass(frozen=True, slots=True)
class Quoted:
    """A message of another component, of a program, or of the stored status, quoted as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Delayed:
    """The controller recreates the sub-job later; `why` is the message of its status entry."""

    why: str
    until: datetime


@dataclass(frozen=True, slots=True)
class StopGoesOn:
    """The controller stops sub-jobs and creates none before all have ended.

    `pods` is the number of their pods that the members still have; None: the controller does not
    know them, and goes on at `until`.
    """

    until: datetime
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class PodsLeft:
    """The member still has pods of an earlier attempt of the sub-job."""

    number: int


@dataclass(frozen=True, slots=True)
class Unmet:
    """A dependency on a replicatedJob, which `met` of its `total` sub-jobs satisfy."""

    replicated_job: str
    status: DependencyStatus
    met: int
    total: int


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The replicatedJobs in `dependsOn` that do not satisfy it yet."""

    unmet: Sequence[Unmet]


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """The queue has not admitted the sub-job; `lacks` is the reason, as far as it is known."""

    queue: str
    lacks: "Detail | None" = None


@dataclass(frozen=True, slots=True)
class WaitsToGrow:
    """The sub-job runs, and its queue has no room yet for the `pods` that the spec asks for."""

    pods: int
    wait: Wait | None


@dataclass(frozen=True, slots=True)
class SplitterWait:
    """The controller asks the splitter, again at `until`; `trouble` is the fault of its answer."""

    trouble: SplitTrouble | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """An object of an earlier attempt is still being deleted."""

    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ServerRefused:
    """The API server refused an object of the sub-job.

    `gives_back`: it could not judge the object, and others have the room of the HyperJob meanwhile.
    """

    reason: str
    message: str
    gives_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """An object of another owner has the name that an object of the sub-job needs.

    `of_hyperjob`: its owner is another HyperJob. `of_predecessor`: its owner is a deleted HyperJob
    of the same name.
    """

    kind: str
    name: str
    owner: str
    of_hyperjob: bool = False
    of_predecessor: bool = False


@dataclass(frozen=True, slots=True)
class BindingTaken:
    """The ResourceBinding of the sub-job's name belongs to another object, `stranger`."""

    binding: str
    stranger: str


@dataclass(frozen=True, slots=True)
class GaveBack:
    """The controller has deleted an incomplete gang `times` times; `left` are excluded clusters.

    `refused`: why the last of these clusters refuses the pods. `ended`: the message of the last
    run, if Volcano ended it before a pod ran.
    """

    times: int
    until: datetime
    left: Sequence[str] = ()
    refused: str = ""
    ended: str = ""


class SilenceCode(enum.StrEnum):
    """Which report about a sub-job is missing from its cluster."""

    NOTHING = "Nothing"
    NO_WORK = "NoWork"
    NO_PODS = "NoPods"
    NO_PROGRESS = "NoProgress"


class SilenceStep(enum.StrEnum):
    """What the controller does about a cluster that does not report."""

    WAIT = "Wait"
    ASK = "Ask"
    MAKE_AGAIN = "MakeAgain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The cluster of a sub-job has reported nothing, or no progress, since the vcjob was applied.

    With step WAIT the clusters of many other sub-jobs do not report either. `helpless`: the
    controller has taken the step `times` times without success, and a person has to look.
    """

    code: SilenceCode
    hyperjob: str
    name: str
    cluster: str
    since: datetime
    step: SilenceStep
    times: int = 0
    helpless: bool = False


Detail: TypeAlias = (
    Plain
    | Quoted
    | Delayed
    | StopGoesOn
    | PodsLeft
    | Dependencies
    | NotAdmitted
    | WaitsToGrow
    | SplitterWait
    | Leaving
    | ServerRefused
    | NameTaken
    | BindingTaken
    | GaveBack
    | Silent
    | Shortage
    | SplitShortage
    | Overflow
    | SplitOverflow
    | Wait
    | RoomDetail
)


_PLAIN: Final = {
    Plain.SUSPENDED: "suspended",
    Plain.OLD_SUB_JOBS_LEAVE: "waits until its old sub-jobs are gone",
}
_SILENCE: Final = {
    SilenceCode.NOTHING: "nothing",
    SilenceCode.NO_WORK: "nothing",
    SilenceCode.NO_PODS: "no pods",
    SilenceCode.NO_PROGRESS: "no progress",
}


def detail_text(detail: Detail | None) -> str:
    """Return the message of a reason's details; empty for None."""
    match detail:
        case None:
            return ""
        case Shortage() | SplitShortage():
            return shortage_text(detail)
        case Overflow() | SplitOverflow():
            return overflow_text(detail)
        case Wait():
            return wait_text(detail)
        case GangShortage() | KeptRoom() | SplitRoom() | NextInLine():
            return room_text(detail)
        case NameTaken() | BindingTaken() | Leaving():
            return _in_the_way(detail)
        case Silent():
            return silent_text(detail)
        case Plain():
            return _PLAIN[detail]
        case Quoted():
            return detail.text
        case Delayed():
            return detail.why
        case PodsLeft():
            return f"waits until the pods of its earlier attempt have ended: {detail.number} left"
        case StopGoesOn():
            return _stop(detail)
        case Dependencies():
            return "; ".join(map(_unmet, detail.unmet))
        case NotAdmitted():
            lacks = f": {detail_text(detail.lacks)}" if detail.lacks is not None else ""
            return f"waits for queue {detail.queue}{lacks}"
        case WaitsToGrow():
            return f"runs, and waits to grow to {detail.pods} pods: {wait_text(detail.wait)}"
        case SplitterWait():
            return _splitter(detail)
        case ServerRefused():
            text = f"{detail.reason}: {detail.message}"
            return f"{text}; others may use its room meanwhile" if detail.gives_back else text
        case GaveBack():
            return _gave_back(detail)
        case _:
            assert_never(detail)


def _stop(detail: StopGoesOn) -> str:
    """Return for what a sub-job waits while others stop: their pods, or without data a time."""
    waits = "waits until all sub-jobs that are stopped have ended"
    if detail.pods is not None:
        return f"{waits}: {detail.pods} of their pods are left"
    return f"{waits}, until {rfc3339(detail.until)} at the latest"


def _gave_back(detail: GaveBack) -> str:
    """Return when a gang that stayed incomplete tries again, and what it lacked."""
    left = f" without {', '.join(detail.left)}" if detail.left else ""
    why = (
        refused_text(detail.left[-1], detail.refused)
        if detail.refused and detail.left
        else detail.ended
        or f"the gang stayed incomplete (time {detail.times}), and the controller deleted"
        " its sub-jobs"
    )
    return f"waits for the next try at {detail.until:%H:%M:%S}Z{left}: {why}"


def _splitter(detail: SplitterWait) -> str:
    """Return for what a sub-job waits that an external splitter divides."""
    if detail.trouble is None:
        return "waits for the splitter's answer"
    why = split_trouble_text(detail.trouble)
    if detail.until is None:
        return f"the controller asks the splitter again: {why}"
    return (
        "the splitter's answer is unusable, and the controller asks again at"
        f" {rfc3339(detail.until)}: {why}"
    )


def _unmet(unmet: Unmet) -> str:
    verb = "completed" if unmet.status is DependencyStatus.COMPLETE else "run"
    return (
        f"waits for replicatedJob {unmet.replicated_job} to be {unmet.status}:"
        f" {unmet.met} of {unmet.total} sub-jobs {verb}"
    )


def _in_the_way(detail: NameTaken | BindingTaken | Leaving) -> str:
    """Return which object is in the way of a sub-job's object, and what a user can do."""
    match detail:
        case Leaving():
            what = f"{detail.kind} {detail.name}" if detail.name else detail.kind
            return f"waits until its old {what} is gone"
        case BindingTaken():
            return (
                f"ResourceBinding {detail.binding} belongs to {detail.stranger}, and Karmada would"
                f" use it for both; delete {detail.stranger}, or give the HyperJob another name"
            )
        case NameTaken(of_predecessor=True):
            return f"waits until the {detail.kind} of an earlier HyperJob of this name is gone"
        case NameTaken():
            holder = f", controlled by {detail.owner}" if detail.owner else ""
            text = (
                f"{detail.kind} {detail.name} exists and does not belong to this HyperJob{holder}"
            )
            if detail.of_hyperjob:  # its controller would recreate a deleted object
                return f"{text}; give one of the two HyperJobs another name"
            return f"{text}; delete it, or give the HyperJob another name"
        case _:
            assert_never(detail)


def silent_text(silent: Silent) -> str:
    """Return which report of a cluster is missing, and what the controller does about that."""
    since = rfc3339(silent.since)
    text = (
        f"cluster {silent.cluster} has reported {_SILENCE[silent.code]} since Karmada applied the"
        f" Job there at {since}"
    )
    if silent.code is SilenceCode.NO_WORK:
        text = f"Karmada has counted no Work of {silent.name} for {silent.cluster} since {since}"
    match silent.step:
        case SilenceStep.WAIT:
            return f"{text}, like the clusters of many other sub-jobs"
        case SilenceStep.MAKE_AGAIN:
            text = f"{text}; the controller recreates it"
        case SilenceStep.ASK:
            text = f"{text}; the controller has Karmada apply it again"
        case _:
            assert_never(silent.step)
    return f"{text}; {_advice(silent)}" if silent.helpless else text


def _advice(silent: Silent) -> str:
    """Return what a person does about a cluster for which the controller's steps did not help."""
    tried = f"this did not help {silent.times} times"
    if silent.code not in (SilenceCode.NOTHING, SilenceCode.NO_WORK):
        return f"{tried}: its PodGroup in the cluster has the reason"
    return (
        f"{tried}: see in the cluster whether Job {silent.name} is there and Volcano's controller"
        f" runs, then: kubectl hyperjob restart {silent.hyperjob} --job {silent.name}"
    )
