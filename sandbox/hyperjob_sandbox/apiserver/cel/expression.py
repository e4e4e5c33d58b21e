"""One expression, ready to be evaluated as often as needed."""

from collections.abc import Collection, Mapping

from hyperjob_sandbox.apiserver.cel.compiler import Compiler
from hyperjob_sandbox.apiserver.cel.functions import CelError
from hyperjob_sandbox.apiserver.cel.scope import Run, Scope
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node


class Expression:
    """A compiled expression over named variables."""

    __slots__ = ("_run", "source", "variables")

    def __init__(
        self,
        source: str,
        *,
        variables: Collection[str],
        schemas: Mapping[str, Node] | None = None,
    ) -> None:
        """Compile; raise CelError for bad syntax and for unknown variables, functions and fields.

        `schemas` gives the types of variables; a variable without one may be anything.
        """
        self.source = source
        compiler = Compiler(source, {name: (schemas or {}).get(name) for name in variables})
        self._run: Run = compiler.compile()
        self.variables: frozenset[str] = frozenset(compiler.used)

    def evaluate(self, values: Mapping[str, Json]) -> Json:
        """Return the value of the expression; raise CelError with cel-go's text."""
        try:
            return self._run(Scope(values))
        except RecursionError as error:
            raise CelError("expression recursion limit exceeded") from error
