"""Whether an applied object fits its type: what server-side apply refuses before it merges.

Pure. Values are judged only as far as ownership needs it; the schema is checked after the merge.
"""

from collections.abc import Iterator

from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format, go_type
from hyperjob_sandbox.apiserver.ownership.fields import (
    Element,
    field_element,
    print_element,
    print_path,
)
from hyperjob_sandbox.apiserver.ownership.typed import ElementError, item_element
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo


def problems(value: Json, kind: TypeInfo) -> list[str]:
    """Return what is wrong with an applied object, each with its path."""
    return [f"{print_path(path)}: {text}" for path, text in _check(value, kind, ())]


def summary(found: list[str]) -> str:
    """Join problems as one text."""
    return found[0] if len(found) == 1 else "\n".join(["errors:", *(f"  {text}" for text in found)])


def _check(
    value: Json, kind: TypeInfo, path: tuple[Element, ...]
) -> Iterator[tuple[tuple[Element, ...], str]]:
    if value is None:
        return
    shapes = kind.shapes
    if isinstance(value, dict):
        if "map" in shapes:
            for name, item in value.items():
                below = (*path, field_element(name))
                child = kind.field(name)
                if child is None:
                    yield below, "field not declared in schema"
                else:
                    yield from _check(item, child, below)
            return
    elif isinstance(value, list):
        if "list" in shapes:
            yield from _check_items(value, kind, path)
            return
    elif "scalar" in shapes and _fits(value, kind):
        return
    yield path, _mismatch(value, kind)


def _check_items(
    items: list[Json], kind: TypeInfo, path: tuple[Element, ...]
) -> Iterator[tuple[tuple[Element, ...], str]]:
    seen: set[Element] = set()
    for i, item in enumerate(items):
        element = f"i:{i}"
        if kind.list_type != "atomic":
            try:
                element = item_element(item, kind)
            except ElementError as error:
                yield path, f"element {i}: {error}"
                return
            if element in seen:
                yield path, f"duplicate entries for key {print_element(element)}"
            seen.add(element)
        yield from _check(item, kind.item(), (*path, element))


def _fits(value: Json, kind: TypeInfo) -> bool:
    match kind.scalar:
        case "numeric":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
    return True


def _mismatch(value: Json, kind: TypeInfo) -> str:
    shown = go_format(value)
    if "map" in kind.shapes:
        return f"expected map, got &{{{shown}}}"
    if "list" in kind.shapes:
        return f"expected list, got &{{{shown}}}"
    match kind.scalar:
        case "numeric":
            return f"expected numeric (int or float), got {go_type(value)}"
        case "string":
            return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
        case "boolean":
            return f"expected boolean, got &{{{shown}}}"
    return f"expected any scalar, got &{{{shown}}}"
