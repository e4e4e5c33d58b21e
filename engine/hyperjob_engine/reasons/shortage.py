"""Why a sub-job, or an automatic split, has no place: its codes, numbers and sentences."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from hyperjob_engine.reasons.hindrance import Hindrance, alike, hindrance_text
from hyperjob_engine.resources import PODS, Resources, accelerator_of, amount_text, order_of


class ShortageCode(enum.StrEnum):
    """Why a sub-job has no place now."""

    NO_ROOM = "NoRoom"
    WAITS_FOR_GANG = "WaitsForGang"  # it has room, the rest of its gang has none
    UNSETTLED = "Unsettled"  # the Cluster's status may not count new pods yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why a sub-job has no place, by cluster; `hidden` is how many clusters `hindrances` omits.

    `absent` says which device no cluster or no node has: it explains the whole HyperJob.
    """

    code: ShortageCode
    demand: Resources = field(default_factory=dict)
    required: bool = False
    hindrances: tuple[Hindrance, ...] = ()
    hidden: int = 0
    absent: str = ""
    cluster: str = ""
    together: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOffer:
    """The accelerators of an automatic split that one cluster can take, or why it takes none."""

    cluster: str
    room: int = 0
    used_up: bool = False
    hindrance: Hindrance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitShortage:
    """Why an automatic split finds no place for its accelerators.

    `found` accelerators fit on the clusters `together`; all of them need at least `fewest`
    clusters. `hidden` is how many clusters `parts` omits.
    """

    accelerators: int
    kind: str
    fixed: int
    per_pod: int
    required: bool
    max_domains: int | None
    found: int
    together: int
    fewest: int
    parts: tuple[ClusterOffer, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Why a sub-job is on none of its preferred clusters; `hidden` is how many are not listed."""

    hindrances: tuple[Hindrance, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOverflow:
    """How many of an automatic split's accelerators each preferred cluster has room for.

    A part without `room` and `hindrance` has too little room.
    """

    accelerators: int
    kind: str
    parts: Sequence[ClusterOffer]


NEVER: Final = " and too little even on empty clusters"
TOO_LARGE: Final = "too large for all usable clusters, even empty: "
_RESOURCES_SHOWN: Final = 2


def shortage_text(short: Shortage | SplitShortage) -> str:
    """Return why a sub-job, or an automatic split, has no place."""
    return _split_shortage(short) if isinstance(short, SplitShortage) else _sub_job_shortage(short)


def overflow_text(overflow: Overflow | SplitOverflow) -> str:
    """Return why the preferred clusters do not take a sub-job, or the accelerators of a split."""
    if isinstance(overflow, SplitOverflow):
        return "; ".join(_overflow_offer_text(part, overflow) for part in overflow.parts)
    return "; ".join(_hindrance_texts(overflow.hindrances, overflow.hidden))


def need_text(demand: Resources) -> str:
    """Return the size of a sub-job: its accelerators, else its native resources."""
    measure = accelerator_of(demand)
    if measure is not None:
        return amount_text(measure, demand[measure])
    names = [name for name in sorted(demand, key=order_of) if name != PODS and demand[name] > 0]
    shown = [amount_text(name, demand[name]) for name in names[:_RESOURCES_SHOWN]]
    return " and ".join(shown) or amount_text(PODS, demand.get(PODS, 0))


def _sub_job_shortage(shortage: Shortage) -> str:
    """Return why a sub-job has no place, by the code of the shortage."""
    cluster = shortage.cluster
    match shortage.code:
        case ShortageCode.UNSETTLED:
            counts = f"the status of {cluster} counts the pods that have just started there"
            return f"waits until {counts}"
        case ShortageCode.WAITS_FOR_GANG:
            number = shortage.together
            return f"has room on {cluster}, waits until {number} sub-jobs can be placed together"
        case ShortageCode.NO_ROOM if shortage.absent:
            return shortage.absent
        case ShortageCode.NO_ROOM:
            only = " (clusterPolicy Required)" if shortage.required else ""
            texts = _hindrance_texts(shortage.hindrances, shortage.hidden)
            reasons = "; ".join(texts) or "no cluster is registered"
            return f"needs {need_text(shortage.demand)}{only}: {reasons}"
        case _:
            assert_never(shortage.code)


def _hindrance_texts(hindrances: Iterable[Hindrance], hidden: int) -> Sequence[str]:
    """Return a text for each cause; clusters without any of a resource come last."""
    nearest_first = sorted(hindrances, key=_has_none)
    texts = alike((each.cluster, hindrance_text(each)) for each in nearest_first)
    return [*texts, f"and {hidden} more clusters do not fit either"] if hidden > 0 else texts


def _has_none(hindrance: Hindrance) -> bool:
    return any(lack.whole <= 0 for lack in hindrance.lacks)


def _split_shortage(short: SplitShortage) -> str:
    """Return how many accelerators fit on how many clusters, and what each cluster offers."""
    texts = list(alike(_offer_text(part, short) for part in short.parts))
    if short.hidden:
        texts.append(f"and {short.hidden} more clusters")
    limit = "" if short.max_domains is None else f" (maxDomains {short.max_domains})"
    only = " (clusterPolicy Required)" if short.required else ""
    fitting = f"{short.found} fit on {_clusters_text(short.together)}{limit}"
    if not short.together:
        fitting = "none fit now"
    elif short.fewest > short.together:
        takes, used = _clusters_text(short.fewest), _clusters_text(short.together)
        fitting = f"that takes {takes}, {used} can be used{limit}"
    reasons = "; ".join(texts) or "no cluster is registered"
    wanted = f"{short.accelerators} {short.kind}{_multiple_text(short)}"
    return f"needs {wanted}{only}, {fitting}: {reasons}"


def _offer_text(part: ClusterOffer, short: SplitShortage) -> tuple[str, str]:
    """Return a cluster, and what it offers to an automatic split."""
    if part.hindrance is not None:
        return part.cluster, hindrance_text(part.hindrance)
    text = f"has room for {part.room}"
    if part.used_up:
        text = f"{text} but maxDomains {short.max_domains} is used up"
    return part.cluster, text


def _overflow_offer_text(part: ClusterOffer, overflow: SplitOverflow) -> str:
    """Return why a preferred cluster does not take the accelerators of a split."""
    if part.hindrance is not None:
        return f"{part.cluster} {hindrance_text(part.hindrance)}"
    if part.room:
        total = f"{overflow.accelerators} {overflow.kind}"
        return f"{part.cluster} has room for {part.room} of {total}"
    return f"{part.cluster} has too little room"


def _multiple_text(short: SplitShortage) -> str:
    """Return the form in which the accelerators of a split can be divided; empty if in any."""
    if short.fixed:
        return f" in sub-jobs of {short.fixed} and a multiple of {short.per_pod}"
    return f" in multiples of {short.per_pod}" if short.per_pod > 1 else ""


def _clusters_text(number: int) -> str:
    return "1 cluster" if number == 1 else f"{number} clusters"
