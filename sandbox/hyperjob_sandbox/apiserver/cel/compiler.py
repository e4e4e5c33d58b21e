"""CEL trees to Python closures: operators, macros, field access by schema.

Pure. A closure takes the variables' values and returns a value or raises CelError. What can be
known before there are values (names, functions, declared fields) is refused here.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from hyperjob_sandbox.apiserver.cel import syntax
from hyperjob_sandbox.apiserver.cel.access import (
    UNDEFINED,
    field_node,
    item_node,
    reader,
    unescape,
)
from hyperjob_sandbox.apiserver.cel.closures import (
    OPERATORS,
    call,
    index,
    list_of,
    map_of,
    optional_index,
    optional_select,
    select,
    variable,
)
from hyperjob_sandbox.apiserver.cel.extensions import FUNCTIONS
from hyperjob_sandbox.apiserver.cel.functions import NONE, CelError, Optional, Type, overload
from hyperjob_sandbox.apiserver.cel.macros import MACROS, Bound, Loop
from hyperjob_sandbox.apiserver.cel.scope import Run, Scope
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Typed: TypeAlias = tuple[Run, Node | None]
_TYPES: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"}
)
_NAMESPACES: Final = frozenset({"sets", "optional", "base64"})


class Compiler:
    """Compiles one expression; knows the schema of the variables that have one."""

    def __init__(self, source: str, variables: Mapping[str, Node | None]) -> None:
        self._source = source
        self._declared = variables
        self._local: dict[str, Node | None] = {}
        self.used: set[str] = set()

    def compile(self) -> Run:
        """Return the closure; raise CelError."""
        try:
            return self._typed(syntax.parse(self._source))[0]
        except syntax.CelSyntaxError as error:
            raise CelError(f"compilation failed: {error}") from error
        except RecursionError as error:
            raise self._fail(0, "expression recursion limit exceeded") from error

    def _fail(self, at: int, text: str) -> CelError:
        return CelError(f"compilation failed: {syntax.complaint(self._source, at, text)}")

    def _undeclared(self, at: int, name: str) -> CelError:
        return self._fail(at, f"undeclared reference to '{name}' (in container '')")

    def _run(self, node: syntax.Node) -> Run:
        return self._typed(node)[0]

    def _typed(self, node: syntax.Node) -> Typed:
        match node:
            case syntax.Literal(value):
                return (lambda _: value), None
            case syntax.Ident():
                return self._ident(node)
            case syntax.Select():
                return self._select(node)
            case syntax.Index():
                return self._index(node)
            case syntax.ListOf(items, optional):
                return list_of([self._run(item) for item in items], optional), None
            case syntax.MapOf(entries):
                return map_of([(self._run(key), self._run(value)) for key, value in entries]), None
            case syntax.Call():
                return self._call(node)

    def _ident(self, node: syntax.Ident) -> Typed:
        name = node.name
        if name in self._local:
            return (lambda scope: scope[name]), self._local[name]
        if name in self._declared:
            self.used.add(name)
            schema = self._declared[name]
            read = reader(schema)
            if read is None:
                return (lambda scope: variable(scope, name)), schema
            return (lambda scope: read(variable(scope, name))), schema
        if name in _TYPES:
            return (lambda _: Type(name)), None
        raise self._undeclared(node.at, name)

    def _select(self, node: syntax.Select) -> Typed:
        operand, schema = self._typed(node.operand)
        name = unescape(node.name)
        below = field_node(schema, name)
        if below is UNDEFINED:
            raise self._fail(node.at, f"undefined field '{node.name}'")
        child = below if isinstance(below, Node) else None
        read = reader(child)
        if node.optional:
            return optional_select(operand, name, read), child
        return select(operand, name, read), child

    def _index(self, node: syntax.Index) -> Typed:
        operand, schema = self._typed(node.operand)
        key = self._run(node.key)
        child = item_node(schema)
        run = optional_index(operand, key) if node.optional else index(operand, key)
        return run, child

    def _call(self, node: syntax.Call) -> Typed:
        name, args, target = node.function, node.args, node.target
        if target is None and name == "has":
            return self._has(node), None
        if name in OPERATORS:
            return self._operator(node)
        if target is not None and name in MACROS and self._binds(args):
            return self._macro(node)
        if target is not None and name in ("optMap", "optFlatMap") and len(args) == 2:
            return self._optional_map(node), None
        given = list(args)
        if isinstance(target, syntax.Ident) and target.name in _NAMESPACES:
            name = f"{target.name}.{name}"
        elif target is not None:
            given.insert(0, target)
        function = FUNCTIONS.get(name)
        if function is None:
            raise self._undeclared(node.at, name)
        return call(function, [self._run(arg) for arg in given]), None

    def _operator(self, node: syntax.Call) -> Typed:
        runs = [self._typed(arg) for arg in node.args]
        build = OPERATORS[node.function]
        schema = runs[1][1] if node.function == "_?_:_" else None
        return build(*(run for run, _ in runs)), schema

    def _has(self, node: syntax.Call) -> Run:
        if len(node.args) != 1 or not isinstance(node.args[0], syntax.Select):
            raise self._fail(node.at, "invalid argument to has() macro")
        selected = node.args[0]
        operand, schema = self._typed(selected.operand)
        name = unescape(selected.name)
        if field_node(schema, name) is UNDEFINED:
            raise self._fail(selected.at, f"undefined field '{selected.name}'")

        def run(scope: Scope) -> Json:
            found = operand(scope)
            if isinstance(found, Optional):
                found = found.value if found.present else {}
            if type(found) is not dict:
                raise overload()
            return name in found

        return run

    @staticmethod
    def _binds(args: tuple[syntax.Node, ...]) -> bool:
        return len(args) >= 2 and isinstance(args[0], syntax.Ident)

    def _macro(self, node: syntax.Call) -> Typed:
        target = node.target
        assert target is not None  # only methods are macros with a range
        source, schema = self._typed(target)
        names = [arg.name for arg in node.args[:2] if isinstance(arg, syntax.Ident)]
        two = node.function.startswith("transform") or (
            len(node.args) == 3 and len(names) == 2 and node.function != "map"
        )
        names = names[:2] if two else names[:1]
        bodies = node.args[len(names) :]
        if not 1 <= len(bodies) <= 2 or (len(bodies) == 2 and node.function in ("all", "exists")):
            raise self._fail(node.at, f"invalid arguments to {node.function}() macro")
        item = schema.items if schema is not None else None
        saved = {name: self._local[name] for name in names if name in self._local}
        for name in names:
            self._local[name] = None
        if item is not None:
            self._local[names[-1]] = item
        runs = [self._run(body) for body in bodies]
        for name in names:
            del self._local[name]
        self._local.update(saved)
        build = MACROS[node.function]
        kept = schema if node.function == "filter" else None
        return build(Loop(source, names), runs), kept

    def _optional_map(self, node: syntax.Call) -> Run:
        variable, body = node.args
        if node.target is None or not isinstance(variable, syntax.Ident):
            raise self._fail(node.at, f"invalid arguments to {node.function}() macro")
        operand = self._run(node.target)
        name = variable.name
        saved = {name: self._local[name]} if name in self._local else {}
        self._local[name] = None
        inner = self._run(body)
        del self._local[name]
        self._local.update(saved)
        flat = node.function == "optFlatMap"

        def run(scope: Scope) -> Json:
            found = operand(scope)
            if not isinstance(found, Optional):
                raise overload()
            if not found.present:
                return NONE
            with Bound(scope, (name,)):
                scope[name] = found.value
                result = inner(scope)
            return result if flat else Optional(result)

        return run
