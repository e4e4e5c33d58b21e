"""Values of any type of the controller out of a seed, of which most are near a limit."""

import collections.abc
import enum
import functools
import random
import types
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.resources import parse_resources
from tests.unit.controller.builders import GPU, NOW
from tests.unit.recorded.generated import some

RESOURCES: Final = (
    {},
    {GPU: "8", "pods": "8"},
    {GPU: "1", "cpu": "500m", "pods": "1"},
    {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "4"},
    {"memory": "1Gi", "pods": "2"},
    {"amd.com/gpu": "4", "cpu": "1"},
    {"cpu": "0", "memory": "2Gi", "ephemeral-storage": "0", "nvidia.com/gpu": "0"},
    {"pods": "3"},
)
AMOUNTS: Final = (0, 10**9, 2 * 10**9, 8 * 10**9, 500 * 10**6)
NUMBERS: Final = (0, 0, 1, 1, 2, 3, 4, 9, 10, 11, 100, 101)
SECONDS: Final = (-3600, -301, -300, -299, -31, -30, -29, -1, 0, 0, 1, 5, 30, 60, 900, 90000)
TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "cluster": ("", "a", "a", "b", "c"),
    "queue": ("", "q0", "q0", "q1", "default"),
    "resource": (GPU, "cpu", "memory"),
    "acceleratorType": (GPU,),
    "kind": (GPU, "Job"),
    "name": ("hj-g0-0", "hj-g0-1", "hj-g1-0"),
    "names": ("hj-g0-0", "hj-g0-1", "hj-g1-0"),
    "other": ("", "default/other", "q1", "b"),
    "phase": (*JobPhase, "Unplaced", "Queued", "Placed"),
    "phase_text": ("Running", "Pending", "Failed"),
    "reason": ("", "PodsPending", "Restarting", "JobFailed", "InsufficientCapacity", "ApplyFailed"),
    "message": ("", "words of\n  another", "pod failed"),
    "state": ("Open", "Closed", ""),
    "metrics": ("0.25", "nan"),
    "last_transition": ("", "2026-01-02T03:00:30Z"),
    "last_transition_time": ("", "2026-01-02T03:00:30Z"),
    "start_time": ("", "2026-01-02T03:00:31Z"),
    "start": ("", "2026-01-02T03:00:32Z"),
    "began": ("", "2026-01-02T03:00:33Z"),
    "end": ("", "2026-01-02T03:03:00Z"),
    "time": ("", "2026-01-02T03:02:59Z"),
    "apply_error": (
        "",
        "connection refused",
        'failed: admission webhook "v.example"\n denied the request: no quota',
    ),
}


def arbitrary(rng: random.Random, kind: Any, name: str = "", *, deep: int = 4) -> Any:
    """Make a value of a type; `name` is the field that it is for."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return arbitrary(rng, _one_of(rng, arguments, deep), name, deep=deep)
    if origin is typing.Literal:
        return rng.choice(arguments)
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return _mapping(rng, arguments, name, deep)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(arbitrary(rng, each, name, deep=deep) for each in arguments)
    if origin is not None:
        many = [arbitrary(rng, arguments[0], name, deep=deep) for _ in range(_few(rng, deep))]
        return frozenset(many) if issubclass(origin, collections.abc.Set) else tuple(many)
    if is_dataclass(kind):
        return made(rng, kind, deep=deep - 1)
    if hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        return kind(*(arbitrary(rng, hints[each], each, deep=deep) for each in kind._fields))
    return _plain(rng, kind, name)


def made(rng: random.Random, kind: Any, *, deep: int = 4, rest: float = 0.4, **known: Any) -> Any:
    """Make a dataclass; a field with a default has it with the chance `rest`."""
    hints = _hints(kind)
    values = dict(known)
    for each in fields(kind):
        if each.name in known or not each.init:
            continue
        if _has_default(each) and (some(rng, rest) or deep <= 0):
            continue
        values[each.name] = arbitrary(rng, hints[each.name], each.name, deep=deep)
    return kind(**values)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _has_default(each: "Field[Any]") -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


def _one_of(rng: random.Random, kinds: tuple[Any, ...], deep: int) -> Any:
    if deep <= 0:
        kinds = tuple(each for each in kinds if not is_dataclass(each)) or kinds
    return rng.choice(kinds)


def _few(rng: random.Random, deep: int) -> int:
    return rng.choice((0, 1, 1, 2, 3, 5)) if deep > 0 else 0


def _mapping(rng: random.Random, kinds: tuple[Any, ...], name: str, deep: int) -> Any:
    if kinds == (str, int):
        return parse_resources(rng.choice(RESOURCES))
    if kinds[1] is Any:
        return {}
    return {
        arbitrary(rng, kinds[0], "name", deep=deep): arbitrary(rng, kinds[1], name, deep=deep)
        for _ in range(_few(rng, deep))
    }


def _plain(rng: random.Random, kind: Any, name: str) -> Any:
    if kind is None or kind is type(None):
        return None
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return rng.choice(list(kind))
    if kind is bool:
        return some(rng, 0.4)
    if kind is int:
        nano = name in ("missing", "free", "whole", "wanted", "used", "entitled", "capability")
        return rng.choice(AMOUNTS if nano or name in ("room", "amount") else NUMBERS)
    if kind is float:
        return rng.choice((0.0, 0.5, 1.0, 2000.0))
    if kind is datetime:
        return NOW + timedelta(seconds=rng.choice(SECONDS))
    if kind is timedelta:
        return timedelta(seconds=abs(rng.choice(SECONDS)))
    if kind is str:
        return rng.choice(TEXTS.get(name, ("", "x", "y", "words")))
    raise TypeError(f"{name}: {kind} has no arbitrary value")
