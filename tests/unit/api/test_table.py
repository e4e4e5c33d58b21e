"""One table gives the schema of an object, and the reader and the writer that agree with it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hyperjob_core.api import table
from hyperjob_core.api.status import ContainerFailure, GangStatus, JobStatus, Run
from hyperjob_core.api.training import StallStatus, SubJobTraining
from hyperjob_core.api.v1alpha1 import HyperJobStatus
from tests.support.structural import assert_status, crds, schema_of, strict
from tests.unit.api.test_models import at, beyond, example, places, values, wrapped

Object = dict[str, Any]
STATUS: Object = schema_of(crds()["HyperJob"])["properties"]["status"]
OTHERS = "conditions"  # other components write them, too: they are no part of the tables
TIME = "2026-01-02T03:04:05Z"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@given(values(STATUS))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
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
