"""Hostile objects of members and of Karmada's API server: no exception, no more time than size.

Random objects go through all that reads them, and take no longer than ordinary ones of their size.
Objects of which one part grows make as many more calls as they grow, which no machine changes.
HYPERJOB_FUZZ_COUNT sets how many (`make fuzz` runs 100,000), HYPERJOB_FUZZ_SEED which ones.
"""

import copy
import os
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import thread_time
from typing import Any, Final

import orjson
import pytest

from hyperjob_controller.caches import Shared, job_key_of_binding, slim_binding
from hyperjob_core.api.lines import MAX_LINE, LogLine, Splitter, announced, progress_lines
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERNODES,
    NODES,
    PODS,
    QUEUES,
    RESOURCE_BINDINGS,
    Resource,
)
from hyperjob_engine.members.facts import hypernode_fact, node_fact, pod_fact
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.members.podfailures import first_failure
from hyperjob_engine.model.parse import parse_binding, parse_hyperjob
from hyperjob_engine.placement.capacity import summarise
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.reasons.stacks import Pod, is_stack, parse_stack
from hyperjob_queueing import stopped
from hyperjob_queueing.queues import Tree, closed_queue, parse_queue
from hyperjob_queueing.quota import charge_of
from tests.support.calls import calls
from tests.support.growth import growing
from tests.support.hostile import GROWING, KINDS, grown, hostile, ordinary
from tests.unit.test_extreme_hyperjobs import extreme

pytestmark = pytest.mark.long

COUNT = int(os.environ.get("HYPERJOB_FUZZ_COUNT", "1200"))
SEED = int(os.environ.get("HYPERJOB_FUZZ_SEED", "20261128"))
TIMES: Final = 100
"""An object may take so many times as long as an ordinary one of its size."""
LEAST: Final = 0.005
"""Seconds of CPU that are no hang, whatever an ordinary object takes."""
FEW, MANY, MOST = 200, 800, 4.6
NEW: Final = 25
"""The calls for a value of which no equal one is known; both objects may have known ones."""

Object = dict[str, Any]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def folded(put: Callable[[MemberFold, Object], None]) -> Callable[[Object], object]:
    """Return what a member with one more object shows."""

    def read(raw: Object) -> object:
        fold = MemberFold()
        fold.replace(NODES, [node_fact(ordinary(NODES, f"n-{number}")) for number in range(5)])
        put(fold, raw)
        return Ground(fold.view()).free

    return read


def binding(raw: Object) -> object:
    """Read a ResourceBinding as caches, reservations, passes and Volcano Global's quota do."""
    raw = Shared().of(slim_binding)(raw)
    return job_key_of_binding(raw), parse_binding(raw), charge_of(raw, queue="q", sub_job="")


def queue(raw: Object) -> object:
    """Read a Queue, and divide what it has among others."""
    tree = Tree([parse_queue(raw), parse_queue(ordinary(QUEUES, "y"))], {"cpu": 10**12})
    return tree.entitled("cpu"), tree.trouble("x"), closed_queue(raw)


def logged(raw: Object) -> object:
    """Read an object as lines of a log: a step, a stack and text."""
    text = orjson.dumps(raw)
    forms = (b"%s", b'{"hyperjob":%s}', b'{"hyperjob":{"step":1,"metrics":%s}}')
    stacks = (b'{"hyperjob":{"stacks":%s}}', b'{"hyperjob":{"stacks":{"threads":[[%s]]}}}')
    split = Splitter(MAX_LINE + 4)
    stream = b"".join(b"2026-01-02T03:04:05.5Z %s\n" % (form % text) for form in (*forms, *stacks))
    lines = [LogLine.of(each) for each in split.feed(stream)]
    pod = Pod("hj-t-0", "worker", 0)
    found = [parse_stack(each.text, pod=pod) for each in lines if is_stack(each.text)]
    return progress_lines(lines), announced(lines), found


def annotated(raw: Object) -> object:
    """Read an object as the annotations of the Lease."""
    text = orjson.dumps(raw).decode()
    return stopped.from_text(text), stopped.from_text(f"[{text}]")


READERS: Final[dict[Resource, Sequence[Callable[[Object], object]]]] = {
    NODES: (node_fact, folded(lambda fold, raw: fold.put(NODES, node_fact(raw)))),
    PODS: (
        pod_fact,
        lambda raw: first_failure([raw]),
        folded(lambda fold, raw: fold.put(PODS, pod_fact(raw))),
    ),
    HYPERNODES: (
        hypernode_fact,
        folded(lambda fold, raw: fold.put(HYPERNODES, hypernode_fact(raw))),
    ),
    QUEUES: (queue,),
    CLUSTERS: (summarise,),
    RESOURCE_BINDINGS: (binding,),
}
ANY: Final = (logged, annotated)
"""What reads texts that anything may be in."""


