"""Every limit, interval and default of the code, by module: one place to see them change."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, Final

import hyperjob_controller
import hyperjob_core.kube
import hyperjob_engine
import hyperjob_rules
import hyperjob_webhook
from hyperjob_core.kube.resources import Resource
from tests.unit.recorded.recording import Case

PACKAGES: Final = (
    hyperjob_controller,
    hyperjob_core.kube,
    hyperjob_engine,
    hyperjob_rules,
    hyperjob_webhook,
)
NUMBERS: Final = (bool, int, float, timedelta, datetime)


def limit_cases() -> Iterator[Case]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            rows = [*_constants(module), *_defaults(module)]
            if rows:
                yield found.name, rows


def _constants(module: ModuleType) -> Iterator[str]:
    """Write the numbers and the kinds of objects in capitals that the module itself assigns."""
    source = inspect.getsource(module)
    for name, value in vars(module).items():
        assigned = f"\n{name} = " in source or f"\n{name}: " in source
        if name.isupper() and assigned and _is_shown(value):
            yield f"{name} = {_text(value)}"


def _text(value: Any) -> str:
    """Write a value; the items of a set in order: its own order changes with each process."""
    match value:
        case set() | frozenset():
            return f"{type(value).__name__}({{{', '.join(sorted(map(repr, value)))}}})"
    return str(value)


def _is_shown(value: Any) -> bool:
    match value:
        case tuple() | list() | set() | frozenset():
            return bool(value) and all(map(_is_shown, value))
        case dict():
            return any(map(_is_shown, value)) and all(
                isinstance(each, str) for each in value.values()
            )
    return isinstance(value, (*NUMBERS, Resource))


def _defaults(module: ModuleType) -> Iterator[str]:
    """Write the default numbers of the dataclasses of a module, and which fields they leave out."""
    for name, kind in vars(module).items():
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__:
            rows = [row for each in fields(kind) if (row := _default(each))]
            if rows:
                yield f"{name}: {', '.join(rows)}"


def _default(field: Field[Any]) -> str:
    marks = "".join(f" not in {mark}" for mark in ("init", "repr") if not getattr(field, mark))
    marks += "" if field.compare else " not compared"
    value = f" = {field.default}" if isinstance(field.default, NUMBERS) else ""
    return f"{field.name}{value}{marks}" if value or marks else ""
