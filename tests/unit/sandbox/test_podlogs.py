"""The log that a simulated container would have written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo
from hyperjob_sandbox.apiserver.verbs.podlogs import (
    chosen,
    container_of,
    entries,
    has_ended,
    text,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(**state: Any) -> dict[str, Any]:
    last = state.pop("lastState", {})
    return {
        "metadata": {"name": "w-0"},
        "spec": {"nodeName": "n-1", "containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", "state": state, "lastState": last}]},
    }


RUNNING = pod(running={"startedAt": "2026-01-01T00:00:00Z"})
ENDED = pod(
    terminated={
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:02Z",
        "exitCode": 3,
    }
)


def lines(obj: dict[str, Any], seconds: float, **query: str) -> list[str]:
    now = START + timedelta(seconds=seconds)
    found = chosen(entries(obj, "main", now), RequestInfo("GET", "", query), now)
    return text(found, timestamps=bool(query.get("timestamps"))).decode().splitlines()


def test_it_starts_goes_on_and_ends() -> None:
    assert lines(RUNNING, 2.5) == ["started on n-1 (simulated)", "step 1", "step 2"]
    assert lines(ENDED, 60)[-2:] == ["step 2", "ended with exit code 3"]
    assert has_ended(ENDED, "main")
    assert not has_ended(RUNNING, "main")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tailLines": "1"}, ["step 9"]),
        ({"tailLines": "0"}, []),
        ({"sinceSeconds": "2"}, ["step 8", "step 9"]),
        ({"sinceTime": "2026-01-01T00:00:08Z"}, ["step 8", "step 9"]),
        ({"tailLines": "1", "timestamps": "true"}, ["2026-01-01T00:00:09.000000000Z step 9"]),
    ],
)
def test_what_is_asked_for_is_printed(query: dict[str, str], expected: list[str]) -> None:
    assert lines(RUNNING, 9.5, **query) == expected


@pytest.mark.parametrize(
    ("obj", "container", "previous", "said"),
    [
        (pod(waiting={"reason": "ImagePullBackOff"}), "main", False, "is waiting to start: Image"),
        (RUNNING, "other", False, "container other is not valid for pod w-0"),
        (RUNNING, "main", True, 'previous terminated container "main" in pod "w-0" not found'),
    ],
)
def test_what_has_no_log_is_a_bad_request(
    obj: dict[str, Any], container: str, previous: bool, said: str
) -> None:
    with pytest.raises(ApiError, match=said) as refused:
        entries(obj, container_of(obj, container), START, previous=previous)
    assert refused.value.code == 400


def test_one_of_several_containers_must_be_named() -> None:
    several = {"metadata": {"name": "w"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    with pytest.raises(ApiError, match=r"choose one of: \[a b\]"):
        container_of(several, "")
