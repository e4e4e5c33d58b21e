"""Protobuf bodies: what clients send in that form is read as the same object in JSON."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.errors import ApiError
from hyperjob_sandbox.apiserver.transport.protobuf import MESSAGES, decode


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(key: str, value: str | bytes) -> bytes:
    return field(1, key) + field(2, value)


def envelope(version: str, kind: str, parts: Iterable[bytes]) -> bytes:
    type_meta = field(1, version) + field(2, kind)
    return b"k8s\x00" + field(1, type_meta) + field(2, b"".join(parts))


def test_a_zero_is_kept_only_where_it_means_something() -> None:
    spec = field(1, 0) + field(5, 0) + field(7, 0)
    body = envelope("apps/v1", "Deployment", [field(2, spec)])
    assert decode(body)["spec"] == {"replicas": 0}
    options = field(1, 0) + field(4, "Background") + field(2, field(1, "uid-1"))
    found = decode(envelope("v1", "DeleteOptions", [options]))
    assert found["gracePeriodSeconds"] == 0
    assert found["preconditions"] == {"uid": "uid-1"}


def test_times_and_numbers() -> None:
    meta = field(1, "a") + field(8, field(1, 1767225600))
    named = decode(envelope("v1", "Namespace", [field(1, meta)]))
    assert named["metadata"] == {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
    budget = envelope("policy/v1", "PodDisruptionBudget", [field(2, field(1, field(2, 3)))])
    assert decode(budget)["spec"] == {"minAvailable": 3}
    priority = envelope("scheduling.k8s.io/v1", "PriorityClass", [field(2, -5)])
    assert decode(priority)["value"] == -5


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{}", 400),
        (b"k8s\x00\xff", 400),
        (envelope("v1", "Unheard", [b""]), 415),
        (envelope("v1", "Secret", [field(99, "new")]), 415),
        (envelope("v1", "Secret", [field(1, "\xff")]), 400),
        (envelope("v1", "Secret", [varint(1 << 3 | 7)]), 400),
        (envelope("v1", "Secret", [field(1, b"x" * 3)[:-1]]), 400),
    ],
)
def test_what_cannot_be_read_is_refused_not_lost(body: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert refused.value.code == code


def test_an_unknown_field_that_is_unset_is_no_reason_to_refuse() -> None:
    body = envelope("v1", "Secret", [field(3, "Opaque"), field(99, 0), field(98, b"")])
    assert decode(body)["type"] == "Opaque"


@given(st.binary(max_size=60))
def test_any_bytes_give_an_object_or_a_refusal(data: bytes) -> None:
    for body in (b"k8s\x00" + data, envelope("apps/v1", "Deployment", [data])):
        code = 200
        try:
            found = decode(body)
        except ApiError as refused:
            code = refused.code
        else:
            assert isinstance(found, dict)
        assert code in (200, 400, 415)


@given(
    st.fixed_dictionaries(
        {
            "name": st.text(min_size=1, max_size=10),
            "labels": st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=3),
            "data": st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=3),
        }
    )
)
def test_a_config_map_comes_back_as_it_was(given_: dict[str, Any]) -> None:
    meta = field(1, given_["name"])
    meta += b"".join(field(11, entry(k, v)) for k, v in given_["labels"].items())
    data = b"".join(field(2, entry(k, v)) for k, v in given_["data"].items())
    found = decode(envelope("v1", "ConfigMap", [field(1, meta), data]))
    assert found["metadata"] == {"name": given_["name"], "labels": given_["labels"]}
    assert found["data"] == given_["data"]


def test_every_message_that_is_named_is_known() -> None:
    scalars = {"", "int", "bool", "bytes", "Time", "Quantity", "IntOrString"}
    for message, fields in MESSAGES.items():
        for text in fields.values():
            name, _, kind = text.partition(" ")
            inner = kind.strip("[]{}!")
            assert inner in scalars or inner in MESSAGES, (message, name)
