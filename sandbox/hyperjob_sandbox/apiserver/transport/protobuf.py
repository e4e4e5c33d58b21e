"""Kubernetes protobuf bodies to objects, for the built-in kinds that kubectl makes in that form.

A body with an unknown message or field is refused (415): nothing of it is lost in silence.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.shipped import shipped

_MAGIC = b"k8s\x00"
_INT64 = 1 << 63
MESSAGES: dict[str, dict[int, str]] = shipped(__package__, "protobuf.yaml")
"""Fields by number, for every message: a kind is found as `group/version/Kind`."""


def decode(body: bytes) -> Object:
    """Decode an enveloped object; raise ApiError 400 or 415."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("the protobuf body has no Kubernetes envelope")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        names = dict(_fields(envelope[1]))
        version, kind = names[1].decode(), names[2].decode()
        message = "DeleteOptions" if kind == "DeleteOptions" else f"{version}/{kind}"
        if message not in MESSAGES:
            raise _unknown()
        decoded = _message(envelope.get(2, b""), message)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise errors.bad_request(f"the protobuf body cannot be decoded: {error}") from None
    return {"kind": kind, "apiVersion": version, **decoded}


def _unknown() -> errors.ApiError:
    return errors.unsupported_media_type(("application/json", "application/yaml"))


def _message(data: bytes, name: str) -> Object:
    known = MESSAGES[name]
    result: Object = {}
    for number, value in _fields(data):
        if number not in known:
            if value in (0, b""):
                continue  # an unset field that the encoder writes anyway
            raise _unknown()
        field, _, kind = known[number].partition(" ")
        if kind.startswith("["):
            result.setdefault(field, []).append(_value(value, kind[1:-1]))
        elif kind.startswith("{"):
            entry = dict(_fields(value))
            key = entry.get(1, b"").decode()
            result.setdefault(field, {})[key] = _value(entry.get(2, b""), kind[1:-1])
        else:
            decoded = _value(value, kind.removesuffix("!"))
            if kind.endswith("!") or decoded not in (None, "", 0, False, {}):
                result[field] = decoded
    return result


def _value(value: Json, kind: str) -> Json:
    match kind:
        case "int":
            return value - (1 << 64) if value >= _INT64 else value
        case "bool":
            return bool(value)
        case "":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "Time":
            seconds = dict(_fields(value)).get(1)
            moment = datetime.fromtimestamp(seconds, UTC) if seconds else None
            return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "Quantity":
            return dict(_fields(value)).get(1, b"").decode()
        case "IntOrString":
            parts = dict(_fields(value))
            return parts[3].decode() if parts.get(1) else _value(parts.get(2, 0), "int")
        case _:
            return _message(value, kind)


def _fields(data: bytes) -> Iterator[tuple[int, Json]]:
    """Yield the fields of a message as they come: varints as numbers, the rest as bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise ValueError("truncated")
            yield number, data[position : position + length]
            position += length
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return result, position
