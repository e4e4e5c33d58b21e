"""Cases as blocks of text lines, kept in files of the tree and compared with what the code gives.

A block is a title after `# ` and one line for each thing decided. Sets are sorted, fields with
their default are left out, and nothing depends on a clock, on a hash, or on another process.
"""

import difflib
import enum
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
SHOWN = 3
"""Differing cases in the message of a failure."""

Case = tuple[str, list[str]]
Section = Callable[[], Iterable[Case]]


def plain(value: Any) -> Any:
    """Return a value as JSON has it; of a dataclass, what differs from its defaults."""
    match value:
        case enum.Enum():
            return plain(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            return float(f"{value:.6g}")
        case datetime():
            return value.strftime("%m-%dT%H:%M:%S") + (f".{value:%f}" if value.microsecond else "")
        case timedelta():
            return f"{value / timedelta(seconds=1):.9g} s"
        case bytes():
            return value.decode("utf-8", "replace")
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted((plain(item) for item in value), key=str)
        case list() | tuple() if not hasattr(value, "_fields"):
            return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__name__: dict(_said(value))}
    if isinstance(value, tuple):
        return {type(value).__name__: [plain(item) for item in value]}
    if hasattr(value, "items"):
        return plain(dict(value))
    if hasattr(value, "__iter__"):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value)} has no plain form")


def _said(value: Any) -> Iterator[tuple[str, Any]]:
    for each in fields(value):
        if not each.compare:
            continue
        found = getattr(value, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if default is MISSING or found != default:
            yield each.name, plain(found)


def line(value: Any) -> str:
    """Write a value in one line; dates of the day on which most cases play are times alone."""
    text = json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(", ", ": "))
    return text.replace('"2026-01-02T', '"').replace(".000000Z", "Z")


def changes(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Write one line for each field that differs between two documents."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}, key=str):
            where = f"{at}.{name}" if at else str(name)
            if name not in new:
                yield f"{where} is gone"
            elif name not in old and not isinstance(new[name], list):
                yield f"{where} = {line(new[name])}"
            else:
                yield from changes(old.get(name), new[name], where)
    elif isinstance(new, list) and new and all(isinstance(item, dict) for item in new):
        known = old if isinstance(old, list) else []
        found: dict[str, list[int]] = {}
        for index, after in enumerate(new):
            before = known[index] if index < len(known) else {}
            for each in changes(before, after):
                found.setdefault(each, []).append(index)
        if len(known) > len(new):
            yield f"{at} has {len(new)} items"
        for each, places in found.items():
            yield f"{at}[{','.join(map(str, places))}].{each}"
    elif old != new or type(old) is not type(new):
        yield f"{at} = {line(new)}"


def written(cases: Iterable[Case]) -> str:
    """Write the text of a file."""
    return "\n".join("\n".join((f"# {title}", *lines, "")) for title, lines in cases)


def record(name: str, section: Section) -> None:
    """Write the file of a section anew."""
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.txt").write_text(written(section()), encoding="utf-8")


def compare(name: str, section: Section) -> None:
    """Raise AssertionError with the first cases that differ from the file of a section."""
    path = DATA / f"{name}.txt"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    new = written(section())
    if old == new:
        return
    before, after = _blocks(old), _blocks(new)
    differing = [title for title in {**before, **after} if before.get(title) != after.get(title)]
    text = [
        row
        for title in differing[:SHOWN]
        for row in difflib.unified_diff(
            before.get(title, []), after.get(title, []), f"kept: {title}", "now", n=1, lineterm=""
        )
    ]
    raise AssertionError(
        f"{len(differing)} of {len(after)} cases of {path.name} are decided otherwise than the file"
        " says. Where that is meant, write it anew with `make recorded`.\n" + "\n".join(text)
    )


def _blocks(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    block: list[str] = []
    for row in text.splitlines():
        if row.startswith("# "):
            block = found.setdefault(row[2:], [])
        elif row:
            block.append(row)
    return found
