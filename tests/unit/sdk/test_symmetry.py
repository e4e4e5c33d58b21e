"""The SDK without asyncio has all of the SDK for asyncio; `tests/tools/sdktypes.py` has types."""

import inspect
from typing import Any

import pytest

from hyperjob.sdk import AsyncClient, AsyncJob, Client, Job

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
