"""Convert a function to a program for a container.

The program of a function is its source: the function may use only its own names and builtins,
because the container has no other module of the caller.
"""

import ast
import builtins
import inspect
import math
import symtable
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.parameters import shown

# The container may lack the types of annotations, which must not be evaluated there.
_HEADER: Final = "from __future__ import annotations\n"
_BLANK: Final = "\n"
_NOTEBOOK: Final = frozenset({"display", "get_ipython"})
"""Names that IPython adds to the builtins of the caller."""
_LITERALS: Final = (type(None), bool, int, str, bytes)
_DEEPEST: Final = 50


def program_of(function: Callable[..., Any], args: Mapping[str, Any]) -> str:
    """Return a program that calls the function with `args`; raise SourceError."""
    inner = inspect.unwrap(function)
    name = getattr(inner, "__name__", "")
    if not inspect.isfunction(inner) or name == "<lambda>":
        raise SourceError(
            f"{shown(function)}: a training is a function that is defined with def, the path of a"
            " script, or a module such as '-m package.train'; client.submit takes a document"
        )
    source, definition = _source_of(inner)
    _require_runnable(function, definition)
    called = definition.name
    outside = sorted(set(_outside(source, called)))
    if outside:
        raise SourceError(
            f"{called} uses {', '.join(outside)} from outside the function, and the containers get"
            " only its source: import modules inside the function, and pass values as args"
        )
    for key in args:
        if not isinstance(key, str):
            raise SourceError(f"{called}: args has the key {key!r}: its keys are parameter names")
    values = {key: _literal(value, f"args[{key!r}]") for key, value in args.items()}
    try:
        inspect.signature(inner).bind(**args)
    except TypeError as error:
        raise SourceError(f"{called}: args do not match its parameters: {error}") from None
    # Tracebacks and stacks then have the numbers of the lines in the user's own file.
    above = inner.__code__.co_firstlineno - _HEADER.count("\n") - 1 - source.startswith("if True:")
    call = ", ".join(f"{key!r}: {value}" for key, value in values.items())
    return (
        f"{_HEADER}{_BLANK * max(1, above)}{source.rstrip()}\n\n\n"
        'if __name__ == "__main__":\n'
        f"    {called}(**{{{call}}})\n"
    )


def _source_of(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the source of a function as a statement at the top level, and its definition."""
    name = function.__name__
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = _of_command(function)
    if not source:
        raise SourceError(
            f"{name}: Python cannot read its source, as for functions typed at a prompt: write"
            " the function into a file or a notebook cell"
        )
    # To dedent a nested function would change its multi-line strings.
    if source[:1].isspace():
        source = f"if True:\n{source}"
    try:
        found = ast.parse(source)
    except SyntaxError:
        found = ast.Module([], [])
    for node in ast.walk(found):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return source, node
    raise SourceError(f"{name}: its source has no statement def: define the function with def")


def _of_command(function: Callable[..., Any]) -> str:
    """Return the source of a function in the text of `python -c`; empty for other functions."""
    code: types.CodeType = function.__code__
    if code.co_filename != "<string>" or sys.argv[:1] != ["-c"]:
        return ""
    text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    lines = text.splitlines(keepends=True)[code.co_firstlineno - 1 :]
    return "".join(inspect.getblock(lines))


def _require_runnable(
    function: Callable[..., Any], definition: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    """Raise SourceError for a function whose call would not run its statements."""
    name, inner = definition.name, inspect.unwrap(function)
    if definition.decorator_list:
        words = ", ".join(f"@{ast.unparse(each)}" for each in definition.decorator_list)
        raise SourceError(
            f"{name} has the decorator {words}, and the containers get only the source of the"
            " function: remove the decorator, or define and call a decorated function inside"
        )
    if inner is not function:
        raise SourceError(
            f"{name} is wrapped by {function!r}, and the containers get"
            " only the source of the inner function: pass the inner function"
        )
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise SourceError(
            f"{name} is a generator function, whose call runs none of its statements: remove its"
            " yield, or iterate over it inside another function"
        )
    if inspect.iscoroutinefunction(inner):
        raise SourceError(
            f"{name}: coroutine functions are not supported: call asyncio.run inside a function"
        )


def _literal(value: object, path: str, depth: int = 0) -> str:
    """Return the Python expression of a value, which keeps types; raise SourceError."""
    if depth > _DEEPEST:
        raise SourceError(f"{path}: args are nested deeper than {_DEEPEST} levels")
    kind = type(value)
    if kind in _LITERALS:
        return repr(value)
    if isinstance(value, float) and kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, dict) and kind is dict:
        pairs = [
            f"{_literal(key, f'a key of {path}', depth + 1)}:"
            f" {_literal(each, f'{path}[{key!r}]', depth + 1)}"
            for key, each in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple) and kind in (list, tuple):
        inside = [_literal(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
        if kind is list:
            return f"[{', '.join(inside)}]"
        return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        members = sorted(_literal(each, f"a member of {path}", depth + 1) for each in value)
        return f"{kind.__name__}([{', '.join(members)}])"
    raise SourceError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}: args are numbers, texts, bytes, None,"
        " and lists, tuples, sets and dicts of them: convert it, such as by str, float or list"
    )


def _outside(source: str, name: str) -> Iterator[str]:
    """Yield the names that a function's source uses and does not define."""
    table = symtable.symtable(f"{_HEADER}{source}", "<function>", "exec")
    known = {*dir(builtins), name, "__name__", "__file__"} - _NOTEBOOK
    for symbol in table.get_symbols():  # defaults of parameters
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
