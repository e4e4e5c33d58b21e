"""Tests in virtual time."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from hyperjob_core.virtualtime import run

P = ParamSpec("P")


def virtually(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a coroutine function in virtual time."""

    @functools.wraps(test)
    def running(*given: P.args, **named: P.kwargs) -> None:
        run(test(*given, **named))

    return running
