"""The question to an external splitter in JSON, the check of its answer, and the shares. Pure.

`examples/splitter.py` is the other side.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import decoded, integer, mapping, rfc3339, string
from hyperjob_engine.model.observed import HyperJob, Observed, SplitAnswer
from hyperjob_engine.model.planned import SplitQuestion
from hyperjob_engine.model.request import kinds_of
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import SplitShare, Wish, capacities
from hyperjob_engine.resources import Resources, quantities

VERSION: Final = "splitter.training.volcano.sh/v1alpha1"
_SHARES: Final = 5000
_REASON: Final = 200
_NAME: Final = 253


class AnswerError(ValueError):
    """The response of the splitter is unreadable; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """An unchecked answer: shares as (cluster, accelerators), or the reason for none."""

    shares: Sequence[tuple[str, int]] = ()
    reason: str = ""


def question(
    hyperjob: HyperJob, wish: Wish, room: Room, *, max_domains: int | None
) -> SplitQuestion:
    """Return the question about a split, with all the input of the built-in splitter."""
    most = capacities(wish, room)
    asked: Object = {
        "apiVersion": VERSION,
        "kind": "SplitRequest",
        "hyperJob": {"namespace": hyperjob.namespace, "name": hyperjob.name, "uid": hyperjob.uid},
        "replicatedJob": wish.like.group,
        "accelerators": wish.accelerators,
        "acceleratorType": wish.kind,
        "fixedAccelerators": wish.fixed,
        "acceleratorsPerPod": wish.per_pod,
        "pod": quantities(dict(wish.pod.request)),
        "otherPods": [
            {"number": number, "requests": quantities(dict(kind.request))}
            for kind, number in kinds_of(wish.like.pods).items()
        ],
        "clusterNames": list(wish.like.preferred),
        "clusterPolicy": "Required" if wish.like.required else "Preferred",
        "clustersInUse": sorted(room.domains),
        "clusters": [_cluster(room, name, most[name]) for name in sorted(most)],
    }
    if max_domains is not None:
        asked["maxDomains"] = max_domains
    body = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)
    attempts = [record.attempt for record in hyperjob.records.values()]
    return SplitQuestion(
        group=wish.like.group,
        occasion=f"{hyperjob.uid}/{hyperjob.generation}/{max(attempts, default=0)}",
        digest=hashlib.sha256(body).hexdigest(),
        body=body,
    )


def usable(
    answer: SplitAnswer, wish: Wish, room: Room, *, max_domains: int | None
) -> tuple[SplitShare, ...] | str:
    """Return the shares of an answer if they are valid now, else why they are not."""
    most = capacities(wish, room)
    found: dict[str, int] = {}
    for cluster, accelerators in answer.shares:
        pods, rest = divmod(accelerators - wish.fixed, wish.per_pod)
        if cluster in found:
            return f"it names {cluster} twice"
        if rest or pods < 1:
            return f"{accelerators} accelerators on {cluster} are no whole number of pods"
        if pods > most.get(cluster, 0):
            return f"{cluster} has no room for {accelerators} accelerators"
        found[cluster] = pods
    total = sum(accelerators for _, accelerators in answer.shares)
    if total != wish.accelerators:
        return f"its shares are {total} accelerators, not {wish.accelerators}"
    if max_domains is not None and len(room.domains.keys() | found.keys()) > max_domains:
        return f"it uses more clusters than maxDomains {max_domains} allows"
    return tuple(SplitShare(cluster, pods) for cluster, pods in found.items())


def read_answer(body: bytes) -> RawAnswer:
    """Parse the response of a splitter; raises AnswerError."""
    answer = _object(body)
    shares = []
    given = answer.get("shares")
    if not isinstance(given, list) or len(given) > _SHARES:
        raise AnswerError("its answer has no list `shares`")
    for item in given:
        entry = mapping(item)
        cluster, accelerators = string(entry.get("cluster")), integer(entry.get("accelerators"))
        if not 0 < len(cluster) <= _NAME or accelerators is None or accelerators < 1:
            raise AnswerError("a share of its answer has no `cluster` or no `accelerators`")
        shares.append((cluster, accelerators))
    return RawAnswer(shares=tuple(shares), reason=string(answer.get("reason"))[:_REASON])


def _object(body: bytes) -> Object:
    try:
        found = decoded(body)
    except ValueError as error:
        raise AnswerError(f"its answer is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AnswerError("its answer is not a JSON object")
    return found


def _cluster(room: Room, name: str, most: int) -> Object:
    cluster = room.clusters[name]
    return {
        "name": name,
        "provider": cluster.provider,
        "region": cluster.region,
        "zone": cluster.zone,
        "free": quantities(_positive(room.free[name])),
        "mostPods": most,
    }


def _positive(amounts: Resources) -> Resources:
    return {name: max(0, amount) for name, amount in amounts.items()}


_ASKED: Final = "waits for the splitter's answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The shares, or why there are none; `ask` is the next question, `again` the time until it."""

    shares: tuple[SplitShare, ...] = ()
    wait: str = _ASKED
    ask: SplitQuestion | None = None
    again: timedelta | None = None


def consult(observed: Observed, wish: Wish, room: Room) -> Outside:
    """Return the shares of the last answer if they fit now, else the next question."""
    limit = observed.hyperjob.max_domains
    asked = question(observed.hyperjob, wish, room, max_domains=limit)
    answered = (observed.split_answers or {}).get(wish.like.group)
    if answered is None or answered.occasion != asked.occasion:
        return Outside(ask=asked)
    trouble = answered.trouble
    if answered.shares:
        found = usable(answered, wish, room, max_domains=limit)
        if isinstance(found, tuple):
            return Outside(shares=found)
        trouble = found
        if answered.digest != asked.digest:
            return Outside(ask=asked)
    if observed.now >= answered.retry_at:
        return Outside(wait=f"the controller asks the splitter again: {trouble}", ask=asked)
    return Outside(
        wait="the splitter's answer is unusable, and the controller asks again at"
        f" {rfc3339(answered.retry_at)}: {trouble}",
        again=answered.retry_at - observed.now,
    )
