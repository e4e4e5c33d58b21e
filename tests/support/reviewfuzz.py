"""Random mutations of recorded AdmissionReviews, of their JSON and of their bytes."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

# Values that are valid JSON and wrong in almost every field.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, 5e-324, -0.0),
    *(0.1, 1.5, "", " ", "a", "A_b", "-", "1", "0x10", "1e3", "1Gi", "-1", "1.5", "9" * 400, "NaN"),
    *(
        "a" * 300,
        "\x00",
        "\n",
        "\ud7ff",
        "💥",
        "default",
        "nvidia.com/gpu",
        "/",
        "..",
        "%s",
        "${x}",
    ),
    *([], {}, [[]], [{}], {"": ""}, [None], {"a": None}, ["a", "a"], {"name": "x"}, [1, "1", True]),
)
KEYS = (
    *("", "name", "spec", "metadata", "x" * 300, "a.b/c~d", "__class__", "💥", "replicas", "tasks"),
)


_MOST_REPEATED = 8 << 20


def mutated(rng: random.Random, bodies: Sequence[bytes]) -> bytes:
    """Return a mutated body: mostly of the object, sometimes of the text, sometimes of both."""
    body = rng.choice(bodies)
    if rng.random() < 0.8:
        review = orjson.loads(body)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
            rng.choice(DOCUMENT)(rng, review)
        body = _write(review) or _nest(rng, body)
    if rng.random() < 0.3:
        body = rng.choice(TEXT)(rng, body)
    return body


def _place(rng: random.Random, review: Any) -> tuple[Any, Any] | None:
    """Return a random container and a key in it, mostly deep in the object."""
    node = review
    request = review.get("request")
    if isinstance(request, dict) and rng.random() < 0.85:
        obj = request.get("object") or request.get("oldObject") or request
        node = obj.get("spec", obj) if isinstance(obj, dict) else request
    place = None
    for _ in range(rng.randint(1, 14)):
        if isinstance(node, dict) and node:
            key = rng.choice(list(node))
        elif isinstance(node, list) and node:
            key = rng.randrange(len(node))
        else:
            break
        place = (node, key)
        node = node[key]
    return place


def _replace(rng: random.Random, review: Any) -> None:
    if place := _place(rng, review):
        place[0][place[1]] = _copy(rng.choice(ODD))


def _remove(rng: random.Random, review: Any) -> None:
    if place := _place(rng, review):
        del place[0][place[1]]


def _nudge(rng: random.Random, review: Any) -> None:
    """Change a value within its type."""
    if place := _place(rng, review):
        value = place[0][place[1]]
        if isinstance(value, bool):
            place[0][place[1]] = not value
        elif isinstance(value, int):
            place[0][place[1]] = value + rng.choice((-2, -1, 1, 1000, 2**31))
        elif isinstance(value, str):
            cut = rng.randint(0, len(value))
            place[0][place[1]] = (
                value[:cut] + rng.choice(("", "-", ".", "=", "ü", value)) + value[cut:]
            )


def _repeat(rng: random.Random, review: Any) -> None:
    if (place := _place(rng, review)) and isinstance(place[0], list):
        written, times = _write(place[0][place[1]]), rng.choice((1, 2, 60))
        # A body is 7 MiB at most: repeated repetitions of large parts would fill the memory.
        if len(written) * times <= _MOST_REPEATED:
            place[0].extend([orjson.loads(written) if written else None] * times)


def _rename(rng: random.Random, review: Any) -> None:
    if (place := _place(rng, review)) and isinstance(place[0], dict):
        place[0][rng.choice(KEYS)] = place[0].pop(place[1])


def _graft(rng: random.Random, review: Any) -> None:
    """Copy a part of the object over another part."""
    one, other = _place(rng, review), _place(rng, review)
    if one and other:
        one[0][one[1]] = _copy(other[0][other[1]])


def _deepen(rng: random.Random, review: Any) -> None:
    if place := _place(rng, review):
        value = place[0][place[1]]
        for _ in range(rng.choice((1, 10, 100, 240))):
            value = [value] if rng.random() < 0.5 else {"a": value}
        place[0][place[1]] = value


def _widen(rng: random.Random, review: Any) -> None:
    if place := _place(rng, review):
        count = rng.choice((50, 500))
        place[0][place[1]] = (
            [_copy(rng.choice(ODD))] * count
            if rng.random() < 0.5
            else {f"k{number}": number for number in range(count)}
        )


def _copy(value: Any) -> Any:
    written = _write(value)
    return orjson.loads(written) if written else None


def _write(value: Any) -> bytes:
    """Return JSON; empty where mutations have nested it deeper than orjson supports."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return b""


def _truncate(rng: random.Random, body: bytes) -> bytes:
    return body[: rng.randrange(len(body) + 1)]


def _flip(rng: random.Random, body: bytes) -> bytes:
    torn = bytearray(body)
    for _ in range(rng.choice((1, 1, 3, 30))):
        if torn:
            torn[rng.randrange(len(torn))] = rng.randrange(256)
    return bytes(torn)


def _duplicate_key(rng: random.Random, body: bytes) -> bytes:
    keys = list(re.finditer(rb'"[a-zA-Z]{1,20}":', body))
    if not keys:
        return body
    key = rng.choice(keys)
    return body[: key.start()] + key.group() + b"null," + body[key.start() :]


def _huge_number(rng: random.Random, body: bytes) -> bytes:
    numbers = list(re.finditer(rb":\d+", body))
    if not numbers:
        return body
    number = rng.choice(numbers)
    huge = rng.choice((b"9" * 30, b"9" * 5000, b"1e400", b"-1e-999999", b"1E+308", b"0.1", b"-0"))
    return body[: number.start() + 1] + huge + body[number.end() :]


def _nest(rng: random.Random, body: bytes) -> bytes:
    depth = rng.choice((10, 250, 300, 5000))
    values = list(re.finditer(rb":(\d+|true|null)", body))
    if not values:
        return body
    value = rng.choice(values)
    closing = b"]" * depth if rng.random() < 0.8 else b""
    return body[: value.start() + 1] + b"[" * depth + closing + body[value.end() :]


def _space(rng: random.Random, body: bytes) -> bytes:
    return body.replace(b",", rng.choice((b", ", b",\n", b",\t ")), rng.randint(0, 50))


def _escape(rng: random.Random, body: bytes) -> bytes:
    escapes = (b'"\\ud800', b'"\\u0000', b'"\\u003c', b'"\\x', b'"\xff', b'"\xed\xa0\x80')
    return body.replace(b'"', rng.choice(escapes), rng.randint(1, 3))


def _append(rng: random.Random, body: bytes) -> bytes:
    return body + rng.choice((b"\n", b"{}", b"x", b"\x00", b"]", body))


def _instead(rng: random.Random, _body: bytes) -> bytes:
    return rng.choice((b"", b"null", b"[]", b"{}", b"0", b'"x"', b"\xef\xbb\xbf{}", b"\xff\xfe{"))


DOCUMENT: tuple[Callable[[random.Random, Any], None], ...] = (
    *(_replace, _replace, _replace, _remove, _nudge, _nudge, _repeat, _rename, _graft),
    *(_deepen, _widen),
)
TEXT: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_truncate, _flip, _flip, _duplicate_key, _huge_number, _nest, _space, _escape, _append),
    _instead,
)
