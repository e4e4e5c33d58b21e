"""What was decided, as rows that can be compared: a time, an object, and one fact about it."""

import json
import re
from collections.abc import Iterator
from typing import Any

Row = tuple[float, str, str]
"""Virtual seconds, the object, and a fact such as `status.state.phase = "Running"`."""

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEYS = ("name", "type", "clusterName")
SERVER = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields")
"""Fields of the metadata that the API server gives."""


def line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def changes(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Yield one line for each field that differs; items with names are compared by name."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            where = f"{at}.{name}" if at else name
            if name not in new:
                yield f"{where} is gone"
            elif name in old or isinstance(new[name], dict | list):
                yield from changes(old.get(name, type(new[name])()), new[name], where)
            else:
                yield f"{where} = {line(new[name])}"
    elif isinstance(old, list) and isinstance(new, list) and _by_name([*old, *new]):
        known, found = _named(old), _named(new)
        for name in sorted({*known, *found}):
            if name not in found:
                yield f"{at}[{name}] is gone"
            else:
                yield from changes(known.get(name, {}), found[name], f"{at}[{name}]")
        if list(known) != [name for name in found if name in known] or not new:
            yield f"{at} has the order {line(list(found))}"
    elif old != new or type(old) is not type(new):
        yield f"{at} = {line(new)}"


def _by_name(items: list[Any]) -> bool:
    return bool(items) and any(
        all(isinstance(each, dict) and isinstance(each.get(key), str) for each in items)
        for key in KEYS
    )


def _named(items: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in items:
        name = next(str(each[key]) for key in KEYS if key in each)
        while name in found:
            name += "+"
        found[name] = each
    return found


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the API server gives and what its kind says."""
    metadata = {name: each for name, each in obj["metadata"].items() if name not in SERVER}
    rest = {name: each for name, each in obj.items() if name not in ("apiVersion", "kind")}
    return {**rest, "metadata": metadata}


def kind_of(fact: str) -> str:
    """Return the kind of a fact: its field without names and values."""
    field = re.sub(r"\[[^\]]*\]", "[]", re.split(r" = | is | has |: ", fact)[0])
    return re.sub(r"\d+", "N", field)
