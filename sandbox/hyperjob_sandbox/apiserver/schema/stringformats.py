"""String formats that the API server checks in custom resources; all others are only descriptions.

Pure. Formats are compared without their dashes, as in `date-time` and `datetime`.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

from hyperjob.api.duration import nanoseconds
from hyperjob.api.formats import dns1123_label, dns1123_subdomain

_DATE_TIME = re.compile(
    r"([0-9]{2,4})-([0-9]{2})-([0-9]{2})[tT ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,][0-9]+)?(?:[zZ]|[+-]([0-9]{2}):([0-9]{2}))"
)
_WORD_DURATION = re.compile(
    r"(?:[0-9]+(?:\.[0-9]+)?\s*(?:ns|nanos?|nanoseconds?|µs|us|micros?|microseconds?|ms|millis?"
    r"|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\s*)+"
)
_HEX = "[0-9a-fA-F]"
_HOST_LABEL = (
    r"[a-zA-Z0-9\u0080-\uffff](?:[-a-zA-Z0-9_\u0080-\uffff]{0,61}[a-zA-Z0-9\u0080-\uffff])?"
)
_HOSTNAME = re.compile(rf"{_HOST_LABEL}(?:\.{_HOST_LABEL})*")
_MAC = re.compile(
    rf"{_HEX}{{2}}([:-])(?:{_HEX}{{2}}\1){{4}}{_HEX}{{2}}"
    rf"|{_HEX}{{2}}([:-])(?:{_HEX}{{2}}\2){{6}}{_HEX}{{2}}"
    rf"|(?:{_HEX}{{4}}\.){{2}}{_HEX}{{4}}|(?:{_HEX}{{4}}\.){{3}}{_HEX}{{4}}"
)
_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: compiled.fullmatch(value) is not None


def _uuid(third: str = "[0-9a-f]", fourth: str = "[0-9a-f]") -> Callable[[str], bool]:
    versioned = f"{third}[0-9a-f]{{3}}-?{fourth}[0-9a-f]{{3}}"
    return _matches(f"(?i:[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{versioned}-?[0-9a-f]{{12}})")


def _date_time(value: str) -> bool:
    found = _DATE_TIME.fullmatch(value)
    if found is None or not _date("-".join(found.group(1, 2, 3))):
        return False
    hour, minute, second = map(int, found.group(4, 5, 6))
    return hour < 24 and minute < 60 and second < 60


def _date(value: str) -> bool:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is None:
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _duration(value: str) -> bool:
    try:
        nanoseconds(value)
    except ValueError:
        return bool(_WORD_DURATION.fullmatch(value.strip()))
    return True


def _byte(value: str) -> bool:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _address(value: str, *, version: int) -> bool:
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return False
    mapped = isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
    return "%" not in value and (found.version == version or (version == 4 and mapped))


def _cidr(value: str) -> bool:
    if re.fullmatch(r"[^/]+/[0-9]+", value) is None:
        return False
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True


def _uri(value: str) -> bool:
    if not value or re.search(r"[\x00-\x20\x7f]", value):
        return False
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    return value.startswith("/") or bool(re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", value) and parts)


def _email(value: str) -> bool:
    return "@" in parseaddr(value)[1]


def _hostname(value: str) -> bool:
    return len(value) <= 255 and _HOSTNAME.fullmatch(value.removesuffix(".")) is not None


def _isbn10(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    total = sum((i + 1) * int(d) for i, d in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _isbn13(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


def _credit_card(value: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", value)
    if _CREDIT_CARD.fullmatch(digits) is None:
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _rgb_color(value: str) -> bool:
    found = re.fullmatch(r"rgb\(\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)\s*\)", value)
    return found is not None and all(int(part) < 256 for part in found.groups())


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": lambda value: _address(value, version=4),
    "ipv6": lambda value: _address(value, version=6),
    "cidr": _cidr,
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda value: _isbn10(value) or _isbn13(value),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matches(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _rgb_color,
    "byte": _byte,
    "password": lambda _: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
    "k8sshortname": lambda value: not dns1123_label(value),
    "k8slongname": lambda value: not dns1123_subdomain(value),
}


def string_format(name: str) -> Callable[[str], bool] | None:
    """Return the check of a string format, or None where the API server checks nothing."""
    return _CHECKS.get(name.replace("-", ""))


def checked_format(name: str, types: tuple[str, ...]) -> str:
    """Return a schema's format, or nothing where it means nothing for the schema's type."""
    if types in ((), ("string",)):
        return name if string_format(name) else ""
    if types == ("integer",):
        return name if name in ("int32", "int64") else ""
    if types == ("number",):
        return name if name in ("float", "double") else ""
    return ""
