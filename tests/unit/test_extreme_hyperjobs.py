"""HyperJobs with extreme numbers, amounts, durations and texts: no exception, bounded time.

Each HyperJob goes through defaulting and validation and, where admission takes it, through the
engine's plan. HYPERJOB_FUZZ_COUNT sets how many (`make fuzz` runs 100,000), HYPERJOB_FUZZ_SEED
which ones.
"""

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any, Final

import pytest
import yaml

from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_rules.validation.create import inspect
from tests.unit.engine.builders import cluster
from tests.unit.engine.world import World

COUNT = int(os.environ.get("HYPERJOB_FUZZ_COUNT", "400"))
SEED = int(os.environ.get("HYPERJOB_FUZZ_SEED", "20261123"))
CPU_LIMIT: Final = 5.0
"""Seconds of one HyperJob: a hang, on any machine."""

Object = dict[str, Any]
BASES: Final[list[Object]] = [
    json.loads(json.dumps(base))  # no part is shared by two places
    for file in sorted((Path(__file__).parent / "rules/corpus/bases").glob("*.yaml"))
    for base in yaml.safe_load(file.read_text(encoding="utf-8")).values()
    if not inspect(base, context=NOTHING_KNOWN, strict=True).refusals
]
NUMBERS: Final = (
    *(0, 1, 2, 3, 7, 29, 64, 255, 256, 3600, 3601, 5000, 5001, 200_000, 200_001),
    *(2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -1, -(2**31), -(2**63)),
)
AMOUNTS: Final = (
    *("0", "1", "8", "100m", "1n", "1e-400", "0.5", "1E3", "16Gi", "9223372036854775807"),
    *("9223372036854775808", "9.3E", "7Ei", "8Ei", "1e18", "1e19", "1e299", "1e300", "1e400"),
    *("1e999999999", "-1", "-1e400", "999999999999999999999999", 1, 8, 2**31, 2**63 - 1),
)
DURATIONS: Final = (
    *("0s", "1ns", "1h30m", "8760h", "8760h1ns", "87600h", "2562047h", "2562047h47m16.854775807s"),
    *("2562048h", "-1h", "1e9h", ".5h", "9223372036854775807ns"),
)
ACCELERATORS: Final = ("nvidia.com/gpu", "huawei.com/Ascend910")
RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
TEXTS: Final = ("", "a", "0", "1e400", "x" * 63, "x" * 64, "x" * 253, "y" * 100_000, "ü\u202e", "-")
LEAST: Final = (1, 2, 8, 60, 2**31 - 1)
"""Numbers that most fields take: a mutation with one of these is often admitted."""
IN_TEMPLATE: Final = ("replicatedJobs", "templateSpec")
IN_POD: Final = (*IN_TEMPLATE, "tasks", "template", "spec")


