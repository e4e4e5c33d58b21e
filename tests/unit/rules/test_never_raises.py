"""Neither defaulting nor validation raises, whichever field of a valid HyperJob is gone or wrong.

Every place of every example, of the corpus' bases and of a split of each kind is removed, nulled
and given each other type, once for each form of path; created, changed into, and changed back.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.api.defaults import completed
from hyperjob_core.api.meta import Object
from hyperjob_rules.patch import additions
from hyperjob_rules.validation.context import Cluster, Context, Queue
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.update import validate_update
from tests.support.structural import crds, schema_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
GONE = object()
VALUES: tuple[Any, ...] = (GONE, None, {}, [], "x", 0, True, [None])
DEEP = 9
"""Steps from which on a place is inside a pod, where there are a thousand."""
ENDED = {
    "phase": {"state": {"phase": "Running"}, "jobs": [{"name": "x-0", "cluster": "a"}]},
    "conditions": {"conditions": [{"type": "Failed", "status": "True"}]},
}
KNOWN = Context(
    clusters={"a": Cluster()},
    queues={"default": Queue()},
    priority_classes=frozenset(),
    config_maps=frozenset(),
    service_accounts=frozenset(),
    secrets=frozenset(),
    persistent_volume_claims=frozenset(),
)
Steps = tuple[str | int, ...]


def _split(mode: str, replicas: int) -> Object:
    box = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    task = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [box]}}}
    policy = {"mode": mode, "accelerators": 8, "acceleratorType": "nvidia.com/gpu"}
    job = {
        "name": "a",
        "replicas": replicas,
        "splitPolicy": policy,
        "templateSpec": {"tasks": [task]},
    }
    if mode == "auto":
        bounds = {**policy, "minAccelerators": 4, "maxAccelerators": 16}
        job["alternatives"] = [{"name": "any"}, {"name": "sized", "splitPolicy": bounds}]
    return {"metadata": {"name": "x"}, "spec": {"replicatedJobs": [job]}}


def _rare() -> Object:
    """Return a HyperJob with the fields that no manifest has, some of them for one admission."""
    probe = {"exec": {"command": ["true"]}, "terminationGracePeriodSeconds": 9}
    box = {"name": "c", "image": "i", "restartPolicy": "Always", "readinessProbe": probe}
    pod = {
        "os": {"name": "linux"},
        "hostPID": False,
        "containers": [box],
        "initContainers": [box],
        "ephemeralContainers": [box],
        "resources": {"claims": [{"name": "gpu", "request": "one"}]},
    }
    near = {"mode": "hard", "highestTierName": "rack"}
    first = {"name": "t", "replicas": 1, "template": {"spec": pod}}
    second = {
        **first,
        "name": "u",
        "dependsOn": {"name": ["t"], "iteration": "any"},
        "partitionPolicy": {"totalPartitions": 1, "partitionSize": 1, "networkTopology": near},
    }
    template = {"networkTopology": near, "tasks": [first, second]}
    return {
        "metadata": {"name": "x"},
        "spec": {
            "checkpoint": {"directory": "/data"},
            "replicatedJobs": [{"name": "a", "replicas": 1, "templateSpec": template}],
        },
    }


def examples() -> Iterator[tuple[str, Object]]:
    """Yield rich HyperJobs that admission takes."""
    files = sorted((ROOT / "examples").rglob("*.yaml"))
    bases = sorted((ROOT / "tests/unit/rules/corpus/bases").glob("*.yaml"))
    for path in bases:
        yield from yaml.safe_load(path.read_text(encoding="utf-8")).items()
    for path in files:
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(document, dict) and document.get("kind") == "HyperJob":
                yield path.name, document
    for mode, replicas in (("static", 1), ("static", 2), ("auto", 1)):
        yield f"split {mode} {replicas}", _split(mode, replicas)
    yield "rare", _rare()
    for name, status in ENDED.items():
        yield f"status {name}", {**_split("static", 1), "status": status}


def places(value: Any, at: Steps = ()) -> Iterator[Steps]:
    """Yield every place of a document, the whole first."""
    yield at
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for step, child in children:
        yield from places(child, (*at, step))


def form_of(place: Steps) -> Steps:
    return tuple("[]" if isinstance(step, int) else step for step in place)


def fields(schema: Object, at: Steps = ()) -> Iterator[Steps]:
    """Yield the form of every field of a schema; what a map holds is no field."""
    for name, inner in schema.get("properties", {}).items():
        yield (*at, name)
        yield from fields(inner, (*at, name))
    if "items" in schema:
        yield from fields(schema["items"], (*at, "[]"))


def mutations(document: Object, seen: set[Steps]) -> Iterator[tuple[Steps, Any, Object]]:
    """Yield the document with one place changed, for places whose form was not seen before."""
    for place in places(document):
        form = form_of(place)
        if not place or form in seen:
            continue
        seen.add(form)
        # The places are many, so each gets two values in turn; most in pods get one.
        turn = len(seen) % 7
        values = (GONE, VALUES[1 + turn], VALUES[1 + (turn + 3) % 7])
        for value in values[turn % 2 :][: 1 if len(place) > DEEP else 2]:
            yield place, value, replaced(document, place, value)


def replaced(node: Any, place: Steps, value: Any) -> Any:
    """Return a document with another value at a place; what is beside the way is shared."""
    step, *rest = place
    made = copy.copy(node)
    if rest:
        made[step] = replaced(node[step], tuple(rest), value)
    elif value is GONE:
        del made[step]
    else:
        made[step] = value
    return made


def judge(new: Object, old: Object, *, back: bool) -> None:
    """Do everything that the webhooks do with a HyperJob; `back`, its repair as well."""
    list(additions(new, completed(new)))
    validate_create(new, context=KNOWN, strict=True)
    validate_update(new, old)
    if back:
        validate_update(old, new)


EXAMPLES = list(examples())


def test_the_examples_are_there() -> None:
    names = {name for name, _ in EXAMPLES}
    assert {"everything", "trainer", "split auto 1", "status phase"} <= names
    assert len(names) > 8


def test_every_field_that_a_user_writes_is_in_an_example() -> None:
    spec = schema_of(crds()["HyperJob"])["properties"]["spec"]
    known = {form_of(place) for _, document in EXAMPLES for place in places(document)}
    assert set(fields(spec, ("spec",))) - known == set()


@pytest.mark.parametrize("part", range(4))
def test_nothing_is_raised_whichever_field_is_gone_null_or_of_another_type(part: int) -> None:
    seen: set[Steps] = set()
    count = 0
    for name, document in EXAMPLES:
        # A split and a status are looked at anew: their rules depend on what is beside them.
        known = set() if name.startswith(("split", "status")) else seen
        for number, (place, value, changed) in enumerate(mutations(document, known)):
            if number % 4 != part:
                continue
            count += 1
            try:
                judge(changed, document, back=len(place) <= DEEP)
            except Exception as error:
                where = f"{name}: {'.'.join(map(str, place))} = {value!r}"
                raise AssertionError(f"{where} raised {error!r}") from error
    assert count > 250
