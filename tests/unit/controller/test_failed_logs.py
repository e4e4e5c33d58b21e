"""The logs of failed containers are kept before a restart deletes their pods."""

from collections.abc import AsyncGenerator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from hyperjob_controller.members.failedlogs import FailedLogs
from hyperjob_core.api.failedlogs import read_logs
from hyperjob_core.api.ownership import ForeignObjectError
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.kube.errors import KubeError
from hyperjob_engine.model.planned import FailedJob
from tests.support.apiserver import refusal

JOB = FailedJob(name="hj-t-0", uid="u1", cluster="a", attempt=1)
FAILURE = ContainerFailure(
    pod="hj-t-0-worker-1", container="main", exit_code=1, time="2026-01-02T03:02:00Z"
)
OWNER = {"kind": "HyperJob", "name": "hj", "uid": "u", "controller": True}


class Store:
    """ConfigMaps in memory, and logs by pod."""

    def __init__(self, logs: Mapping[str, bytes]) -> None:
        self.logs = logs
        self.stored: dict[str, Any] = {}
        self.made_meanwhile: dict[str, Any] = {}
        self.paths: list[str] = []

    async def get(self, _resource: Any, name: str, *, namespace: str) -> Any:
        if name not in self.stored:
            raise refusal(404, "NotFound")
        return self.stored[name]

    async def create(self, _resource: Any, made: Any, *, namespace: str) -> None:
        if self.made_meanwhile:
            self.stored, self.made_meanwhile = self.made_meanwhile, {}
            raise refusal(409, "AlreadyExists")
        metadata = {**made["metadata"], "uid": "of the ConfigMap"}
        self.stored[metadata["name"]] = {**made, "metadata": metadata}

    async def patch(
        self, _resource: Any, name: str, body: Any, *, kind: Any, namespace: str
    ) -> None:
        if body["metadata"]["uid"] != self.stored[name]["metadata"].get("uid"):
            raise refusal(409, "Conflict")
        data = self.stored[name]["data"] | body["data"]
        kept = {key: value for key, value in data.items() if value is not None}
        self.stored[name] = {**self.stored[name], "data": kept}

    async def stream(
        self, path: str, *, params: Mapping[str, str], **_: object
    ) -> AsyncGenerator[bytes, None]:
        self.paths.append(path)
        pod = path.split("/")[-2]
        if pod not in self.logs:
            raise refusal(404, "NotFound")
        yield self.logs[pod]


def lines(*texts: str) -> bytes:
    return b"".join(f"2026-01-02T03:01:00.0Z {text}\n".encode() for text in texts)


def kept(store: Store) -> list[tuple[str, int, str]]:
    return [
        (each.job, each.attempt, each.text) for each in read_logs(store.stored["hj-failed-logs"])
    ]


async def test_the_end_of_each_failed_log_is_in_the_config_map_of_the_hyperjob() -> None:
    store = Store({"hj-t-0-worker-1": lines("first", "Traceback", "ValueError: no labels")})
    logs = FailedLogs(store, store, limit=35)  # type: ignore[arg-type]  # all that it calls
    await logs.keep("ns/hj", OWNER, JOB, FAILURE)
    await logs.keep("ns/hj", OWNER, replace(JOB, attempt=2), replace(FAILURE, time="2027-01-01"))
    end = "st\nTraceback\nValueError: no labels\n"
    assert [(job, attempt) for job, attempt, _ in kept(store)] == [("hj-t-0", 2), ("hj-t-0", 3)]
    assert {text for _, _, text in kept(store)} == {end}
    (owner,) = store.stored["hj-failed-logs"]["metadata"]["ownerReferences"]
    assert owner == OWNER, "the garbage collector deletes it with the HyperJob"
    assert store.paths[0].endswith(
        "/clusters/a/proxy/api/v1/namespaces/ns/pods/hj-t-0-worker-1/log"
    )


async def test_sub_jobs_that_fail_together_do_not_lose_each_other() -> None:
    store = Store({"hj-t-0-worker-1": lines("mine")})
    other = Store({"hj-t-0-worker-1": lines("of another")})
    await FailedLogs(other, other, limit=99).keep(  # type: ignore[arg-type]
        "ns/hj", OWNER, replace(JOB, name="hj-t-1"), FAILURE
    )
    store.made_meanwhile = other.stored
    await FailedLogs(store, store, limit=99).keep("ns/hj", OWNER, JOB, FAILURE)  # type: ignore[arg-type]
    assert {job for job, _, _ in kept(store)} == {"hj-t-0", "hj-t-1"}


@pytest.mark.parametrize(
    "references",
    [[], [{**OWNER, "uid": "earlier"}], [{**OWNER, "controller": False}]],
    ids=["of a user", "of an earlier HyperJob of the name", "of another controller"],
)
@pytest.mark.parametrize("meanwhile", [False, True], ids=["there before", "created meanwhile"])
async def test_a_config_map_of_another_owner_is_neither_written_nor_shortened(
    references: list[dict[str, Any]], meanwhile: bool
) -> None:
    theirs = {
        "metadata": {"name": "hj-failed-logs", "namespace": "ns", "ownerReferences": references},
        "data": {"notes": "x" * 600_000},
    }
    store = Store({"hj-t-0-worker-1": lines("mine")})
    setattr(store, "made_meanwhile" if meanwhile else "stored", {"hj-failed-logs": theirs})
    before = deepcopy(theirs)
    with pytest.raises(ForeignObjectError) as refused:
        await FailedLogs(store, store, limit=99).keep("ns/hj", OWNER, JOB, FAILURE)  # type: ignore[arg-type]
    assert store.stored == {"hj-failed-logs": before}
    assert str(refused.value) == (
        "ConfigMap ns/hj-failed-logs exists and does not belong to this HyperJob: the logs of"
        " failed containers are not kept; delete the ConfigMap, or give it another name"
    )


async def test_a_log_that_is_gone_is_an_error_and_stores_nothing() -> None:
    store = Store({})
    with pytest.raises(KubeError):
        await FailedLogs(store, store, limit=99).keep("ns/hj", OWNER, JOB, FAILURE)  # type: ignore[arg-type]
    assert not store.stored
