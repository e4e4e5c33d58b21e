"""Messages about a shortage: what a sub-job or a split needs, and what each cluster lacks.

Decisions compare the codes and numbers of `hyperjob_engine.model.shortage` instead.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from hyperjob_core.text import listed
from hyperjob_engine.model.resources import PODS, Resources, accelerator_of, amount_text, order_of
from hyperjob_engine.model.shortage import (
    ClusterOffer,
    ClusterTrouble,
    Crowding,
    Hindrance,
    Lack,
    NoDevice,
    Obstacle,
    Overflow,
    Shortage,
    ShortageCode,
    SplitOverflow,
    SplitShortage,
    Trouble,
)

NEVER: Final = " and too little even on empty clusters"
_RESOURCES_SHOWN: Final = 2
_TROUBLES: Final = {
    ClusterTrouble.REMOVED: "is being removed",
    ClusterTrouble.NOT_READY: "is not Ready",
    ClusterTrouble.TAINTED: "has taint",
    ClusterTrouble.NO_VCJOB_API: (
        "does not serve batch.volcano.sh/v1alpha1 Job (is Volcano installed?)"
    ),
    ClusterTrouble.NO_RESOURCE_SUMMARY: "reports no resourceSummary",
    ClusterTrouble.NO_READY_NODE: "has no ready node",
}
_PLAIN: Final = {
    Obstacle.UNKNOWN: "does not exist",
    Obstacle.EXCLUDED: "is excluded",
    Obstacle.NOT_ALLOWED: "is not in clusterNames (clusterPolicy Required)",
    Obstacle.OTHERS: "has room for this sub-job, but not for the others on it",
    Obstacle.STAYS: "has room, but running sub-jobs stay where they are",
    Obstacle.SETTLED: "has room, but the sub-job is placed already",
    Obstacle.NOT_PREFERRED: "has room, but is not in clusterNames",
    Obstacle.LEFT_TO_OTHERS: "has room, but another sub-job needs it",
    Obstacle.FARTHER: "has room, but is farther from the other sub-jobs",
    Obstacle.NOT_FOR_ALL: "has room, but not for all that must be placed together",
    Obstacle.OTHER_SHARE: "holds another share of the split",
    Obstacle.NOT_NEEDED: (
        "has room, but the split takes as few clusters as hold it, near ones and close fits first"
    ),
}


def shortage_text(short: Shortage | SplitShortage) -> str:
    """Return why a sub-job, or an automatic split, has no place."""
    return _split_shortage(short) if isinstance(short, SplitShortage) else _shortage(short)


def overflow_text(overflow: Overflow | SplitOverflow) -> str:
    """Return why the preferred clusters do not take a sub-job, or the accelerators of a split."""
    if isinstance(overflow, SplitOverflow):
        return "; ".join(_overflown(part, overflow) for part in overflow.parts)
    return "; ".join(_hindrances(overflow.hindrances, overflow.hidden))


def trouble_text(trouble: Trouble | None) -> str:
    """Return why a cluster is not usable; empty if it is."""
    if trouble is None:
        return ""
    text = _TROUBLES[trouble.code]
    if trouble.code is ClusterTrouble.TAINTED:
        return f"{text} {trouble.detail}"
    return f"{text} ({trouble.detail})" if trouble.detail else text


def hindrance_text(hindrance: Hindrance) -> str:
    """Return why a cluster does not take a sub-job, to follow the cluster's name."""
    other, crowding = hindrance.other, hindrance.crowding
    match hindrance.code:
        case Obstacle.UNUSABLE:
            return trouble_text(hindrance.trouble)
        case Obstacle.LACKS:
            return f"lacks {' and '.join(_lack(lack) for lack in hindrance.lacks)}"
        case Obstacle.NODES:
            return _crowded(crowding) if crowding is not None else "has no node left"
        case Obstacle.MAX_DOMAINS:
            return f"has room but maxDomains {hindrance.limit} is used up"
        case Obstacle.LATER:
            return f"has room, but comes after {other} in clusterNames"
        case Obstacle.SIBLING:
            return f"has room, but has a sub-job of {other} already"
        case Obstacle.LOOSER:
            return f"has room, but fits less closely than {other}"
        case Obstacle.BY_NAME:
            return f"has as much room as {other}, which comes first by name"
        case Obstacle.WAITS:
            return f"has room, but the sub-job {other}"
        case code:
            return _PLAIN[code]


def need_text(demand: Resources) -> str:
    """Return the size of a sub-job: its accelerators, else its native resources."""
    measure = accelerator_of(demand)
    if measure is not None:
        return amount_text(measure, demand[measure])
    names = [name for name in sorted(demand, key=order_of) if name != PODS and demand[name] > 0]
    shown = [amount_text(name, demand[name]) for name in names[:_RESOURCES_SHOWN]]
    return " and ".join(shown) or amount_text(PODS, demand.get(PODS, 0))


