"""The state of objects as plain values, for comparisons."""

import asyncio
import itertools
import types
from collections import Counter, deque
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

_PLAIN = (str, bytes, int, float, bool, type(None), date, timedelta, Enum, Path)
_CODE = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, type,
    itertools.count, asyncio.Future, asyncio.Event, asyncio.Semaphore, asyncio.Queue,
    asyncio.AbstractEventLoop, asyncio.TimerHandle,
)  # fmt: skip


def remembered(root: Any, *, but: tuple[type, ...] = ()) -> Any:
    """Return the state of an object and of all reachable objects, except of types in `but`."""
    known: dict[int, tuple[Any, Any]] = {}

    def look(value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, (*_CODE, *but)):
            return type(value).__name__
        if id(value) not in known:
            known[id(value)] = value, "a cycle"
            known[id(value)] = value, inside(value)
        return known[id(value)][1]

    def inside(value: Any) -> Any:
        if isinstance(value, dict | Counter | WeakKeyDictionary | WeakValueDictionary):
            return sorted(
                ((repr(look(key)), look(item)) for key, item in value.items()),
                key=lambda pair: pair[0],
            )
        if isinstance(value, set | frozenset):
            return sorted(repr(look(item)) for item in value)
        if isinstance(value, list | tuple | deque):
            return [look(item) for item in value]
        names = [*getattr(value, "__dict__", ())]
        for kind in type(value).__mro__:
            slots = getattr(kind, "__slots__", ())
            names += [slots] if isinstance(slots, str) else slots
        return {
            "type": type(value).__name__,
            **{
                name: look(getattr(value, name))
                for name in sorted(names)
                if hasattr(value, name) and not name.startswith("__")
            },
        }

    return look(root)


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Return the paths that differ between two results of `remembered`."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return [
            found
            for name in before
            for found in differences(before[name], after[name], f"{path}.{name}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            found
            for position, pair in enumerate(zip(before, after, strict=True))
            for found in differences(*pair, f"{path}[{position}]")
        ]
    return [] if before == after else [f"{path}: {before!r} -> {after!r}"]
