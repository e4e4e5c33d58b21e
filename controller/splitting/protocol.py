"""What is said to an external splitter and what it answers, as JSON. Pure; used by both sides."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from controller.model.nodes import PodGroup
from controller.model.observed import Cluster, HyperJob, SplitAnswer
from controller.model.planned import Question
from controller.model.resources import Resources, parse_resources, quantities
from controller.model.wire import count, integer, mapping, objects, string, strings
from controller.placement.assign import Room
from controller.placement.share import Share, Wish, capacities, share
from hyperjob.api.meta import Object

VERSION: Final = "splitter.training.volcano.sh/v1alpha1"
_SHARES: Final = 5000
_REASON: Final = 200


class ProtocolError(ValueError):
    """What the other side sent cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer as it was sent: shares as (cluster, accelerators), or the reason for none."""

    shares: Sequence[tuple[str, int]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as the splitter reads it; `most` are the pods that scale, by cluster."""

    wish: Wish
    room: Room
    max_domains: int | None
    most: Mapping[str, int] = field(default_factory=dict)


def question(hyperjob: HyperJob, wish: Wish, room: Room, *, max_domains: int | None) -> Question:
    """Put everything that the built-in splitter goes by into a question."""
    most = capacities(wish, room)
    asked: Object = {
        "apiVersion": VERSION,
        "kind": "SplitRequest",
        "hyperJob": {"namespace": hyperjob.namespace, "name": hyperjob.name, "uid": hyperjob.uid},
        "replicatedJob": wish.group,
        "accelerators": wish.accelerators,
        "acceleratorType": wish.kind,
        "fixedAccelerators": wish.fixed,
        "acceleratorsPerPod": wish.per_pod,
        "pod": quantities(wish.pod),
        "otherPods": [
            {"number": group.number, "requests": quantities(group.request)} for group in wish.others
        ],
        "clusterNames": list(wish.preferred),
        "clusterPolicy": "Required" if wish.required else "Preferred",
        "clustersInUse": sorted(room.domains),
        "clusters": [_cluster(room, name, most[name]) for name in sorted(most)],
    }
    if max_domains is not None:
        asked["maxDomains"] = max_domains
    body = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)
    attempts = [record.attempt for record in hyperjob.records.values()]
    return Question(
        group=wish.group,
        occasion=f"{hyperjob.uid}/{hyperjob.generation}/{max(attempts, default=0)}",
        digest=hashlib.sha256(body).hexdigest(),
        body=body,
    )


def usable(
    answer: SplitAnswer, wish: Wish, room: Room, *, max_domains: int | None
) -> tuple[tuple[Share, ...], str]:
    """Return the shares of an answer that hold now, else why they do not."""
    most = capacities(wish, room)
    found: dict[str, int] = {}
    for cluster, accelerators in answer.shares:
        pods, rest = divmod(accelerators - wish.fixed, wish.per_pod)
        if cluster in found:
            return (), f"it names {cluster} twice"
        if rest or pods < 1:
            return (), f"{accelerators} accelerators on {cluster} are no whole number of pods"
        if pods > most.get(cluster, 0):
            return (), f"{cluster} has no room for {accelerators} accelerators"
        found[cluster] = pods
    total = sum(accelerators for _, accelerators in answer.shares)
    if total != wish.accelerators:
        return (), f"its shares are {total} accelerators, not {wish.accelerators}"
    if max_domains is not None and len(room.domains.keys() | found.keys()) > max_domains:
        return (), f"it uses more clusters than maxDomains {max_domains} allows"
    return tuple(Share(cluster, pods) for cluster, pods in found.items()), ""


def read_answer(body: bytes) -> Said:
    """Read what a splitter sent; raises ProtocolError."""
    answer = _object(body)
    shares = []
    given = answer.get("shares")
    if not isinstance(given, list) or len(given) > _SHARES:
        raise ProtocolError("its answer has no list `shares`")
    for item in given:
        entry = mapping(item)
        cluster, accelerators = string(entry.get("cluster")), integer(entry.get("accelerators"))
        if not cluster or accelerators is None or accelerators < 1:
            raise ProtocolError("a share of its answer has no `cluster` or no `accelerators`")
        shares.append((cluster, accelerators))
    return Said(shares=tuple(shares), reason=string(answer.get("reason"))[:_REASON])


def read_question(body: bytes) -> Asked:
    """Read a question; raises ProtocolError."""
    asked = _object(body)
    if asked.get("apiVersion") != VERSION:
        raise ProtocolError(f"apiVersion must be {VERSION}")
    clusters = [_read_cluster(item) for item in objects(asked.get("clusters"))]
    wish = Wish(
        group=string(asked.get("replicatedJob")),
        accelerators=count(asked.get("accelerators")),
        kind=string(asked.get("acceleratorType")),
        fixed=count(asked.get("fixedAccelerators")),
        per_pod=count(asked.get("acceleratorsPerPod")),
        pod=parse_resources(asked.get("pod")),
        others=tuple(
            PodGroup(parse_resources(item.get("requests")), count(item.get("number")))
            for item in objects(asked.get("otherPods"))
        ),
        preferred=strings(asked.get("clusterNames")),
        required=asked.get("clusterPolicy") == "Required",
    )
    if not (wish.accelerators and wish.per_pod and any(each > 0 for each in wish.pod.values())):
        raise ProtocolError("accelerators, acceleratorsPerPod and pod must be set")
    in_use = strings(asked.get("clustersInUse"))
    return Asked(
        wish=wish,
        room=Room.of(clusters, [("", name) for name in in_use]),
        max_domains=integer(asked.get("maxDomains")),
        most={
            string(item.get("name")): count(item.get("mostPods"))
            for item in objects(asked.get("clusters"))
        },
    )


def answer(asked: Asked) -> bytes:
    """Answer as the built-in splitter decides."""
    wish = asked.wish
    found = share(wish, asked.room, max_domains=asked.max_domains, most=asked.most)
    said: Object = {
        "apiVersion": VERSION,
        "kind": "SplitResponse",
        "shares": [
            {"cluster": item.cluster, "accelerators": wish.fixed + item.pods * wish.per_pod}
            for item in found
        ],
    }
    if not found:
        said["reason"] = f"{wish.accelerators} {wish.kind} do not fit on the clusters"
    return orjson.dumps(said)


def _object(body: bytes) -> Object:
    try:
        found = orjson.loads(body)
    except ValueError as error:
        raise ProtocolError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ProtocolError("not a JSON object")
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


def _read_cluster(raw: Object) -> Cluster:
    free = parse_resources(raw.get("free"))
    return Cluster(
        name=string(raw.get("name")),
        usable=True,
        trouble=None,
        free=free,
        allocatable=free,
        provider=string(raw.get("provider")),
        region=string(raw.get("region")),
        zone=string(raw.get("zone")),
    )
