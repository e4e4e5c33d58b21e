"""Arithmetic of CEL: integers that overflow, times, joined texts and lists.

Pure. Mixed kinds of numbers have no meaning, as in cel-go.
"""

from datetime import datetime, timedelta

from hyperjob_sandbox.apiserver.cel.functions import CelError, bounded, overload
from hyperjob_sandbox.apiserver.cel.syntax import UInt
from hyperjob_sandbox.apiserver.jsonvalue import Json


def _number(value: int, *, unsigned: bool) -> int:
    if not unsigned:
        return bounded(value)
    if not 0 <= value < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def _integers(a: Json, b: Json) -> bool:
    kinds = (type(a), type(b))
    return kinds in ((int, int), (UInt, UInt))


def add(a: Json, b: Json) -> Json:
    """Add numbers and times; join texts and lists."""
    if _integers(a, b):
        return _number(int(a) + int(b), unsigned=isinstance(a, UInt))
    if type(a) is type(b) and isinstance(a, float | str | bytes | list | timedelta):
        return a + b
    if isinstance(a, datetime) and isinstance(b, timedelta):
        return a + b
    if isinstance(a, timedelta) and isinstance(b, datetime):
        return b + a
    raise overload()


def subtract(a: Json, b: Json) -> Json:
    """Subtract numbers and times."""
    if _integers(a, b):
        return _number(int(a) - int(b), unsigned=isinstance(a, UInt))
    if type(a) is type(b) and isinstance(a, float | timedelta | datetime):
        return a - b
    if isinstance(a, datetime) and isinstance(b, timedelta):
        return a - b
    raise overload()


def multiply(a: Json, b: Json) -> Json:
    """Multiply numbers of one kind."""
    if _integers(a, b):
        return _number(int(a) * int(b), unsigned=isinstance(a, UInt))
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    raise overload()


def divide(a: Json, b: Json) -> Json:
    """Divide numbers of one kind; integers towards zero."""
    if _integers(a, b):
        if b == 0:
            raise CelError("division by zero")
        quotient = abs(int(a)) // abs(int(b))
        return _number(quotient if (a < 0) == (b < 0) else -quotient, unsigned=isinstance(a, UInt))
    if isinstance(a, float) and isinstance(b, float):
        if b == 0:
            return float("nan") if a == 0 or a != a else float("inf") * (1 if a > 0 else -1)
        return a / b
    raise overload()


def modulo(a: Json, b: Json) -> Json:
    """Return the rest of an integer division, which has the sign of the dividend."""
    if not _integers(a, b):
        raise overload()
    if b == 0:
        raise CelError("modulus by zero")
    rest = abs(int(a)) % abs(int(b))
    return _number(rest if a >= 0 else -rest, unsigned=isinstance(a, UInt))


def negate(a: Json) -> Json:
    """Return the opposite number."""
    if type(a) is int:
        return bounded(-a)
    if isinstance(a, float):
        return -a
    raise overload()
