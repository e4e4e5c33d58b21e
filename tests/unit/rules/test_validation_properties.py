"""What must hold for every document, however odd: hypothesis makes them from the API's schema."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from hyperjob_core.api.defaults import completed
from hyperjob_rules.patch import additions
from hyperjob_rules.validation.context import Cluster, Context, Queue
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.schema import hyperjob_schema
from hyperjob_rules.validation.update import validate_update

TEXTS = (
    "", "a", "b", "worker", "default1", "A_b", "a.b", "1a", "x" * 64, "../x", "..x", "/x", "a b",
    "a/b", "a/b/c", "Always", "OnFailure", "In", "Exists", "Gt", "Localhost", "Bidirectional",
    "NoExecute", "None", "TaskCompleted", "*", "RestartJob", "10s", "-10s", "h", "100%", "mpi",
    "--master=a", "--port=1", "-", "--", "nvidia.com/gpu", "metadata.labels['a']", "cpu", "é\n",
    "limits.cpu", "Completed", "Failed", "Suspended", "None", "http", "10.0.0.1", "Required",
)  # fmt: skip
KEYS = (
    "a", "A b", "cpu", "memory", "nvidia.com/gpu", "gpu", "hugepages-2Mi", "requests.cpu", "mpi",
    "pytorch", "svc", "env", "x/y", "x/y/z", "volcano.sh/jdb-min-available", "volcano.sh/x",
)  # fmt: skip
AMOUNTS = ("1", "500m", "1Gi", "1.5", "-1", "x", "", "1e3", "0", "9" * 30, "1E400")
NUMBERS = (0, 1, 2, 3, 8, -1, 100, 255, 70000, 2**31 - 1, 2**31, 10**18)

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(NUMBERS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=5,
)
OFTEN = frozenset(
    {"spec", "replicatedJobs", "templateSpec", "tasks", "template", "containers", "name", "image"}
)
CONTEXT = Context(
    clusters={"a": Cluster(ready=False)},
    queues={"a": Queue(state="", children=1)},
    priority_classes=frozenset({"b"}),
    config_maps=frozenset({"worker"}),
    service_accounts=frozenset(),
    secrets=frozenset(),
    persistent_volume_claims=frozenset(),
)


def documents(*, junk: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Make HyperJobs whose fields are of the right types, but for some if `junk`."""
    names = st.sampled_from([{"name": "a"}, {"name": "a.b"}, {"generateName": "a-"}])
    metadata = names | JUNK if junk else names
    body = value(hyperjob_schema(), junk=junk)
    return st.tuples(body, metadata).map(lambda made: {**as_object(made[0]), "metadata": made[1]})


def as_object(made: Any) -> dict[str, Any]:
    return made if isinstance(made, dict) else {"spec": made}


def value(node: dict[str, Any], *, junk: bool) -> st.SearchStrategy[Any]:
    """Make a value of a schema; the deeper, the fewer of its fields."""
    made = typed(node, junk=junk)
    if not junk:
        return made
    return st.integers(0, 24).flatmap(lambda chance: JUNK if chance == 0 else made)


def typed(node: dict[str, Any], *, junk: bool) -> st.SearchStrategy[Any]:
    if node.get("x-kubernetes-int-or-string"):
        return st.sampled_from((*AMOUNTS, 1, 2, 8080))
    if "enum" in node:
        return st.sampled_from(node["enum"])
    match node.get("type"):
        case "object" if "properties" in node:
            return st.deferred(lambda: an_object(node, junk=junk))
        case "object":
            items = node.get("additionalProperties") or {"type": "string"}
            inner = st.deferred(lambda: value(items, junk=junk))
            return st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
        case "array":
            inner = st.deferred(lambda: value(node["items"], junk=junk))
            return st.lists(inner, min_size=node.get("minItems", 0), max_size=3)
        case "string":
            return st.sampled_from(TEXTS)
        case "integer":
            low, high = node.get("minimum", -(2**31)), node.get("maximum", 2**31 - 1)
            return st.sampled_from([number for number in NUMBERS if low <= number <= high])
        case "boolean":
            return st.booleans()
        case _:
            return JUNK


