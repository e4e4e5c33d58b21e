"""The SDK without asyncio on an API server in memory: results, iterators, Ctrl-C and the end."""

import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hyperjob.sdk import errors
from hyperjob.sdk.sync import Client, Job, _Loop
from hyperjob_core.kube.client import Kube
from tests.unit.cli.fleet import Fleet
from tests.unit.cli.objects import hyperjob, sub_job


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    server = Fleet()
    server.hyperjob(hyperjob("Running", sub_job(phase="Running", cluster="east")))
    server.hyperjob(hyperjob("Completed"), "done")

    server.serve(monkeypatch)
    return server


@pytest.fixture
def client(fleet: Fleet) -> Iterator[Client]:
    with Client() as found:
        yield found


def test_results_are_those_without_asyncio(client: Client, fleet: Fleet) -> None:
    assert client.namespace == "ml"
    job = client.get("llm")
    assert isinstance(job, Job)
    assert [type(each) for each in client.list()] == [Job, Job]
    made = client.submit({"metadata": {"name": "new"}, "spec": {}})
    assert isinstance(made, Job)
    assert made.name == "new"
    assert job.wait("Running").phase == "Running"
    job.suspend(wait=False)
    assert fleet.stored()["spec"]["suspend"] is True
    assert job.raw["spec"]["suspend"] is True, "both views have the object that was read"
    with pytest.raises(errors.NotFoundError):
        client.get("none")
    with pytest.raises(errors.NotReachedError):
        job.wait(timeout=0.05)


def test_an_iterator_ends_with_its_source_and_closes_it_when_it_is_left(client: Client) -> None:
    assert [each.phase for each in client.get("done").watch()] == ["Completed"]
    watching = client.get("llm").watch()
    assert next(watching).phase == "Running"
    watching.close()
    with pytest.raises(errors.NotFoundError):
        client.get("none")


def test_a_closed_client_says_so_and_its_thread_has_ended(fleet: Fleet) -> None:
    before = threading.active_count()
    client = Client()
    job = client.get("llm")
    watching = job.watch()
    next(watching)
    assert threading.active_count() == before + 1
    client.close()
    client.close()
    assert threading.active_count() == before
    with pytest.raises(errors.HyperJobError, match="the client is closed: open another one with"):
        job.refresh()
    watching.close()


def test_a_client_that_cannot_open_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connect(**_more: Any) -> AsyncIterator[Kube]:
        raise ValueError("no kubeconfig")
        yield

    monkeypatch.setattr(Kube, "connect", connect)
    before = threading.active_count()
    with pytest.raises(ValueError, match="no kubeconfig"):
        Client()
    assert threading.active_count() == before


class Interrupted:
    """A result for which Ctrl-C comes while it is awaited."""

    def __init__(self, result: Any) -> None:
        self.results = [result]
        self.awaited: list[float | None] = []

    def result(self, timeout: float | None = None) -> Any:
        self.awaited.append(timeout)
        if len(self.awaited) == 1:
            raise KeyboardInterrupt
        return self.results[0].result(timeout)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> list[Interrupted]:
    """Interrupt the next call."""
    begin = _Loop.begin
    found: list[Interrupted] = []

    def begun(self: _Loop, work: Any) -> Any:
        result, cancel = begin(self, work)
        if found:
            return result, cancel
        found.append(Interrupted(result))
        return found[0], cancel

    monkeypatch.setattr(_Loop, "begin", begun)
    return found


def test_ctrl_c_cancels_the_call_waits_for_its_end_and_names_the_hyperjob(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    job = client.get("llm")
    found = request.getfixturevalue("interrupt")
    with pytest.raises(KeyboardInterrupt):
        job.wait("Completed")
    assert found[0].awaited == [None, 15.0]
    assert found[0].results[0].cancelled()
    assert capsys.readouterr().err == (
        "\nHyperJob ml/llm keeps running. To stop it: job.suspend() or job.delete(), or: kubectl"
        " delete hj llm -n ml\n"
    )
    assert job.refresh().phase == "Running", "the client goes on"


def test_ctrl_c_in_a_script_with_a_local_installation_ends_it_with_one_line(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    job = client.get("llm")
    client._loop.local = True
    monkeypatch.delattr(sys, "ps1", raising=False)
    others: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: others.append(error))
    request.getfixturevalue("interrupt")
    with pytest.raises(KeyboardInterrupt) as raised:
        job.wait("Completed")
    assert capsys.readouterr().err == "", "the HyperJob ends with the installation"
    sys.excepthook(KeyboardInterrupt, raised.value, None)
    assert capsys.readouterr().err == "Interrupted: the local installation ends.\n"
    other = KeyboardInterrupt()
    sys.excepthook(KeyboardInterrupt, other, None)
    assert [each[1] for each in others] == [other]


@pytest.mark.parametrize("local", [True, False])
def test_python_keeps_its_own_words_for_ctrl_c_where_a_person_types(
    client: Client, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client._loop.local = local
    if local:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    before = sys.excepthook
    client._loop.interrupted(KeyboardInterrupt())
    assert sys.excepthook is before