def _shortage(shortage: Shortage) -> str:
    cluster = shortage.cluster
    match shortage.code:
        case ShortageCode.UNSETTLED:
            counts = f"the status of {cluster} counts the pods that have just started there"
            return f"waits until {counts}"
        case ShortageCode.WAITS_FOR_GANG:
            number = shortage.together
            return f"has room on {cluster}, waits until {number} sub-jobs can be placed together"
        case ShortageCode.NO_ROOM if shortage.no_device is not None:
            return no_device_text(shortage.no_device)
        case ShortageCode.NO_ROOM:
            only = " (clusterPolicy Required)" if shortage.required else ""
            texts = _hindrances(shortage.hindrances, shortage.hidden)
            reasons = "; ".join(texts) or "no cluster is registered"
            return f"needs {need_text(shortage.demand)}{only}: {reasons}"
        case _:
            assert_never(shortage.code)


def no_device_text(found: NoDevice) -> str:
    """Return that no cluster has an extended resource, with an existing one of similar name."""
    hint = f"; did you mean {found.near}?" if found.near else ""
    return f"no cluster has {found.name}{hint}"


def alike(texts: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return one text for all names with an equal text: "each of a, b and 1 more lacks 8 cpu"."""
    names: dict[str, list[str]] = {}
    for name, text in texts:
        names.setdefault(text, []).append(name)
    return [
        f"{each[0]} {text}" if len(each) == 1 else f"each of {listed(each)} {text}"
        for text, each in names.items()
    ]


def _hindrances(hindrances: Iterable[Hindrance], hidden: int) -> Sequence[str]:
    nearest_first = sorted(hindrances, key=_has_none)
    texts = alike((each.cluster, hindrance_text(each)) for each in nearest_first)
    return [*texts, f"and {hidden} more clusters do not fit either"] if hidden > 0 else texts


def _has_none(hindrance: Hindrance) -> bool:
    return any(lack.whole <= 0 for lack in hindrance.lacks)


def _split_shortage(short: SplitShortage) -> str:
    texts = list(alike(_part(part, short) for part in short.parts))
    if short.hidden:
        texts.append(f"and {short.hidden} more clusters")
    limit = "" if short.max_domains is None else f" (maxDomains {short.max_domains})"
    only = " (clusterPolicy Required)" if short.required else ""
    fitting = f"{short.found} fit on {_clusters(short.together)}{limit}"
    if not short.together:
        fitting = "none fit now"
    elif short.fewest > short.together:
        takes, used = _clusters(short.fewest), _clusters(short.together)
        fitting = f"that takes {takes}, {used} can be used{limit}"
    reasons = "; ".join(texts) or "no cluster is registered"
    wanted = f"{short.accelerators} {short.kind}{_whole(short)}"
    return f"needs {wanted}{only}, {fitting}: {reasons}"


def _part(part: ClusterOffer, short: SplitShortage) -> tuple[str, str]:
    if part.hindrance is not None:
        return part.cluster, hindrance_text(part.hindrance)
    text = f"has room for {part.room}"
    if part.used_up:
        text = f"{text} but maxDomains {short.max_domains} is used up"
    return part.cluster, text


def _overflown(part: ClusterOffer, overflow: SplitOverflow) -> str:
    if part.hindrance is not None:
        return f"{part.cluster} {hindrance_text(part.hindrance)}"
    if part.room:
        total = f"{overflow.accelerators} {overflow.kind}"
        return f"{part.cluster} has room for {part.room} of {total}"
    return f"{part.cluster} has too little room"


def _whole(short: SplitShortage) -> str:
    if short.fixed:
        return f" in sub-jobs of {short.fixed} and a multiple of {short.per_pod}"
    return f" in multiples of {short.per_pod}" if short.per_pod > 1 else ""


def _lack(lack: Lack) -> str:
    name, missing = lack.resource, amount_text(lack.resource, lack.missing)
    if lack.whole <= 0:
        return f"{missing} (has none)"
    if lack.whole < lack.wanted:
        return f"{missing} (has {amount_only(name, lack.whole)})"
    return f"{missing} ({amount_only(name, lack.free)} free)"


def _crowded(crowding: Crowding) -> str:
    """Return that the nodes of a cluster have no room, although the sum over all nodes has."""
    size = amount_text(crowding.resource, crowding.amount)
    if not crowding.most:
        return f"has no node with {size} left, by its resource models"
    return (
        f"has nodes for {crowding.most} pods with {size} each, by its resource models,"
        f" and {crowding.wanted} are needed"
    )


def amount_only(name: str, amount: int) -> str:
    """Return an amount without the name of its resource."""
    return amount_text(name, amount).split(" ", maxsplit=1)[0]


def _clusters(number: int) -> str:
    return "1 cluster" if number == 1 else f"{number} clusters"