@st.composite
def an_object(draw: st.DrawFn, node: dict[str, Any], *, junk: bool) -> dict[str, Any]:
    properties = node["properties"]
    chosen = set(draw(st.lists(st.sampled_from(sorted(properties)), max_size=4, unique=True)))
    required = set(node.get("required", ()))
    if not junk or draw(st.integers(0, 9)):
        chosen |= required
        chosen |= {name for name in OFTEN if name in properties}
    return {name: draw(value(properties[name], junk=junk)) for name in sorted(chosen)}


anything = settings(
    max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@anything
@given(documents(junk=True))
def test_validation_answers_whatever_it_is_asked_and_what_is_stored_can_be_stored_again(
    raw: dict[str, Any],
):
    again = validate_update(copy.deepcopy(raw), raw, context=CONTEXT)
    assert (again.errors, again.warnings) == ((), ())
    for strict in (False, True):
        outcome = validate_create(raw, context=CONTEXT, strict=strict)
        texts = [str(error) for error in outcome.errors]
        assert len(set(texts)) == len(texts)
        assert len(set(outcome.warnings)) == len(outcome.warnings)
        orjson.dumps([error.body for error in outcome.errors])


@anything
@given(documents(junk=True), documents(junk=True))
def test_validation_of_a_change_answers_whatever_it_is_asked(
    old: dict[str, Any], new: dict[str, Any]
):
    validate_update({**old, "spec": new.get("spec")}, old, context=CONTEXT)
    validate_update(new, old, context=CONTEXT)


def with_limit(amount: float) -> dict[str, Any]:
    """Build a HyperJob whose container has a limit that is no text."""
    container = {"resources": {"limits": {"a": amount}}}
    task = {"template": {"spec": {"containers": [container]}}}
    return {"spec": {"replicatedJobs": [{"name": "", "templateSpec": {"tasks": [task]}}]}}


@anything
@given(documents(junk=True))
@example(raw=with_limit(1.0))
@example(raw=with_limit(0.5))
def test_defaulting_only_adds_and_twice_is_once(raw: dict[str, Any]):
    kept = copy.deepcopy(raw)
    once = completed(raw)
    assert raw == kept
    assert completed(once) is once
    for operation in additions(raw, once):
        note(operation)
        assert operation["op"] in {"add", "replace"}
        if operation["op"] == "replace":
            old = get(raw, operation["path"])
            # Fractions of resources are written as text, which the schema of the API takes.
            fraction = isinstance(old, float) and "/resources/" in operation["path"]
            assert old in (None, 0, "") or (fraction and operation["value"] == str(old))


@anything
@given(documents(junk=False))
def test_the_answer_does_not_depend_on_the_order_of_keys(raw: dict[str, Any]):
    made = completed(raw)
    outcome = validate_create(made, context=CONTEXT)
    again = validate_create(turned(made), context=CONTEXT)
    assert sorted(map(str, outcome.errors)) == sorted(map(str, again.errors))
    assert sorted(outcome.warnings) == sorted(again.warnings)


def get(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        root = root[int(step)] if isinstance(root, list) else root[step]
    return root


def turned(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {key: turned(child) for key, child in reversed(raw.items())}
    return [turned(item) for item in raw] if isinstance(raw, list) else raw


@pytest.mark.parametrize("depth", [100, 400])
def test_what_nests_deeply_is_refused_and_not_followed(depth: int):
    nested: Any = "x"
    for _ in range(depth):
        nested = {"a": [nested]}
    for place in ("metadata", "spec", "extra"):
        outcome = validate_create({"spec": {}, place: nested}, strict=True)
        assert outcome.errors
    raw = {"metadata": {"name": "a", "annotations": nested}, "spec": {"replicatedJobs": nested}}
    assert completed(raw) is raw
    assert validate_update(raw, raw).errors == ()


def test_many_errors_are_not_all_told():
    spec = {"replicatedJobs": [1] * 100_000}
    outcome = validate_create({"metadata": {"name": "a"}, "spec": spec})
    assert len(outcome.errors) == 1
    assert "100000 fields" in str(outcome.errors[0]) or "Too many" in str(outcome.errors[0])
