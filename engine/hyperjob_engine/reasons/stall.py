"""A training that makes no steps: where its processes are, in words that claim no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.wire import rfc3339
from hyperjob_core.text import human_duration, listed
from hyperjob_engine.reasons.stacks import Stack, Survey

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """A sub-job whose program makes no steps, so that the controller restarts it."""

    name: str
    step: int
    since: datetime
    cluster: str = ""


def stalled_text(cause: Stalled) -> str:
    """Return which sub-job makes no steps, and since when."""
    where = f" on {cause.cluster}" if cause.cluster else ""
    return (
        f"{cause.name}{where} has reported no step since {rfc3339(cause.since)} (step {cause.step})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSteps:
    """The sub-jobs `jobs`, or with `whole` all that report, make no steps since a time.

    `usual` is the time between two lines before; None: unknown. `survey` has the stacks.
    """

    jobs: Sequence[str]
    whole: bool
    since: datetime
    step: int
    usual: timedelta | None = None
    survey: Survey | None = None


def no_steps_text(found: NoSteps) -> str:
    """Return since when the programs report no step, and where their processes are."""
    whose = "the program" if found.whole else listed(found.jobs)
    pace = f", and one every {_spoken(found.usual)} before" if found.usual is not None else ""
    text = f"{whose} has reported no step since {rfc3339(found.since)} (step {found.step}){pace}"
    if found.survey is None:
        return text
    return f"{text}: {comparison(found.survey) or 'its processes print no stacks'}"


def _spoken(usual: timedelta) -> str:
    seconds = usual.total_seconds()
    return f"{seconds:.2g} s" if seconds < 10 else human_duration(seconds)


def comparison(survey: Survey) -> str:
    """Return in words where the processes are; empty without a stack."""
    groups = survey.groups()
    if not groups:
        return ""
    world, ranked = survey.world, survey.ranked
    unit = "ranks" if ranked else "processes"
    total = world if ranked and world else len(survey.stacks)
    texts = []
    for calls, members in groups[:_SHOWN]:
        place = ", called from ".join(map(str, calls))
        if members is groups[0][1] and len(members) > 1:
            texts.append(f"{len(members)} of {total} {unit} are in {place}")
        else:
            verb = "is" if len(members) == 1 else "are"
            texts.append(f"{_processes_text(members, ranked=ranked)} {verb} in {place}")
    if len(groups) > _SHOWN:
        texts.append(f"the others are in {len(groups) - _SHOWN} more places")
    return "; ".join([*texts, *_silent_texts(survey)])


def _processes_text(members: Sequence[Stack], *, ranked: bool) -> str:
    """Return ranks with their clusters, or pods where processes have no rank."""
    if not ranked:
        return f"pod {listed(sorted({f'{each.cluster}/{each.pod.name}' for each in members}))}"
    ranks = [str(each.rank) for each in sorted(members, key=lambda each: each.rank or 0)]
    clusters = listed(sorted({each.cluster for each in members}))
    return f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks, shown=8)} in {clusters}"


def _silent_texts(survey: Survey) -> list[str]:
    """Return the ranks and the pods without a stack."""
    missing, pods = survey.missing(), survey.silent_pods()
    named = listed([f"{pod.cluster}/{pod.name}" for pod in pods])
    if not missing:
        return [f"no stack from pod {named}"] if pods else []
    ranks = listed([str(rank) for rank in missing], shown=8)
    text = f"no stack from rank{'s' if len(missing) > 1 else ''} {ranks}"
    return [f"{text} (pod {named})" if pods else text]
