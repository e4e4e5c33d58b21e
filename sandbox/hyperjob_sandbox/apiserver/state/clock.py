"""The present, as objects carry it: to the second."""

import time
from datetime import UTC, datetime
from functools import lru_cache


def wire_now() -> str:
    """Give the present as metav1.Time prints it."""
    return _print_second(int(time.time()))


@lru_cache(maxsize=2)
def _print_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
