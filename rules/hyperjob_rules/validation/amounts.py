"""Parsing of resource quantities, with a memo: many containers have few different quantities."""

from functools import lru_cache
from typing import Final

from hyperjob_core.api.quantity import Quantity

MAX_LENGTH: Final = 32
MAX_KNOWN: Final = 4096


def parse(value: str | int) -> Quantity:
    """Parse a quantity; raises ValueError with Kubernetes' message."""
    text = value if isinstance(value, str) else str(value)
    return _known(text) if len(text) <= MAX_LENGTH else Quantity.parse(text)


def try_parse(value: str | int) -> Quantity:
    """Parse a quantity; a malformed one is 0 here and is reported by the check of its field."""
    try:
        return parse(value)
    except ValueError:
        return Quantity()


@lru_cache(maxsize=MAX_KNOWN)
def _known(text: str) -> Quantity:
    return Quantity.parse(text)
