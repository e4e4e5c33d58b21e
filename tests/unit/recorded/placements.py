"""Placements, automatic splits and what is said where there is no room, for generated clusters."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.capacity import candidates, summarise
from hyperjob_engine.placement.explain import alternatives, explain_overflow_of, explain_shortfall
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.reasons.hindrance import Obstacle, hindrance_text
from hyperjob_engine.reasons.shortage import overflow_text, shortage_text
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.builders import GPU, NOW, Object
from tests.unit.recorded.generated import some
from tests.unit.recorded.plans import amounts
from tests.unit.recorded.recording import Case, line

NPU = "huawei.com/Ascend910"


def _document(rng: random.Random, name: str) -> Object:
    """Make a Cluster as Karmada writes it."""
    kind = rng.choice((GPU, GPU, GPU, NPU))
    nodes, per_node = rng.choice((1, 2, 3, 5)), rng.choice((4, 8))
    whole = {kind: str(nodes * per_node), "cpu": str(nodes * 32), "pods": str(nodes * 20)}
    used = rng.randint(0, nodes * per_node)
    status: Object = {
        "conditions": [
            {
                "type": "Ready",
                "status": rng.choice(("True",) * 12 + ("False", "Unknown")),
                "reason": "ClusterNotReachable",
                "lastTransitionTime": (NOW - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ],
        "apiEnablements": [
            {
                "groupVersion": "batch.volcano.sh/v1alpha1",
                "resources": [{"kind": "Job" if some(rng, 0.95) else "CronJob"}],
            }
        ],
        "nodeSummary": {"totalNum": nodes, "readyNum": nodes if some(rng, 0.97) else 0},
        "resourceSummary": {
            "allocatable": whole,
            "allocated": {kind: str(used), "pods": "3"},
            "allocating": {kind: rng.choice(("0", "0", "1"))},
        },
    }
    spec: Object = {
        "provider": rng.choice(("", "x", "y")),
        "region": rng.choice(("eu", "us")),
        "zones": rng.choice(([], ["1"], ["1", "2"])),
    }
    if some(rng, 0.3):
        ends = [0, per_node // 2, per_node, 1000]
        spec["resourceModels"] = [
            {"grade": grade, "ranges": [{"name": kind, "min": str(low), "max": str(high)}]}
            for grade, (low, high) in enumerate(pairwise(ends))
        ]
        counts = [rng.randint(0, nodes) for _ in range(3)]
        status["resourceSummary"]["allocatableModelings"] = [
            {"grade": grade, "count": number} for grade, number in enumerate(counts)
        ]
        if some(rng, 0.5):
            status["nodeSummary"]["totalNum"] = sum(counts)
    if some(rng, 0.08):
        spec["taints"] = [{"key": "down", "effect": rng.choice(("NoSchedule", "PreferNoSchedule"))}]
    if some(rng, 0.04):
        del status["resourceSummary"]
    metadata: Object = {"name": name}
    if some(rng, 0.03):
        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    return {"metadata": metadata, "spec": spec, "status": status}


def clusters_of(rng: random.Random, count: int) -> tuple[Cluster, ...]:
    names = [f"c{number}" for number in range(count)]
    some(rng, 0.9), some(rng, 0.9)  # draws of an earlier release: the cases after them stay
    summaries = [summarise(_document(rng, name)) for name in names]
    held = {name: parse_resources({GPU: "2"}) for name in names if some(rng, 0.15)}
    pods = {name: (PodGroup(parse_resources({GPU: "1", "pods": "1"}), 2),) for name in held}
    return candidates(summaries, held, pods=pods)


def _shown(clusters: tuple[Cluster, ...]) -> str:
    texts = []
    for each in clusters:
        text = f"{each.name} {amounts(each.free)} of {amounts(each.allocatable)}"
        where = "/".join(filter(None, (each.provider, each.region, each.zone)))
        models = f" grades {[grade.count for grade in each.nodes.grades]}" if each.nodes else ""
        trouble = f" {line(each.trouble)}" if each.trouble is not None else ""
        texts.append(f"{text} {where}{models}{trouble}")
    return "; ".join(texts)


def _request(rng: random.Random, name: str, names: list[str]) -> PlacementRequest:
    kind = rng.choice((GPU, GPU, GPU, NPU, "nvidia.com/gpus"))
    pods, each = rng.choice((1, 1, 2, 3, 8)), rng.choice((0, 1, 2, 4, 8))
    one = {kind: str(each), "cpu": rng.choice(("1", "4")), "pods": "1"}
    if not each:
        del one[kind]
    whole = {name: str(int(amount) * pods) for name, amount in one.items()}
    preferred = (
        tuple(rng.sample([*names, "nowhere"], rng.randint(1, min(3, len(names)))))
        if some(rng, 0.4)
        else ()
    )
    return PlacementRequest(
        name=name,
        group="g",
        demand=parse_resources(whole),
        pods=(PodGroup(parse_resources(one), pods),),
        preferred=preferred,
        required=bool(preferred) and some(rng, 0.3),
        excluded=frozenset(rng.sample(names, 1)) if some(rng, 0.15) else frozenset(),
    )


def placement_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"gang {seed}", list(_gang(random.Random(f"gang {seed}")))


def _gang(rng: random.Random) -> Iterator[str]:
    clusters = clusters_of(rng, rng.choice((1, 2, 3, 4, 6, 9)))
    names = [each.name for each in clusters]
    requests: list[PlacementRequest] = []
    for group in range(rng.choice((1, 1, 2, 3))):
        first = replace(_request(rng, f"g{group}-0", names), group=f"g{group}")
        count = rng.choice((1, 2, 3, 4, 6, 14))
        requests += [first.named(f"g{group}-{index}") for index in range(count)]
    if some(rng, 0.4):
        rng.shuffle(requests)
    standing = [("g0", rng.choice([*names, "gone"])) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    most = rng.choice((None, None, 1, 2, 3))
    minimum = rng.choice((0, 1, len(requests), len(requests), len(requests) // 2))
    yield _shown(clusters)
    yield f"maxDomains {most}, at least {minimum}, standing {standing}"
    said: dict[str, list[str]] = {}
    for each in requests:
        rest = f"{amounts(each.demand)} in {each.pods[0].number}, {line(each.preferred)}"
        rest += f"{' required' if each.required else ''} not on {sorted(each.excluded)}"
        said.setdefault(rest, []).append(each.name)
    for rest, alike in said.items():
        yield f"{' '.join(alike)}: {rest}"
    found = place(requests, clusters, standing=standing, max_domains=most, minimum=minimum)
    yield f"  room for {found.room_for}{', never' if found.never else ''}: {line(found.assigned)}"
    texts: dict[str, list[str]] = {}
    for name, short in found.unplaced.items():
        texts.setdefault(shortage_text(short), []).append(name)
    for name, overflow in found.overflow.items():
        texts.setdefault(f"overflow: {overflow_text(overflow)}", []).append(name)
    for text, alike in texts.items():
        yield f"  {' '.join(alike)}: {text}"
    room = FreeRoom.of(clusters, standing)
    for each in requests[1:]:
        if each.name in found.assigned:
            room.put(each, found.assigned[each.name])
    chosen = found.assigned.get(requests[0].name, "")
    why = alternatives(
        requests[0], chosen, clusters, room, max_domains=most, runs=some(rng, 0.2),
        unplaced=rng.choice(((Obstacle.NOT_FOR_ALL, ""), (Obstacle.WAITS, "waits"))),
    )  # fmt: skip
    for name, hindrance in why.items():
        yield f"  {requests[0].name} not on {name}: {hindrance_text(hindrance)}"


def split_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"split {seed}", list(_split(random.Random(f"split {seed}"), seed))


def _split(rng: random.Random, seed: int) -> Iterator[str]:
    many = seed % 6 == 5
    clusters = clusters_of(rng, 32 if many else rng.choice((1, 2, 3, 5, 8)))
    names = [each.name for each in clusters]
    per_pod, fixed = rng.choice((1, 2, 4, 8)), rng.choice((0, 0, 0, 1))
    preferred = (
        tuple(rng.sample([*names, "nowhere"], rng.randint(1, min(3, len(names)))))
        if some(rng, 0.5)
        else ()
    )
    wanted = rng.choice((100, 150, 200) if many else (4, 7, 8, 12, 16, 24, 40, 64))
    wish = Wish(
        group="g",
        accelerators=wanted,
        kind=GPU,
        fixed=fixed,
        per_pod=per_pod,
        pod=parse_resources({GPU: str(per_pod), "pods": "1"}),
        others=(PodGroup(parse_resources({GPU: "1", "pods": "1"}), 1),) if fixed else (),
        preferred=preferred,
        required=bool(preferred) and some(rng, 0.3),
        excluded=frozenset(rng.sample(names, 1)) if some(rng, 0.15) else frozenset(),
    )
    standing = [("g", rng.choice(names)) for _ in range(rng.choice((0, 0, 1)))]
    most = rng.choice((None, None, 1, 2, 3))
    bounds = {name: rng.randint(0, 6) for name in names} if some(rng, 0.15) else None
    room = FreeRoom.of(clusters, standing)
    yield line({each.name: amounts(each.free) for each in clusters}) if many else _shown(clusters)
    yield (
        f"{wanted} by {per_pod} + {fixed}, preferred {list(preferred)}"
        f"{' required' if wish.required else ''}"
        f" not on {sorted(wish.excluded)}, maxDomains {most}, standing {standing}, most {bounds}"
    )
    found = share(wish, room, max_domains=most, most=bounds)
    yield f"  {line({each.cluster: each.pods for each in found})}"
    if not found:
        short = explain_shortfall(wish, clusters, room, max_domains=most)
        yield f"  {shortage_text(short)}"
    elif preferred:
        yield f"  {overflow_text(explain_overflow_of(wish, clusters, found))}"
