"""The wire types take what the CRD takes, keep what they do not know, and refuse the rest."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from hyperjob_core.api.batch import JobSpec, JobStatus
from hyperjob_core.api.model import Condition, Model, ObjectMeta
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.v1alpha1 import HyperJob, HyperJobSpec, ReplicatedJob
from tests.support.structural import crds, schema_of, strict

Object = dict[str, Any]


def values(node: Object) -> st.SearchStrategy[Any]:
    """Generate what a structural schema allows, at its bounds more often than not."""
    if node.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, "500m", "1.5Gi"])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    match node["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            wide = node.get("format") == "int64"
            return st.integers(
                node.get("minimum", -(2**63) if wide else -(2**31)),
                node.get("maximum", 2**63 - 1 if wide else 2**31 - 1),
            )
        case "string" if node.get("format") == "date-time":
            return st.sampled_from(["2026-01-02T03:04:05Z", "2027-01-01T00:00:00Z"])
        case "string" if "pattern" in node:
            return st.sampled_from(["a", "a1", "a-b", "x" * min(63, node.get("maxLength", 63))])
        case "string":
            return st.text(
                min_size=node.get("minLength", 0), max_size=min(node.get("maxLength", 8), 8)
            )
        case "array":
            return st.lists(values(node["items"]), min_size=node.get("minItems", 0), max_size=2)
    if "properties" not in node:
        other = node.get("additionalProperties", {"type": "string"})
        return st.dictionaries(st.text(max_size=4), values(other), max_size=2)
    fields = {
        name: st.just(POD) if name in ("template", "volumeClaim") else values(field)
        for name, field in node["properties"].items()
    }
    required = {name: fields.pop(name) for name in node.get("required", [])}
    return st.fixed_dictionaries(required, optional=fields)


POD: Object = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"gpu": 1}}}]}}
PARTS: list[tuple[type[Model], str, str]] = [
    (HyperJobSpec, "HyperJob", "spec"),
    (JobSpec, "Job", "spec"),
    (JobStatus, "Job", "status"),
]


@pytest.mark.parametrize(("model", "kind", "part"), PARTS)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_what_the_schema_allows_is_read_and_written_without_loss(
    model: type[Model], kind: str, part: str, data: st.DataObject
) -> None:
    raw = data.draw(values(schema_of(crds()[kind])["properties"][part]))
    assert model.from_object(raw).to_object() == raw


def places(node: Object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Object]]:
    """List every place of a schema that has bounds, outside of Kubernetes' own types."""
    found = [(path, node)] if set(node) & BOUNDS else []
    for name, field in node.get("properties", {}).items():
        if name not in ("template", "volumeClaim"):
            found += places(field, (*path, name))
    return found + (places(node["items"], (*path, "[]")) if "items" in node else [])


BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enum", "pattern"}


def beyond(node: Object) -> list[Any]:
    """Return values just beyond the bounds of a place."""
    values: list[Any] = []
    if "minimum" in node:
        values.append(node["minimum"] - 1)
    if "maximum" in node:
        values.append(node["maximum"] + 1)
    if "enum" in node:
        values.append("Other")
    if "pattern" in node:
        values.append(":")
    if node.get("minLength"):
        values.append("")
    if "maxLength" in node:
        values.append("a" * (node["maxLength"] + 1))
    if node.get("minItems"):
        values.append([])
    return values


def wrapped(node: Object, path: tuple[str, ...], value: Any) -> Any:
    """Build the smallest object with a value at a place, required fields beside it."""
    if not path:
        return value
    head, *rest = path
    if head == "[]":
        return [wrapped(node["items"], tuple(rest), value)]
    obj = {name: example(node["properties"][name]) for name in node.get("required", [])}
    return obj | {head: wrapped(node["properties"][head], tuple(rest), value)}


def example(node: Object) -> Any:
    if "enum" in node:
        return node["enum"][0]
    match node["type"]:
        case "integer":
            return max(1, node.get("minimum", 1))
        case "string" if node.get("format") == "date-time":
            return "2026-01-02T03:04:05Z"
        case "string":
            return "a"
        case "array":
            return [example(node["items"])]
    return {name: example(node["properties"][name]) for name in node.get("required", [])}


