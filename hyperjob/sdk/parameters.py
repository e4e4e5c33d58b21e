"""Check the parameters of the SDK's functions by their annotations. Pure."""

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from hyperjob_core.api.quantity import Quantity
from hyperjob_core.text import nearest

_SHOWN: Final = 80
_STRICT: Final = ConfigDict(strict=True)
_EXAMPLES: Final[Mapping[str, str]] = {
    "memory": "'16Gi'",
    "rank": "0 or [0, 1]",
    "shared_memory": "'8Gi'",
    "time_limit": "3600 or '2h30m'",
}
_WORDS: Final[Mapping[object, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a Path",
}


Rank = Annotated[int, Field(ge=0)]
"""The rank of a pod."""
Above0 = Annotated[float, Field(gt=0)]
"""A time or an amount."""


def require_types(hints: Mapping[str, Any], given: Mapping[str, object]) -> None:
    """Raise ValueError for the first value that is not of the type of its parameter.

    `hints` are the types of the parameters to check.
    """
    for name, kind in hints.items():
        if name not in given:
            continue
        try:
            _adapter(kind).validate_python(given[name])
        except ValidationError:
            raise ValueError(
                f"{name}={shown(given[name])}: expected {_expected(kind)}"
                f"{_example(name, kind, given[name])}"
            ) from None


def require_known(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for a keyword argument that a function does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            alike = nearest(name, names)
            hint = f"; did you mean {alike!r}?" if alike else f"; it has {', '.join(names)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def require_amount(name: str, amount: str | float | None, *, example: str) -> None:
    """Raise ValueError for an amount that is no positive quantity of Kubernetes."""
    if amount is None:
        return
    try:
        found = Quantity.parse(amount).nano
    except ValueError:
        found = 0
    if found <= 0:
        raise ValueError(
            f"{name}={amount!r}: expected an amount as Kubernetes writes it, such as {example}"
        )


def require_bytes(name: str, amount: str | None) -> None:
    """Raise ValueError for an amount of memory that is none, or has no unit."""
    if amount is not None and re.fullmatch(r"[0-9.]+", amount):
        raise ValueError(
            f"{name}={amount!r} would be {amount} bytes: the unit is missing, as in {name}='16Gi'"
        )
    require_amount(name, amount, example="'16Gi' or '500M'")


def shown(value: object) -> str:
    """Return a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


@lru_cache
def _adapter(kind: object) -> TypeAdapter[object]:
    return TypeAdapter(kind, config=_STRICT)  # type: ignore[arg-type]  # of a type form


def _expected(kind: object) -> str:
    """Return a type in words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        (bound,) = arguments[1].metadata
        least = getattr(bound, "ge", None)
        limit = f"more than {bound.gt}" if least is None else f"at least {least}"
        return f"{_expected(arguments[0])}, {limit}"
    if origin in (types.UnionType, Union):
        kinds = [each for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(_expected(each) for each in kinds))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is Mapping:
        return "a dict of texts" if arguments[-1] is str else "a dict"
    if origin is Sequence:
        return "a list of texts" if arguments[0] is str else "a list"
    return _WORDS.get(kind, str(kind))


def _example(name: str, kind: object, value: object) -> str:
    """Return an example, or the list that a text was probably meant to be."""
    if name in _EXAMPLES:
        return f", such as {_EXAMPLES[name]}"
    origins = {get_origin(each) for each in (kind, *get_args(kind))}
    return f", such as [{value!r}]" if isinstance(value, str) and Sequence in origins else ""
