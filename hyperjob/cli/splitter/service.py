"""The server side of the splitter protocol: read a request, decide as the built-in splitter.

Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, decoded, integer, objects, string, strings
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.resources import parse_resources
from hyperjob_engine.splitting.protocol import VERSION


class QuestionError(ValueError):
    """A request that cannot be answered; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRequest:
    """A parsed request; `most` is the maximum number of pods by cluster."""

    wish: Wish
    room: FreeRoom
    max_domains: int | None
    most: Mapping[str, int] = field(default_factory=dict)


def read_question(body: bytes) -> SplitRequest:
    """Parse a request; raises QuestionError."""
    try:
        asked = decoded(body)
    except ValueError as error:
        raise QuestionError(f"not JSON: {error}") from None
    if not isinstance(asked, dict):
        raise QuestionError("not a JSON object")
    if asked.get("apiVersion") != VERSION:
        raise QuestionError(f"apiVersion must be {VERSION}")
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
        raise QuestionError("accelerators, acceleratorsPerPod and pod must be set")
    in_use = strings(asked.get("clustersInUse"))
    return SplitRequest(
        wish=wish,
        room=FreeRoom.of(clusters, [("", name) for name in in_use]),
        max_domains=integer(asked.get("maxDomains")),
        most={
            string(item.get("name")): count(item.get("mostPods"))
            for item in objects(asked.get("clusters"))
        },
    )


def answer(asked: SplitRequest) -> bytes:
    """Return the answer of the built-in splitter as JSON."""
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
