"""Convert a function to a program for a container.

The program of a function is its source: the function may use only its own names and builtins,
because the container has no other module of the caller.
"""

import builtins
import inspect
import json
import symtable
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hyperjob.sdk.errors import SourceError

# The container may lack the types of annotations, which must not be evaluated there.
_HEADER: Final = "from __future__ import annotations\n"


def program_of(function: Callable[..., Any], args: Mapping[str, Any]) -> str:
    """Return a program that calls the function with `args`; raise SourceError."""
    name = getattr(function, "__name__", "")
    if not inspect.isfunction(function) or name == "<lambda>":
        raise SourceError(f"{function!r}: the function must be defined with def")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise SourceError(
            f"{name}: Python cannot read its source, as for functions typed at a prompt: write"
            " the function into a file or a notebook cell"
        ) from None
    source = source[source.index(f"def {name}") :] if source.startswith("@") else source
    if inspect.iscoroutinefunction(function):
        raise SourceError(
            f"{name}: coroutine functions are not supported: call asyncio.run inside a function"
        )
    outside = sorted(set(_outside(source, name)))
    if outside:
        raise SourceError(
            f"{name} uses {', '.join(outside)} from outside the function, and the containers get"
            " only its source: import modules inside the function, and pass values as args"
        )
    try:
        values = json.dumps(dict(args))
    except (TypeError, ValueError) as error:
        raise SourceError(f"{name}: args must be JSON values: {error}") from None
    try:
        inspect.signature(function).bind(**args)
    except TypeError as error:
        raise SourceError(f"{name}: args do not match its parameters: {error}") from None
    return (
        f"{_HEADER}\nimport json\n\n\n"
        f"{source.rstrip()}\n\n\n"
        'if __name__ == "__main__":\n'
        f"    {name}(**json.loads({values!r}))\n"
    )


def _outside(source: str, name: str) -> Iterator[str]:
    """Yield the names that a function's source uses and does not define."""
    table = symtable.symtable(f"{_HEADER}{source}", "<function>", "exec")
    known = {*dir(builtins), name, "__name__", "__file__"}
    for symbol in table.get_symbols():  # decorators and defaults of parameters
        if symbol.is_referenced() and symbol.get_name() not in known and not symbol.is_annotated():
            yield symbol.get_name()
    yield from _globals(table, known)


def _globals(table: symtable.SymbolTable, known: set[str]) -> Iterator[str]:
    for child in table.get_children():
        if child.get_type() == "annotation":
            continue
        for symbol in child.get_symbols():
            if symbol.is_global() and symbol.is_referenced() and symbol.get_name() not in known:
                yield symbol.get_name()
        yield from _globals(child, known)
