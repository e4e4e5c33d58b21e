"""All or nothing: where the pods of one gang go, or that they go nowhere."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import gt, lt
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO
from hyperjob_sandbox.member.caches import ENDED
from hyperjob_sandbox.member.resources import Amounts, allocatable, is_ignored, pod_requests
from hyperjob_sandbox.objects import labels_of, matches_labels, phase_of, untolerated_taint

_PORT: Final = "port of the node "
_BLOCKING: Final = frozenset({"NoSchedule", "NoExecute"})
_COMPARED: Final = {"Gt": gt, "Lt": lt}
_UNSCHEDULABLE_TAINT: Final[Object] = {
    "key": "node.kubernetes.io/unschedulable",
    "effect": "NoSchedule",
}


@dataclass(slots=True)
class FreeNode:
    """A node with what is free of it; placing a pod takes from it."""

    name: str
    free: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Object, ...] = ()

    def left(self, name: str) -> int:
        """Return how much is free of a resource; of each port of the node, one."""
        return self.free[name] + name.startswith(_PORT)

    def holds(self, request: Amounts) -> bool:
        """Tell whether a request fits into what is free."""
        return all(
            self.left(name) >= amount or is_ignored(name, self.free)
            for name, amount in request.items()
        )


@dataclass(frozen=True, slots=True)
class GangPod:
    """A pod to place: its task, what it needs, and its spec for the node's constraints."""

    key: str
    task: str
    request: Amounts
    spec: Object


@dataclass(frozen=True, slots=True)
class Minimum:
    """How many pods must run together: in all, and of each task.

    Volcano looks at the tasks only where the whole asks for as many as they do together.
    """

    members: int
    tasks: Mapping[str, int]

    def is_met(self, placed: Mapping[str, int]) -> bool:
        """Tell whether that many pods per task are enough."""
        if sum(placed.values()) < self.members:
            return False
        return self.members < sum(self.tasks.values()) or all(
            placed.get(task, 0) >= least for task, least in self.tasks.items()
        )


def free_node(node: Object, pods: Iterable[Object]) -> FreeNode:
    """Return what is free of a node that holds these pods; finished ones take nothing."""
    spec: Object = node.get("spec") or {}
    taints: list[Object] = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append(_UNSCHEDULABLE_TAINT)
    free = FreeNode(
        name=node["metadata"]["name"],
        free=allocatable(node),
        labels=labels_of(node),
        taints=tuple(taints),
    )
    for pod in pods:
        if phase_of(pod) not in ENDED:
            free.free.subtract(request_of(pod["spec"]))
    return free


def request_of(pod_spec: Object) -> Amounts:
    """Return what a pod takes of a node, itself and ports of the node included."""
    field = "containerPort" if pod_spec.get("hostNetwork") else "hostPort"
    ports = {
        f"{_PORT}{port.get('protocol') or 'TCP'}/{number}": 1
        for container in pod_spec["containers"]
        for port in container.get("ports") or ()
        if (number := port.get("hostPort") or port.get(field))
    }
    return +pod_requests(pod_spec) + Counter(pods=NANO) + Counter(ports)


