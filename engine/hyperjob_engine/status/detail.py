"""The messages of the details of a reason (`hyperjob_engine.model.detail`)."""

from collections.abc import Iterable
from typing import Final, assert_never

from hyperjob_core.api.choices import DependencyStatus
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.detail import (
    BindingTaken,
    Delayed,
    Dependencies,
    Detail,
    GaveBack,
    Leaving,
    NameTaken,
    NotAdmitted,
    Plain,
    Quoted,
    ServerRefused,
    SilenceCode,
    SilenceStep,
    Silent,
    SplitterWait,
    StopGoesOn,
    Unmet,
    WaitsToGrow,
)
from hyperjob_engine.model.observed import Rejection
from hyperjob_engine.model.shortage import Overflow, Shortage, SplitOverflow, SplitShortage
from hyperjob_engine.model.waiting import GangShortage, KeptRoom, NextInLine, SplitRoom, Wait
from hyperjob_engine.status.shortage import overflow_text, shortage_text
from hyperjob_engine.status.splitting import split_trouble_text
from hyperjob_engine.status.waiting import room_text, wait_text

_PLAIN: Final = {
    Plain.SUSPENDED: "suspended",
    Plain.OLD_SUB_JOBS_LEAVE: "waits until its old sub-jobs are gone",
}
_SILENCE: Final = {
    SilenceCode.NOTHING: "nothing",
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
        case StopGoesOn():
            latest = f"until {rfc3339(detail.until)} at the latest"
            return f"waits until all sub-jobs that are stopped have ended, {latest}"
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
            return f"{detail.reason}: {detail.message}"
        case GaveBack():
            left = f" without {', '.join(detail.left)}" if detail.left else ""
            return (
                f"waits for the next try at {detail.until:%H:%M:%S}Z{left}: the gang stayed"
                f" incomplete (time {detail.times}), and the controller deleted its sub-jobs"
            )
        case _:
            assert_never(detail)


def _splitter(detail: SplitterWait) -> str:
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
    tried = f"this did not help {silent.times} times"
    if silent.code is not SilenceCode.NOTHING:
        return f"{tried}: its PodGroup in the cluster has the reason"
    return (
        f"{tried}: see in the cluster whether Job {silent.name} is there and Volcano's controller"
        f" runs, then: kubectl hyperjob restart {silent.hyperjob} --job {silent.name}"
    )


def left_out_text(rejections: Iterable[Rejection]) -> str:
    """Return which clusters are left out until when; empty if none is."""
    return "; ".join(
        f"Karmada could not schedule it on {item.cluster}, left out until"
        f" {item.retry_time:%H:%M:%S}Z"
        for item in rejections
    )
