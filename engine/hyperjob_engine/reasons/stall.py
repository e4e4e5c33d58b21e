"""A training that makes no steps: where its processes are, in words that claim no more."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.wire import rfc3339
from hyperjob_core.text import human_duration, listed
from hyperjob_engine.reasons.stacks import Stack, Survey

_SHOWN: Final = 4


def no_steps_text(
    jobs: Sequence[str],
    *,
    since: datetime,
    step: int,
    usual: timedelta | None,
    survey: Survey | None,
) -> str:
    """Return since when programs report no step, and where their processes are.

    They are those of the sub-jobs `jobs`, or without any all that report. `usual` is the time
    between two lines before; None: unknown. `survey` has the stacks.
    """
    pace = f", and one every {_spoken(usual)} before" if usual is not None else ""
    whose = listed(jobs) if jobs else "the program"
    text = f"{whose} has reported no step since {rfc3339(since)} (step {step}){pace}"
    if survey is None:
        return text
    return f"{text}: {comparison(survey) or 'its processes print no stacks'}"


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