def place(
    pods: Sequence[GangPod],
    nodes: Sequence[FreeNode],
    minimum: Minimum,
    *,
    running: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """Return the node of every pod that can be placed, empty when the gang would be too small.

    `running` counts the pods of each task that are on nodes already. Nodes lose what is placed.
    """
    placed: dict[str, str] = {}
    taken: list[tuple[FreeNode, Amounts]] = []
    count = Counter(running or {})
    # A shape is what pods of one task share: its candidates are found once for all of them.
    candidates: dict[str, list[FreeNode]] = {}
    for pod in _minimum_first(pods, minimum, count):
        shape = f"{pod.task}/{sorted(pod.request.items())}"
        if shape not in candidates:
            suitable = [node for node in nodes if is_suitable(pod.spec, node)]
            candidates[shape] = sorted(suitable, key=lambda node: _room(node, pod.request))
        rest = candidates[shape]
        while rest and not rest[0].holds(pod.request):
            rest.pop(0)
        if not rest:
            continue
        rest[0].free.subtract(pod.request)
        taken.append((rest[0], pod.request))
        placed[pod.key] = rest[0].name
        count[pod.task] += 1
    if minimum.is_met(count):
        return placed
    for node, request in taken:
        node.free.update(request)
    return {}


def domains(
    hypernodes: Iterable[Object], nodes: Sequence[FreeNode], topology: Object | None
) -> list[Sequence[FreeNode]]:
    """Return the nodes among which a gang may be, each set alone; without hard topology all nodes.

    The HyperNodes of the lowest tiers come first. All nodes together are above the highest tier.
    """
    highest = (topology or {}).get("highestTierAllowed")
    if highest is None or (topology or {}).get("mode") == "soft":
        return [nodes]
    by_tier = sorted(hypernodes, key=lambda each: (each["spec"]["tier"], each["metadata"]["name"]))
    known: dict[str, set[str]] = {}
    for each in by_tier:
        found = known[each["metadata"]["name"]] = set[str]()
        for member in each["spec"].get("members") or ():
            if member["type"] == "Node":
                found |= {node.name for node in nodes if _is_named(member, node.name)}
            else:
                found |= set().union(*(known[name] for name in known if _is_named(member, name)))
    whole = max((each["spec"]["tier"] for each in by_tier), default=0) + 1
    allowed = [each for each in by_tier if each["spec"]["tier"] <= highest]
    sets = [known[each["metadata"]["name"]] for each in allowed]
    found_nodes = [[node for node in nodes if node.name in names] for names in sets]
    return [*found_nodes, *([nodes] if whole <= highest else [])]


def _is_named(member: Object, name: str) -> bool:
    selector: Object = member.get("selector") or {}
    exact, pattern = selector.get("exactMatch"), selector.get("regexMatch")
    if exact is not None:
        return bool(exact.get("name") == name)
    return pattern is not None and re.search(pattern["pattern"], name) is not None


def is_suitable(pod_spec: Object, node: FreeNode) -> bool:
    """Tell whether labels, required node affinity and taints let a pod onto a node."""
    wanted: Mapping[str, str] = pod_spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in wanted.items()):
        return False
    tolerations: list[Object] = pod_spec.get("tolerations") or []
    if untolerated_taint(node.taints, tolerations, effects=_BLOCKING) is not None:
        return False
    affinity: Object = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Object | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: Object, node: FreeNode) -> bool:
    expressions: list[Object] = term.get("matchExpressions") or []
    fields: list[Object] = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(each, node.labels) for each in expressions) and matches_labels(
        {"matchExpressions": fields}, {"metadata.name": node.name}
    )


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy one expression; selectors of nodes alone compare numbers."""
    compare = _COMPARED.get(expression.get("operator", ""))
    if compare is None:
        return matches_labels({"matchExpressions": [expression]}, labels)
    with suppress(KeyError, ValueError):
        return bool(compare(int(labels[expression["key"]]), int(expression["values"][0])))
    return False


def _minimum_first(
    pods: Sequence[GangPod], minimum: Minimum, running: Mapping[str, int]
) -> list[GangPod]:
    """Order pods so that every task reaches its minimum before any task gets more."""
    first: list[GangPod] = []
    more: list[GangPod] = []
    seen = Counter(running)
    for pod in pods:
        (first if seen[pod.task] < minimum.tasks.get(pod.task, 0) else more).append(pod)
        seen[pod.task] += 1
    return first + more


def _room(node: FreeNode, request: Amounts) -> tuple[int, str]:
    """Rank nodes so that the fullest that still fits comes first, which leaves big holes whole."""
    return min(node.left(name) // amount for name, amount in request.items()), node.name


def fit_error(
    pods: Sequence[GangPod],
    nodes: Sequence[FreeNode],
    *,
    running: Mapping[str, int] | None = None,
) -> tuple[int, str]:
    """Return how many pods find nodes, and why the first one without a node has none."""
    free = [replace(node, free=node.free.copy()) for node in nodes]
    placed = place(pods, free, Minimum(0, {}), running=running)
    left = next((pod for pod in pods if pod.key not in placed), None)
    if left is None:
        return len(placed), ""
    reasons = Counter(reason for node in free for reason in _reasons(left, node))
    name = left.key.rpartition("/")[2]
    told = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items()))
    unavailable = f"0/{len(free)} nodes are unavailable"
    return len(placed), f". Origin reason is {name}: {unavailable}{f': {told}.' if told else ''}"


def _reasons(pod: GangPod, node: FreeNode) -> list[str]:
    if not is_suitable(pod.spec, node):
        return ["node(s) didn't match Pod's node affinity/selector or taints"]
    short = [name for name, amount in pod.request.items() if node.left(name) < amount]
    if any(name.startswith(_PORT) for name in short):
        return ["node(s) didn't have free ports for the requested pod ports"]
    return [f"Insufficient {name}" for name in sorted(short)[:1]]
