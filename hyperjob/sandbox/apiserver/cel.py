"""Expressions in CEL, compiled once: rules of custom resources and match conditions of webhooks.

A thin layer over the `cel` library with the functions that Kubernetes adds and our use needs. What
the library cannot do (optional syntax, two-variable macros, quantities, URLs) is refused when an
expression is compiled, never when it runs. Evaluation errors carry cel-go's words.
"""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Final

import cel
from cel import stdlib

from hyperjob.sandbox.apiserver.jsonvalue import Json, go_format, json_type

_BINDING: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_STRING: Final = re.compile(
    r"""[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
_TYPES: Final = frozenset(
    [
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional",
        "math",
        "sets",
        "google",
    ]
)
_NATIVE: Final = frozenset(
    [
        "size",
        "contains",
        "startsWith",
        "endsWith",
        "matches",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "timestamp",
        "duration",
        "type",
        "dyn",
        "getFullYear",
        "getMonth",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]
)


class CelError(Exception):
    """An expression that does not compile, or that failed for the values it was given."""


class Expression:
    """A compiled expression over named variables."""

    __slots__ = ("_extensions", "_program", "source", "variables")

    def __init__(self, source: str, *, variables: Collection[str]) -> None:
        """Compile; raise CelError for bad syntax, unknown variables and unknown functions."""
        self.source = source
        try:
            self._program = cel.compile(source)
        except ValueError as error:
            raise CelError(f"compilation failed: {_syntax_error(error)}") from error
        used = set(self._program.variables())
        bound = set(_BINDING.findall(_STRING.sub('""', source)))
        for name in sorted(used - bound - _TYPES - set(variables)):
            raise CelError(_undeclared(source, name))
        called = {name for name in self._program.functions() if re.fullmatch(r"\w+", name)}
        for name in sorted(called - _NATIVE - _EXTENSIONS.keys()):
            raise CelError(_undeclared(source, name))
        self.variables: frozenset[str] = frozenset(used & set(variables))
        self._extensions = {name: _EXTENSIONS[name] for name in called if name in _EXTENSIONS}

    def evaluate(self, values: Mapping[str, Json]) -> Json:
        """Return the value of the expression; raise CelError with cel-go's text."""
        given = {name: values[name] for name in self.variables if name in values}
        try:
            if not self._extensions:
                return self._program.execute(given)
            context = cel.Context(variables=given, functions=self._extensions)
            return self._program.execute(context)
        except (
            KeyError,
            IndexError,
            ArithmeticError,
            TypeError,
            ValueError,
            RuntimeError,
        ) as error:
            raise CelError(_runtime_error(error)) from error


def _syntax_error(error: ValueError) -> str:
    _, _, text = str(error).partition("ERROR: ")
    return f"ERROR: {text.strip()}" if text else str(error)


def _undeclared(source: str, name: str) -> str:
    found = re.search(rf"\b{re.escape(name)}\b", source)
    at = found.start() if found else 0
    line = source.count("\n", 0, at) + 1
    column = at - (source.rfind("\n", 0, at) + 1)
    text = source.split("\n")[line - 1]
    return (
        f"compilation failed: ERROR: <input>:{line}:{column + 1}: undeclared reference to '{name}' "
        f"(in container '')\n | {text}\n | {'.' * column}^"
    )


def _runtime_error(error: Exception) -> str:
    text = str(error)
    match error:
        case KeyError():
            return f"no such key: {error.args[0]}"
        case IndexError():
            return text
        case ZeroDivisionError():
            return "modulus by zero" if text.startswith("modulo") else "division by zero"
        case OverflowError():
            return "integer overflow"
        case TypeError():
            return "no such overload"
        case _:
            return text.removesuffix(". Check function arguments and their types.")


def escape(name: str) -> str | None:
    """Return the identifier by which an expression reaches a field; None: by none."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _FIELD_NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)


_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_FIELD_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {
    "__": "__underscores__",
    ".": "__dot__",
    "-": "__dash__",
    "/": "__slash__",
}


def _is_sorted(items: list[Json]) -> bool:
    return all(first <= second for first, second in pairwise(items))


def _index_of(where: Json, what: Json, start: int = 0) -> int:
    if isinstance(where, str):
        return where.find(what, start)
    return where.index(what) if what in where else -1


def _last_index_of(where: Json, what: Json) -> int:
    if isinstance(where, str):
        return where.rfind(what)
    return len(where) - 1 - where[::-1].index(what) if what in where else -1


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.ASCII)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text, re.ASCII)]
    return found if limit < 0 else found[:limit]


def _string(value: Json) -> str:
    # The library itself knows numbers, timestamps and bytes; what it does not comes here.
    if json_type(value) not in ("boolean", "string"):
        raise TypeError("no such overload")
    return go_format(value)


_EXTENSIONS: Final[dict[str, Callable[..., Json]]] = {
    "string": _string,
    "bool": stdlib.bool_,
    "isSorted": _is_sorted,
    "sum": stdlib.sum_,
    "min": stdlib.min_,
    "max": stdlib.max_,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "find": _find,
    "findAll": _find_all,
    "charAt": stdlib.char_at,
    "join": stdlib.join,
    "lowerAscii": stdlib.lower_ascii,
    "upperAscii": stdlib.upper_ascii,
    "replace": stdlib.replace,
    "split": stdlib.split,
    "substring": stdlib.substring,
    "trim": stdlib.trim,
    "reverse": stdlib.reverse,
}
