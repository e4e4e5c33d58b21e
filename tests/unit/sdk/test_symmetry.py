"""The SDK without asyncio has all of the SDK for asyncio, with its parameters, docs and types."""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from hyperjob.client.summary import Summary
from hyperjob.client.why.evidence import Explanation
from hyperjob.sdk import AsyncClient, AsyncJob, Client, Job, LogLine

PAIRS = [(AsyncClient, Client), (AsyncJob, Job)]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


METHODS = [
    (first, second, name)
    for first, second in PAIRS
    for name in sorted(public(first))
    if callable(getattr(first, name))
]


def test_both_have_the_same_members() -> None:
    assert public(AsyncJob) == public(Job)
    assert public(AsyncClient) - public(Client) == {"kube"}, "for requests of an event loop"
    assert public(Client) - public(AsyncClient) == {"close"}


@pytest.mark.parametrize(("first", "second", "name"), METHODS)
def test_a_method_has_the_parameters_and_the_docstring_of_its_pair(
    first: Any, second: Any, name: str
) -> None:
    one, other = getattr(first, name), getattr(second, name)
    assert inspect.signature(one).parameters == inspect.signature(other).parameters
    assert inspect.getdoc(one) == inspect.getdoc(other)
    assert not inspect.iscoroutinefunction(other)
    assert not inspect.isasyncgenfunction(other)
    assert "Async" not in f"{other.__qualname__} {inspect.signature(other).return_annotation}"


def test_the_clients_have_the_same_parameters() -> None:
    assert inspect.signature(AsyncClient) == inspect.signature(Client)


if TYPE_CHECKING:

    def users_see_types(client: Client, job: Job) -> None:
        """Be read by mypy, which knows the results of all methods and refuses wrong arguments."""
        assert_type(client.get("llm", namespace="ml"), Job)
        assert_type(client.list(queue="research"), list[Job])
        assert_type(client.train("train.py", clusters=2, replicas=4), Job)
        assert_type(Client.local(clusters=2), Client)
        assert_type(job.wait("Running", timeout=60), Summary)
        assert_type(job.logs(follow=True), Iterator[LogLine])
        assert_type(job.restart("trainer-0", wait=False), Summary)
        assert_type(job.why(), Explanation)
        client.train("train.py", clusters="two")  # type: ignore[arg-type]
        job.wait(state=1)  # type: ignore[arg-type]
        job.migrate(clusters="east")  # type: ignore[call-arg]
