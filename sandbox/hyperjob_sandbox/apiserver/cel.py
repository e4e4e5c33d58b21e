"""Expressions in CEL: rules of custom resources and match conditions of webhooks.

Google's implementation evaluates them, with optional fields and its functions for strings. The
functions that Kubernetes adds (`quantity`, `isURL`, `authorizer`, ...) are unknown to it, and an
expression that calls one is refused when it is compiled. Values are as JSON has them.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from hyperjob_sandbox.apiserver.jsonvalue import Json

_STATUS = re.compile(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$")
_NO_KEY = re.compile(r'Key not found in map : "?(.*?)"?$')


class CelError(Exception):
    """An expression that does not compile, or that failed for the values it was given."""


class Expression:
    """A compiled expression over named variables."""

    __slots__ = ("_compiled", "source", "variables")

    def __init__(self, source: str, *, variables: Collection[str]) -> None:
        """Compile; raise CelError for bad syntax and for unknown variables and functions."""
        self.source = source
        self.variables = frozenset(
            name for name in variables if re.search(rf"\b{re.escape(name)}\b", source)
        )
        try:
            self._compiled = _environment(tuple(sorted(variables))).compile(source)
        except RuntimeError as error:
            raise CelError(f"compilation failed: {_STATUS.sub('', str(error))}") from None

    def evaluate(self, values: Mapping[str, Json]) -> Json:
        """Return the value of the expression; raise CelError with the API server's text."""
        given = {name: values[name] for name in self.variables if name in values}
        try:
            found = self._compiled.eval(data=given)
        except (RuntimeError, OverflowError, TypeError, ValueError) as error:
            raise CelError(_text(str(error))) from None
        if found.type() == cel.Type.ERROR:
            raise CelError(_text(str(found.value())))
        return found.plain_value()


@cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    return cel.NewEnv(
        variables=dict.fromkeys(variables, cel.Type.DYN),
        extensions=[ExtOptional(), ExtStrings()],
    )


def _text(problem: str) -> str:
    """Say it as cel-go does, which the API server uses."""
    problem = _STATUS.sub("", problem)
    if missing := _NO_KEY.search(problem):
        return f"no such key: {missing[1]}"
    return "no such overload" if problem.startswith("No matching overloads") else problem