def additions(rng: random.Random) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield fields and values, each of which makes another HyperJob."""
    number = partial(rng.choice, LEAST if rng.random() < 0.6 else NUMBERS)
    for field in ("minAvailable", "maxDomains", "ttlSecondsAfterFinished"):
        yield (field,), number()
    yield ("failurePolicy",), {"maxRestarts": number()}
    yield ("checkpoint",), {"directory": "/c", "gracePeriodSeconds": number()}
    yield ("checkpoint",), {"directory": rng.choice(TEXTS), "intervalSeconds": number()}
    yield ("replicatedJobs", "replicas"), number()
    mode, kind = rng.choice(("auto", "static")), rng.choice(ACCELERATORS)
    split = {"mode": mode, "accelerators": number(), "acceleratorType": kind}
    yield ("replicatedJobs", "splitPolicy"), split
    yield (*IN_TEMPLATE, "runningEstimate"), rng.choice(DURATIONS)
    for field in ("maxRetry", "minAvailable", "minSuccess"):
        yield (*IN_TEMPLATE, field), number()
    yield (*IN_TEMPLATE, "tasks", "replicas"), number()
    yield (*IN_TEMPLATE, "tasks", "minAvailable"), number()
    yield (*IN_POD, "overhead"), {rng.choice(RESOURCES): rng.choice(AMOUNTS)}
    yield (*IN_POD, "terminationGracePeriodSeconds"), number()
    yield (*IN_POD, "activeDeadlineSeconds"), number()
    for kind in ("containers", "initContainers"):
        for name in (*RESOURCES, *ACCELERATORS):
            yield (*IN_POD, kind, "resources"), {"limits": {name: rng.choice(AMOUNTS)}}


FEW: Final = 20
REQUESTED: Final = 0.1
"""The part of the HyperJobs with an extreme annotation, such as a request for a restart."""
AMOUNT_FIELDS: Final = frozenset({"limits", "requests", "overhead", "capacity"})
DURATION_FIELDS: Final = frozenset({"runningEstimate", "timeout"})


def extreme(rng: random.Random) -> Object:
    """Make a HyperJob with a few extreme values: of fields that are there, and of new ones."""
    made = copy.deepcopy(rng.choice(BASES))
    made["metadata"] = {**(made.get("metadata") or {}), "namespace": "default"}
    for path, value in rng.sample(list(additions(rng)), rng.randint(1, 2)):
        put(rng, made["spec"], path, value)
    places = list(leaves(made["spec"]))
    for holder, key, field, value in rng.sample(places, rng.choice((0, 0, 1, 2))):
        holder[key] = another(rng, field, value)
    if rng.random() < REQUESTED:
        request = rng.choice((RESTART_REQUEST, MIGRATE_REQUEST, rng.choice(TEXTS)))
        made["metadata"]["annotations"] = {request: rng.choice(TEXTS)}
    return made


def put(rng: random.Random, node: Any, path: tuple[str, ...], value: Any) -> None:
    """Set a field below an object; where a list is on the way, in one of its items."""
    for step in path[:-1]:
        found = node.setdefault(step, {}) if isinstance(node, dict) else None
        node = rng.choice(found) if isinstance(found, list) and found else found
        if not isinstance(node, dict):
            return
    node[path[-1]] = value


def leaves(node: Any, field: str = "") -> Iterator[tuple[Any, Any, str, Any]]:
    """Yield the holder, key, name of the field and value of every number and text."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        name = field if isinstance(key, int) or field in AMOUNT_FIELDS else key
        if isinstance(value, dict | list):
            yield from leaves(value, name)
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield node, key, name, value


def another(rng: random.Random, field: str, value: Any) -> Any:
    if field in AMOUNT_FIELDS:
        return rng.choice(AMOUNTS)
    if field in DURATION_FIELDS:
        return rng.choice(DURATIONS)
    return rng.choice(NUMBERS if isinstance(value, int) else TEXTS)


def world(rng: random.Random) -> World:
    clusters = {name: cluster(name, gpus) for name, gpus in (("a", 64), ("b", 8), ("c", 0))}
    admission = rng.choice((QueueAdmission.NONE, QueueAdmission.VOLCANO_GLOBAL))
    return World(clusters=clusters, admission=admission)


def planned(rng: random.Random, raw: Object) -> None:
    """Plan the HyperJob, as it comes, with its first sub-jobs, and while it is suspended."""
    name = raw["metadata"]["name"]
    raw["metadata"] |= {"uid": "hj-uid", "generation": 1}
    raw["metadata"]["creationTimestamp"] = "2026-01-02T03:00:00Z"
    made = world(rng)
    made.hyperjobs[name] = {**raw, "status": {}}
    for _ in range(2):
        # The world compares each of its sub-jobs with all others.
        made.reconcile(name, dies_after=FEW)
        made.karmada()
    made.hyperjobs[name]["spec"]["suspend"] = True
    made.reconcile(name, dies_after=FEW)


@pytest.mark.timeout(1800)
def test_extreme_hyperjobs_are_refused_or_planned() -> None:
    rng = random.Random(SEED)
    found: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for number in range(COUNT):
        raw = extreme(rng)
        began = thread_time()
        try:
            refusals = inspect(raw, context=NOTHING_KNOWN, strict=False).refusals
            rules.update({each.rule.id for each in refusals})
            found["refused" if refusals else "admitted"] += 1
            if not refusals:
                planned(rng, copy.deepcopy(raw))
        except Exception as error:
            raise AssertionError(f"seed {SEED}, number {number}: {raw}") from error
        assert thread_time() - began < CPU_LIMIT, f"seed {SEED}, number {number}: {raw}"
    assert min(found["refused"], found["admitted"]) > COUNT // 20, found
    for known in ("X19.amount", "X19.grace", "V6.too-long"):
        assert rules[known], f"{known} refused none of {COUNT}"
