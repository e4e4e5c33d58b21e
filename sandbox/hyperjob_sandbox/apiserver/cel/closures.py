"""Closures for what expressions are made of: fields, items, literals, calls, operators.

Pure; each raises CelError with cel-go's words where the values make no sense.
"""

from collections.abc import Callable
from typing import Final

from hyperjob_sandbox.apiserver.cel.access import Reader
from hyperjob_sandbox.apiserver.cel.functions import (
    NONE,
    CelError,
    Optional,
    contains,
    equal,
    less,
    overload,
)
from hyperjob_sandbox.apiserver.cel.operators import add, divide, modulo, multiply, negate, subtract
from hyperjob_sandbox.apiserver.cel.scope import Run, Scope, truth
from hyperjob_sandbox.apiserver.jsonvalue import Json


def variable(scope: Scope, name: str) -> Json:
    """Return the value of a variable."""
    if name not in scope:
        raise CelError(f"no such attribute(s): {name}")
    return scope[name]


def select(operand: Run, name: str, read: Reader | None) -> Run:
    """Build the access to a field."""

    def run(scope: Scope) -> Json:
        found = operand(scope)
        if type(found) is dict:
            if name in found:
                value = found[name]
                return value if read is None else read(value)
            raise CelError(f"no such key: {name}")
        if isinstance(found, Optional):
            if not found.present or name not in _object(found.value):
                return NONE
            value = found.value[name]
            return Optional(value if read is None else read(value))
        raise overload()

    return run


def _object(value: Json) -> dict[str, Json]:
    if type(value) is not dict:
        raise overload()
    return value


def optional_select(operand: Run, name: str, read: Reader | None) -> Run:
    """Build the access to a field that may be missing."""

    def run(scope: Scope) -> Json:
        found = operand(scope)
        if isinstance(found, Optional):
            if not found.present:
                return NONE
            found = found.value
        if name not in _object(found):
            return NONE
        value = found[name]
        return Optional(value if read is None else read(value))

    return run


def _item(value: Json, key: Json) -> Json:
    if type(value) is list:
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if isinstance(key, bool) or not isinstance(key, int):
            raise overload()
        if not 0 <= key < len(value):
            raise CelError(f"index out of bounds: {key}")
        return value[key]
    if type(value) is dict:
        if isinstance(key, bool) or not isinstance(key, str | int) or key not in value:
            raise CelError(f"no such key: {key}")
        return value[key]
    raise overload()


def index(operand: Run, key: Run) -> Run:
    """Build the access to an item."""

    def run(scope: Scope) -> Json:
        found = operand(scope)
        if isinstance(found, Optional):
            return _optional_item(found, key(scope))
        return _item(found, key(scope))

    return run


def optional_index(operand: Run, key: Run) -> Run:
    """Build the access to an item that may be missing."""
    return lambda scope: _optional_item(operand(scope), key(scope))


def _optional_item(found: Json, key: Json) -> Json:
    if isinstance(found, Optional):
        if not found.present:
            return NONE
        found = found.value
    try:
        return Optional(_item(found, key))
    except CelError as error:
        if str(error).startswith(("no such key", "index out of bounds")):
            return NONE
        raise


def list_of(items: list[Run], optional: tuple[bool, ...]) -> Run:
    """Build a list."""

    def run(scope: Scope) -> Json:
        result: list[Json] = []
        for item, maybe in zip(items, optional, strict=True):
            value = item(scope)
            if not maybe:
                result.append(value)
            elif isinstance(value, Optional) and value.present:
                result.append(value.value)
        return result

    return run


def map_of(entries: list[tuple[Run, Run]]) -> Run:
    """Build a map."""
    return lambda scope: {key(scope): value(scope) for key, value in entries}


def call(function: Callable[..., Json], args: list[Run]) -> Run:
    """Build the call of a function."""

    def run(scope: Scope) -> Json:
        try:
            return function(*(arg(scope) for arg in args))
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise overload() from error

    return run


def _decide(*, deciding: bool) -> Callable[[Run, Run], Run]:
    """Build && or ||: a side that decides outweighs an error of the other."""

    def build(left: Run, right: Run) -> Run:
        def run(scope: Scope) -> Json:
            failure: CelError | None = None
            for side in (left, right):
                try:
                    if truth(side, scope) is deciding:
                        return deciding
                except CelError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not deciding

        return run

    return build


def _conditional(condition: Run, chosen: Run, other: Run) -> Run:
    return lambda scope: chosen(scope) if truth(condition, scope) else other(scope)


def _not(operand: Run) -> Run:
    return lambda scope: not truth(operand, scope)


def _unary(function: Callable[[Json], Json]) -> Callable[[Run], Run]:
    return lambda operand: lambda scope: function(operand(scope))


def _binary(function: Callable[[Json, Json], Json]) -> Callable[[Run, Run], Run]:
    return lambda left, right: lambda scope: function(left(scope), right(scope))


OPERATORS: Final[dict[str, Callable[..., Run]]] = {
    "_||_": _decide(deciding=True),
    "_&&_": _decide(deciding=False),
    "_?_:_": _conditional,
    "!_": _not,
    "-_": _unary(negate),
    "_==_": _binary(equal),
    "_!=_": _binary(lambda a, b: not equal(a, b)),
    "_<_": _binary(less),
    "_<=_": _binary(lambda a, b: not less(b, a)),
    "_>_": _binary(lambda a, b: less(b, a)),
    "_>=_": _binary(lambda a, b: not less(a, b)),
    "_in_": _binary(lambda wanted, items: contains(items, wanted)),
    "_+_": _binary(add),
    "_-_": _binary(subtract),
    "_*_": _binary(multiply),
    "_/_": _binary(divide),
    "_%_": _binary(modulo),
}
