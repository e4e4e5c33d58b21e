"""Amounts of resources, read once however often they are written.

A manifest has few different amounts and many containers, and so have all manifests of a site.
"""

from functools import lru_cache
from typing import Final

from hyperjob.api.quantity import Quantity

MAX_LENGTH: Final = 32
MAX_KNOWN: Final = 4096


def parse(value: str | int) -> Quantity:
    """Read an amount; raises ValueError with Kubernetes' text."""
    text = value if isinstance(value, str) else str(value)
    return _known(text) if len(text) <= MAX_LENGTH else Quantity.parse(text)


def try_parse(value: str | int) -> Quantity:
    """Read an amount; a malformed amount counts as 0, and is named where it is judged."""
    try:
        return parse(value)
    except ValueError:
        return Quantity()


@lru_cache(maxsize=MAX_KNOWN)
def _known(text: str) -> Quantity:
    return Quantity.parse(text)