def size_of(raw: object) -> int:
    """Return how many values and parts of texts an object has: reading takes time for each."""
    found, todo = 0, [raw]
    while todo:
        each = todo.pop()
        found += 1 + len(each) // 64 if isinstance(each, str) else 1
        if isinstance(each, dict):
            todo.extend(each.keys())
            todo.extend(each.values())
        elif isinstance(each, list):
            todo.extend(each)
    return found


def seconds(read: Callable[[Object], object], raw: Object) -> float:
    """Return the CPU time of a reading; a transform may change its object."""
    raw = copy.deepcopy(raw)
    began = thread_time()
    read(raw)
    return thread_time() - began


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.plural)
def test_a_hostile_object_takes_no_longer_than_ordinary_ones_of_its_size(
    resource: Resource,
) -> None:
    rng = random.Random(f"{SEED} {resource.plural}")
    readers = (*READERS[resource], *ANY)
    usual = ordinary(resource)
    size = size_of(usual)
    takes = [min(seconds(read, usual) for _ in range(20)) for read in readers]
    for number in range(COUNT // len(KINDS)):
        raw = hostile(rng, resource, f"x{number}")
        larger = max(1.0, size_of(raw) / size)
        for read, take in zip(readers, takes, strict=True):
            limit = max(LEAST, TIMES * take * larger)
            try:
                spent = seconds(read, raw)
            except Exception as error:
                raise AssertionError(f"seed {SEED}, number {number}: {raw}") from error
            if spent > limit:  # unless the machine took the time, such as for its garbage
                spent = min(seconds(read, raw) for _ in range(3))
            assert spent <= limit, f"seed {SEED}, number {number}: {spent:.3f} s for {raw}"


@pytest.mark.parametrize("name", GROWING)
def test_an_object_that_grows_takes_as_many_more_calls(name: str) -> None:
    resource, _ = GROWING[name]
    for read in (*READERS[resource], *ANY):
        few, many = grown(name, FEW), grown(name, MANY)
        most = MOST * calls(lambda few=few, read=read: read(few)) + NEW * MANY  # type: ignore[misc]
        assert calls(lambda many=many, read=read: read(many)) <= most  # type: ignore[misc]


def test_a_member_of_four_times_the_hostile_objects_takes_as_many_more_calls() -> None:
    def shown(number: int) -> object:
        rng, fold = random.Random(SEED), MemberFold()
        put = {
            NODES: lambda raw: fold.put(NODES, node_fact(raw)),
            PODS: lambda raw: fold.put(PODS, pod_fact(raw)),
            HYPERNODES: lambda raw: fold.put(HYPERNODES, hypernode_fact(raw)),
        }
        objects = [
            (resource, hostile(rng, resource, f"x{each}"))
            for each in range(number)
            for resource in put
        ]
        return calls(lambda: [put[resource](raw) for resource, raw in objects]), calls(
            lambda: Ground(fold.view()).free
        )

    few, many = shown(60), shown(240)
    assert many[0] <= 2 * MOST * few[0]
    assert many[1] <= 4 * MOST * few[1]


GROWS = [each for each in growing(texts="0") if each.kind in ("full", "0")]


@pytest.mark.parametrize("case", GROWS, ids=lambda each: each.name)
def test_a_hyperjob_that_grows_is_read_in_as_many_more_calls(case: Any) -> None:
    few = case.hyperjob(min(FEW, case.most))
    many = case.hyperjob(min(MANY, case.most))
    assert calls(lambda: parse_hyperjob(many)) <= MOST * calls(lambda: parse_hyperjob(few))


def test_an_extreme_hyperjob_is_read_in_the_time_of_ordinary_ones_of_its_size() -> None:
    rng = random.Random(SEED)
    usual = GROWS[0].hyperjob(1)
    take, size = min(seconds(parse_hyperjob, usual) for _ in range(20)), size_of(usual)
    for number in range(COUNT // 10):
        raw = extreme(rng)
        limit = max(LEAST, TIMES * take * size_of(raw) / size)
        spent = min(seconds(parse_hyperjob, raw) for _ in range(2))
        assert spent <= limit, f"seed {SEED}, number {number}: {spent:.3f} s for {raw}"
