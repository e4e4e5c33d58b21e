"""What the API server checks in a custom resource beside its shape: text formats, unique items.

Hooks for the compiler of `hyperjob_core.api.shapeerrors`; each adds findings to those of the node.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError, core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.shapeerrors import BAD_FORMAT
from hyperjob_sandbox.apiserver.jsonvalue import Json

_DATE_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[tT ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:[zZ]|[+-]\d{2}:\d{2})", re.ASCII
)


def with_checks(name: str, node: Object, make: Callable[[], CoreSchema]) -> CoreSchema:
    """Add the checks of a node to what its shape says."""
    del name
    check = _FORMATS.get(node.get("format") or "") if node.get("type") == "string" else None
    if check is not None:
        return core_schema.no_info_after_validator_function(check, make())
    kind, keys = (
        node.get("x-kubernetes-list-type"),
        tuple(node.get("x-kubernetes-list-map-keys", ())),
    )
    if kind in ("set", "map"):
        return core_schema.no_info_after_validator_function(_unique(keys), make())
    return make()


def _format(name: str, read: Callable[[str], object]) -> Callable[[str], str]:
    def check(value: str) -> str:
        try:
            read(value)
        except ValueError:
            raise PydanticCustomError(BAD_FORMAT, BAD_FORMAT, {"format": name}) from None
        return value

    return check


def _date_time(value: str) -> datetime:
    if not _DATE_TIME.fullmatch(value):
        raise ValueError(value)
    # Only whole seconds: the API server reads any number of digits after them.
    return datetime.fromisoformat(value[:19])


_FORMATS: Final = {
    "date-time": _format("date-time", _date_time),
    "duration": _format("duration", nanoseconds),
}


def _unique(keys: tuple[str, ...]) -> Callable[[list[Json]], list[Json]]:
    """Find the second appearance of each item; the third and later ones say nothing new."""

    def check(items: list[Json]) -> list[Json]:
        seen: dict[bytes, int] = {}
        found: list[InitErrorDetails] = []
        for i, item in enumerate(items):
            shown = {key: item[key] for key in keys if key in item} if keys else item
            identity = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
            seen[identity] = seen.get(identity, 0) + 1
            if seen[identity] == 2:
                problem = PydanticCustomError("duplicate", "duplicate")
                found.append(InitErrorDetails(type=problem, loc=(i,), input=shown))
        if found:
            raise ValidationError.from_exception_data("list", found)
        return items

    return check
