"""Kubernetes protobuf bodies to objects, for the built-in kinds that clients send in that form.

Nothing is lost in silence: a message or field that is not known here refuses the body (415), so the
client can be told to send JSON.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.transport.protomessages import MESSAGES

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 32
_INT64 = 1 << 63


class _MalformedError(Exception):
    """Bytes that are no protobuf message."""


def decode(body: bytes) -> Object:
    """Decode an enveloped object; raise ApiError 400 or 415."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("the protobuf body has no Kubernetes envelope")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        names = dict(_fields(_bytes(envelope.get(1, b""))))
        version = _bytes(names.get(1, b"")).decode()
        kind = _bytes(names.get(2, b"")).decode()
        raw = _bytes(envelope.get(2, b""))
        message = "DeleteOptions" if kind == "DeleteOptions" else f"{version}/{kind}"
        if message not in MESSAGES:
            raise errors.unsupported_media_type(("application/json", "application/yaml"))
        decoded = _message(raw, message, 0)
    except (_MalformedError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the protobuf body cannot be decoded: {error}") from None
    return {"kind": kind, "apiVersion": version, **decoded}


def _message(data: bytes, name: str, depth: int) -> Object:
    if depth > _MAX_DEPTH:
        raise _MalformedError("too many levels")
    known = MESSAGES[name]
    result: Object = {}
    for number, value in _fields(data):
        if number not in known:
            if value in (0, b""):
                continue  # an unset field that the encoder writes anyway
            raise errors.unsupported_media_type(("application/json", "application/yaml"))
        field, kind = known[number]
        if kind.startswith("["):
            result.setdefault(field, []).append(_value(value, kind[1:-1], depth))
        elif kind.startswith("{"):
            entry = dict(_fields(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            result.setdefault(field, {})[key] = _value(entry.get(2, b""), kind[1:-1], depth)
        else:
            decoded = _value(value, kind.removesuffix("!"), depth)
            if kind.endswith("!") or decoded not in (None, "", 0, False, {}):
                result[field] = decoded
    return result


def _value(value: int | bytes, kind: str, depth: int) -> Json:
    match kind:
        case "int":
            number = _int(value)
            return number - (1 << 64) if number >= _INT64 else number
        case "bool":
            return bool(_int(value))
        case "":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "Time" | "MicroTime":
            return _time(dict(_fields(_bytes(value))), micro=kind == "MicroTime")
        case "Quantity":
            return _bytes(dict(_fields(_bytes(value))).get(1, b"")).decode()
        case "IntOrString":
            parts = dict(_fields(_bytes(value)))
            if _int(parts.get(1, 0)):
                return _bytes(parts.get(3, b"")).decode()
            return _value(parts.get(2, 0), "int", depth)
        case "FieldsV1":
            raw = _bytes(dict(_fields(_bytes(value))).get(1, b""))
            return orjson.loads(raw) if raw else {}
        case _:
            return _message(_bytes(value), kind, depth + 1)


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str | None:
    if not parts:
        return None
    moment = datetime.fromtimestamp(_value(parts.get(1, 0), "int", 0), UTC)
    if micro:
        moment = moment.replace(microsecond=_int(parts.get(2, 0)) // 1000)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message as they come: varints as numbers, the rest as bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            length, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            length = struct.calcsize("<q" if wire == _FIXED64 else "<i")
        else:
            raise _MalformedError(f"wire type {wire}")
        if position + length > len(data):
            raise _MalformedError("truncated")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            break
    raise _MalformedError("bad number")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise _MalformedError("a number where bytes belong")


def _int(value: int | bytes) -> int:
    if isinstance(value, int):
        return value
    raise _MalformedError("bytes where a number belongs")
