"""Everything an expression can call by name: CEL's own functions and those that Kubernetes adds.

Pure. Each takes its receiver first, whether it was called as a method or not.
"""

import base64
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hyperjob.api.quantity import Quantity
from hyperjob_sandbox.apiserver.cel.functions import (
    NONE,
    CelError,
    Optional,
    Type,
    bounded,
    contains,
    duration,
    equal,
    less,
    overload,
    pattern,
    size,
    texts,
    timestamp,
    to_bool,
    to_double,
    to_int,
    to_string,
    to_uint,
    type_name,
)
from hyperjob_sandbox.apiserver.jsonvalue import Json


def _text_check(check: Callable[[str, str], bool]) -> Callable[[Json, Json], bool]:
    def run(value: Json, part: Json) -> bool:
        texts(value, part)
        return check(value, part)

    return run


def _find(value: Json, regex: Json) -> str:
    texts(value)
    found = pattern(regex).search(value)
    return found[0] if found else ""


def _find_all(value: Json, regex: Json, limit: int = -1) -> list[str]:
    texts(value)
    found = [match[0] for match in pattern(regex).finditer(value)]
    return found if limit < 0 else found[:limit]


def _index_of(where: Json, what: Json, start: int = 0) -> int:
    if isinstance(where, str) and isinstance(what, str):
        if not 0 <= start <= len(where):
            raise CelError(f"index out of range: {start}")
        return where.find(what, start)
    if isinstance(where, list):
        return next((i for i, item in enumerate(where) if equal(item, what)), -1)
    raise overload()


def _last_index_of(where: Json, what: Json, end: int | None = None) -> int:
    if isinstance(where, str) and isinstance(what, str):
        return where.rfind(what) if end is None else where.rfind(what, 0, end + len(what))
    if isinstance(where, list):
        places = [i for i, item in enumerate(where) if equal(item, what)]
        return places[-1] if places else -1
    raise overload()


def _char_at(text: Json, at: int) -> str:
    texts(text)
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return str(text[at : at + 1])


def _substring(text: Json, start: int, end: int | None = None) -> str:
    texts(text)
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise CelError(f"index out of range: {start if start > len(text) else stop}")
    return str(text[start:stop])


def _replace(text: Json, old: Json, new: Json, limit: int = -1) -> str:
    texts(text, old, new)
    return str(text.replace(old, new, limit))


def _split(text: Json, separator: Json, limit: int = -1) -> list[str]:
    texts(text, separator)
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return list(text.split(separator, limit - 1 if limit > 0 else -1))


def _join(items: Json, separator: str = "") -> str:
    if not isinstance(items, list):
        raise overload()
    texts(*items, separator)
    return separator.join(items)


def _change_case(text: Json, *, upper: bool) -> str:
    texts(text)
    change = str.upper if upper else str.lower
    return "".join(change(char) if char.isascii() else char for char in text)


def _trim(text: Json) -> str:
    texts(text)
    return str(text.strip())


def _reverse(value: Json) -> Json:
    if not isinstance(value, str | list):
        raise overload()
    return value[::-1]