CASES = [
    pytest.param(model, part, path, value, id=f"{model.__name__}-{'.'.join(path)}-{value!r:.12}")
    for model, kind, part in PARTS
    for path, node in places(schema_of(crds()[kind])["properties"][part])
    # The state of a vcjob is read whatever it is: an unknown phase must not stop a controller.
    if path != ("state", "phase") or model is not JobStatus
    for value in beyond(node)
    # A vcjob must have tasks; the HyperJob's template says so in admission.
    if not (model is JobSpec and path == ("tasks",))
    # A HyperJob's template is bounded more tightly than a vcjob, which has the same type.
    if path[-3:] != ("tasks", "[]", "replicas") or value < 0
]


@pytest.mark.parametrize(("model", "part", "path", "value"), CASES)
def test_what_is_beyond_a_bound_is_refused_by_type_and_schema_alike(
    model: type[Model], part: str, path: tuple[str, ...], value: Any
) -> None:
    kind = "HyperJob" if model is HyperJobSpec else "Job"
    node = schema_of(crds()[kind])["properties"][part]
    raw = wrapped(node, path, value)
    assert not Draft202012Validator(strict(node)).is_valid(raw)
    with pytest.raises(ValidationError):
        model.from_object(raw)
    good = wrapped(node, path, example(at(node, path)))
    assert model.from_object(good).to_object() == good


def at(node: Object, path: tuple[str, ...]) -> Object:
    for step in path:
        node = node["items"] if step == "[]" else node["properties"][step]
    return node


@pytest.mark.parametrize("value", ["3", True, 2.0, 2.5, [], {}])
def test_only_an_integer_is_an_integer(value: object) -> None:
    with pytest.raises(ValidationError):
        ObjectMeta.from_object({"generation": value})


@pytest.mark.parametrize("value", ["true", 1, 0])
def test_only_a_boolean_is_a_boolean(value: object) -> None:
    with pytest.raises(ValidationError):
        HyperJobSpec.from_object({"replicatedJobs": [JOB], "suspend": value})


JOB: Object = {"name": "a", "templateSpec": {}}


def test_a_field_that_is_not_known_is_kept() -> None:
    raw = {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "a", "futureMeta": 1},
        "spec": {"replicatedJobs": [JOB | {"futureField": {"x": [1]}}], "future": True},
    }
    assert HyperJob.from_object(raw).to_object() == raw


def test_defaults_are_read_and_not_written() -> None:
    raw = {"replicatedJobs": [JOB], "failurePolicy": {}}
    spec = HyperJobSpec.from_object(raw)
    assert spec.failure_policy is not None
    assert spec.failure_policy.max_restarts == 0
    assert spec.to_object() == raw


def test_a_value_may_be_given_by_its_python_name() -> None:
    spec = HyperJobSpec(min_available=2, replicated_jobs=(ReplicatedJob(**JOB),))
    assert spec.to_object() == {"minAvailable": 2, "replicatedJobs": [JOB]}


CONDITION = Condition(type="Failed", status="True")


def test_values_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        CONDITION.status = "False"


@pytest.mark.parametrize(
    ("text", "phase", "terminal", "failed"),
    [
        ("Running", JobPhase.RUNNING, False, False),
        ("Completed", JobPhase.COMPLETED, True, False),
        ("Failed", JobPhase.FAILED, True, True),
        ("Aborted", JobPhase.ABORTED, True, True),
        ("Terminated", JobPhase.TERMINATED, True, True),
        ("Terminating", JobPhase.TERMINATING, False, False),
        ("", JobPhase.UNKNOWN, False, False),
        ("Sleeping", JobPhase.UNKNOWN, False, False),
    ],
)
def test_a_phase_that_is_not_known_is_neither_an_end_nor_a_failure(
    text: str, phase: JobPhase, terminal: bool, failed: bool
) -> None:
    assert JobPhase(text) is phase
    assert (phase.is_terminal, phase.is_failed) == (terminal, failed)


def test_only_completed_and_failed_end_a_hyperjob() -> None:
    assert {phase for phase in Phase if phase.is_terminal} == {Phase.COMPLETED, Phase.FAILED}
