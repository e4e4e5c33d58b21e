"""One table gives the schema of an object, and the reader and the writer that agree with it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hyperjob_core.api import table
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import ContainerFailure, GangStatus, HyperJobStatus, JobStatus, Run
from hyperjob_core.api.training import StallStatus, SubJobTraining
from tests.support.structural import assert_status, crds, schema_of, strict

Object = dict[str, Any]
STATUS: Object = schema_of(crds()["HyperJob"])["properties"]["status"]
OTHERS = "conditions"  # other components write them, too: they are no part of the tables
TIME = "2026-01-02T03:04:05Z"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def values(node: Object) -> st.SearchStrategy[Any]:
    """Generate what a structural schema allows, at its bounds more often than not."""
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
    fields = {name: values(field) for name, field in node["properties"].items()}
    required = {name: fields.pop(name) for name in node.get("required", [])}
    return st.fixed_dictionaries(required, optional=fields)


def places(node: Object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Object]]:
    """List every place of a schema that has bounds."""
    found = [(path, node)] if set(node) & BOUNDS else []
    for name, field in node.get("properties", {}).items():
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


def at(node: Object, path: tuple[str, ...]) -> Object:
    for step in path:
        node = node["items"] if step == "[]" else node["properties"][step]
    return node


@given(values(STATUS))
def test_what_the_schema_allows_reads_back_as_it_was_written(raw: Object) -> None:
    raw.pop(OTHERS, None)
    found = table.read(HyperJobStatus, raw)
    assert found is not None
    written = table.write(found)
    assert_status(written)
    assert table.read(HyperJobStatus, written) == found
    assert table.write(found) == written


CASES = [
    pytest.param(path, value, id=f"{'.'.join(path)}-{value!r:.12}")
    for path, node in places(STATUS)
    if path[0] != OTHERS
    for value in beyond(node)
]


@pytest.mark.parametrize(("path", "value"), CASES)
def test_what_the_schema_refuses_reads_as_absent(path: tuple[str, ...], value: Any) -> None:
    refused = wrapped(STATUS, path, value)
    assert not Draft202012Validator(strict(STATUS)).is_valid(refused)
    assert table.read(HyperJobStatus, refused) == table.read(
        HyperJobStatus, wrapped(STATUS, path, None)
    )
    good = wrapped(STATUS, path, example(at(STATUS, path)))
    assert table.read(HyperJobStatus, good) != table.read(HyperJobStatus, refused)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "pod", "updateTime", "attempt"]), below)
    ),
)


@given(ANYTHING)
def test_any_value_is_read_without_an_error(raw: object) -> None:
    table.read(JobStatus, {"name": "a", "history": raw, "training": raw, "index": raw})
    assert isinstance(table.read_all(JobStatus, raw), tuple)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        pytest.param(ContainerFailure, {"exitCode": 3}, id="no pod"),
        pytest.param(ContainerFailure, {"pod": ""}, id="an empty name"),
        pytest.param(SubJobTraining, {"updateTime": TIME}, id="one of two times"),
        pytest.param(SubJobTraining, {"updateTime": TIME, "startTime": "soon"}, id="no time"),
        pytest.param(StallStatus, {"step": 4}, id="no since"),
        pytest.param(GangStatus, ["attempts"], id="no object"),
    ],
)
def test_without_a_required_field_there_is_no_object(kind: type[Any], raw: object) -> None:
    assert table.read(kind, raw) is None
    assert table.read_all(kind, [raw]) == ()


def test_only_what_is_not_empty_is_written_unless_a_reader_has_to_see_it() -> None:
    assert table.write(Run(cluster="a")) == {"attempt": 0, "cluster": "a"}
    failure = ContainerFailure(pod="p", exit_code=0, rank=0)
    assert table.write(failure) == {"pod": "p", "exitCode": 0, "rank": 0}
    training = SubJobTraining(updated=MOMENT, started=MOMENT, steps=9)
    assert table.write(training) == {
        "step": 0, "updateTime": "2026-01-02T03:04:05.000000Z", "startStep": 0,
        "startTime": "2026-01-02T03:04:05.000000Z", "attempt": 0, "uid": "",
    }  # fmt: skip
    assert table.write(GangStatus(retry_time=MOMENT)) == {
        "admitted": 0, "attempts": 0, "retryTime": TIME,
    }  # fmt: skip


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