def _items(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise overload()
    return value


def _is_sorted(value: Json) -> bool:
    items = _items(value)
    return not any(less(after, before) for before, after in pairwise(items))


def _sum(value: Json) -> Json:
    items = _items(value)
    total: Json = type(items[0])() if items else 0
    for item in items:
        if type(item) is not type(total) or isinstance(item, bool | str):
            raise overload()
        total = total + item
    return total if isinstance(total, float | timedelta) else type(total)(bounded(total))


def _extreme(*, largest: bool) -> Callable[[Json], Json]:
    def run(value: Json) -> Json:
        items = _items(value)
        if not items:
            raise CelError(
                "min called on empty list" if not largest else "max called on empty list"
            )
        best = items[0]
        for item in items[1:]:
            if less(best, item) if largest else less(item, best):
                best = item
        return best

    return run


def _sets_contains(first: Json, second: Json) -> bool:
    return all(contains(_items(first), item) for item in _items(second))


def _sets_equivalent(first: Json, second: Json) -> bool:
    return _sets_contains(first, second) and _sets_contains(second, first)


def _sets_intersects(first: Json, second: Json) -> bool:
    return any(contains(_items(first), item) for item in _items(second))


def _zone(name: str) -> timezone | ZoneInfo:
    found = re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", name)
    if found:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CelError(f"unknown time zone {name}") from error


def _getter(
    of_time: Callable[[datetime], int], of_duration: Callable[[timedelta], int] | None = None
) -> Callable[..., int]:
    def run(value: Json, zone: str = "UTC") -> int:
        if isinstance(value, datetime):
            return of_time(value.astimezone(_zone(zone)))
        if isinstance(value, timedelta) and of_duration is not None:
            return of_duration(value)
        raise overload()

    return run


def _quantity(text: Json) -> Quantity:
    texts(text)
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise CelError(str(error)) from error


def _is_quantity(text: Json) -> bool:
    try:
        _quantity(text)
    except CelError:
        return False
    return True


def _compare(a: Json, b: Json) -> int:
    if not isinstance(a, Quantity) or not isinstance(b, Quantity):
        raise overload()
    return (a.value > b.value) - (a.value < b.value)


def _quantity_sum(a: Json, b: Json, *, sign: int) -> Quantity:
    other = Quantity.parse(b) if isinstance(b, int) and not isinstance(b, bool) else b
    if not isinstance(a, Quantity) or not isinstance(other, Quantity):
        raise overload()
    return a + other * sign


def _as_quantity(value: Json) -> Quantity:
    if not isinstance(value, Quantity):
        raise overload()
    return value


def _optional(value: Json) -> Optional:
    if not isinstance(value, Optional):
        raise overload()
    return value


def _optional_value(value: Json) -> Json:
    found = _optional(value)
    if not found.present:
        raise CelError("optional.none() dereference")
    return found.value


def _some(value: Json) -> Optional:
    return Optional(value)


def _encode(value: Json) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()


FUNCTIONS: Final[dict[str, Callable[..., Json]]] = {
    "size": size,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bool": to_bool,
    "bytes": lambda value: value.encode() if isinstance(value, str) else value,
    "type": lambda value: Type(type_name(value)),
    "dyn": lambda value: value,
    "timestamp": timestamp,
    "duration": duration,
    "contains": _text_check(lambda value, part: part in value),
    "startsWith": _text_check(lambda value, part: value.startswith(part)),
    "endsWith": _text_check(lambda value, part: value.endswith(part)),
    "matches": _text_check(lambda value, regex: pattern(regex).search(value) is not None),
    "find": _find,
    "findAll": _find_all,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "charAt": _char_at,
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "lowerAscii": lambda text: _change_case(text, upper=False),
    "upperAscii": lambda text: _change_case(text, upper=True),
    "trim": _trim,
    "reverse": _reverse,
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme(largest=False),
    "max": _extreme(largest=True),
    "sets.contains": _sets_contains,
    "sets.equivalent": _sets_equivalent,
    "sets.intersects": _sets_intersects,
    "base64.encode": _encode,
    "getFullYear": _getter(lambda t: t.year),
    "getMonth": _getter(lambda t: t.month - 1),
    "getDate": _getter(lambda t: t.day),
    "getDayOfMonth": _getter(lambda t: t.day - 1),
    "getDayOfWeek": _getter(lambda t: (t.weekday() + 1) % 7),
    "getDayOfYear": _getter(lambda t: t.timetuple().tm_yday - 1),
    "getHours": _getter(lambda t: t.hour, lambda d: int(d.total_seconds() // 3600)),
    "getMinutes": _getter(lambda t: t.minute, lambda d: int(d.total_seconds() // 60)),
    "getSeconds": _getter(lambda t: t.second, lambda d: int(d.total_seconds())),
    "getMilliseconds": _getter(
        lambda t: t.microsecond // 1000, lambda d: int(d.total_seconds() * 1000)
    ),
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "isGreaterThan": lambda a, b: _compare(a, b) > 0,
    "isLessThan": lambda a, b: _compare(a, b) < 0,
    "compareTo": _compare,
    "add": lambda a, b: _quantity_sum(a, b, sign=1),
    "sub": lambda a, b: _quantity_sum(a, b, sign=-1),
    "isInteger": lambda value: _as_quantity(value).is_integer,
    "asInteger": lambda value: int(_as_quantity(value).value),
    "asApproximateFloat": lambda value: float(_as_quantity(value).value),
    "optional.of": _some,
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": lambda value: Optional(value) if value else NONE,
    "hasValue": lambda value: _optional(value).present,
    "value": _optional_value,
    "orValue": lambda value, other: value.value if _optional(value).present else other,
    "or": lambda value, other: value if _optional(value).present else _optional(other),
}
