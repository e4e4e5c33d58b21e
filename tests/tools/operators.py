"""Places of a Python file where one small change makes a mutant.

A mutant replaces the source text of one expression or statement; every other byte stays.
Texts, annotations, decorators, defaults of parameters, imports, assertions and raised errors are
left alone.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_ARITHMETIC: Final = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.Mod: ("%", "+"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_Node = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the bytes `start:end` of a file become `text`; `line` counts from 1."""

    path: str
    line: int
    start: int
    end: int
    text: str
    operator: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def lines_at_import(source: bytes) -> set[int]:
    """Return the lines outside of all functions."""
    tree = ast.parse(source)
    lines = set(range(1, source.count(b"\n") + 2))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines -= set(range(node.body[0].lineno, node.end_lineno + 1))
    return lines


def mutants(path: str, source: bytes) -> list[Mutant]:
    """List the mutants of one file, in the order of their places."""
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))

    def start(node: _Node) -> int:
        return offsets[node.lineno - 1] + node.col_offset

    def end(node: _Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return offsets[node.end_lineno - 1] + node.end_col_offset

    def between(left: _Node, right: _Node, old: str, new: str) -> str:
        """Return the text of both with the operator between them exchanged."""
        gap = source[end(left) : start(right)].decode()
        return text(left) + gap.replace(old, new, 1) + text(right)

    def text(node: _Node) -> str:
        return source[start(node) : end(node)].decode()

    def swapped(node: ast.expr, left: ast.expr, right: ast.expr, old: str, new: str) -> str:
        head = source[start(node) : start(left)].decode()
        tail = source[end(right) : end(node)].decode()
        return head + between(left, right, old, new) + tail

    found = [
        Mutant(path, node.lineno, start(node), end(node), changed, operator)
        for node, changed, operator in _changes(ast.parse(source), text, swapped)
    ]
    return sorted(found, key=lambda each: (each.start, each.end, each.text))


def _changes(
    tree: ast.Module,
    text: Callable[[_Node], str],
    swapped: Callable[[ast.expr, ast.expr, ast.expr, str, str], str],
) -> Iterator[tuple[_Node, str, str]]:
    for node in _code(tree):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                old, new = _COMPARISONS[type(op)]
                yield node, swapped(node, left, right, old, new), "comparison"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                if not _is_text(left) and not _is_text(right):
                    old, new = _ARITHMETIC[type(op)]
                    yield node, swapped(node, left, right, old, new), "arithmetic"
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield node, f"({word.join(f'({text(each)})' for each in values)})", "and/or"
                for each in values:
                    rest = [f"({text(other)})" for other in values if other is not each]
                    same = " and " if isinstance(op, ast.And) else " or "
                    yield node, f"({same.join(rest)})", "operand dropped"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node, f"bool({text(operand)})", "not dropped"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield node, f"({text(operand)})", "minus dropped"
            case ast.Call(func=ast.Name(id=name), args=args) if name in _CALLS and args:
                yield node, _CALLS[name] + text(node)[len(name) :], "min/max, any/all"
            case ast.Constant(value=bool() as value):
                yield node, str(not value), "constant"
            case ast.Constant(value=int() | float() as value):
                yield node, str(value + 1), "constant"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yield node, f"({text(orelse)} if {text(test)} else {text(body)})", "if/else"
            case ast.If(test=test) | ast.While(test=test):
                yield test, f"not ({text(test)})", "condition"
            case ast.comprehension(ifs=[condition, *_]):
                yield condition, "True", "filter dropped"
            case ast.Return(value=ast.Constant(value=bool())):
                pass  # its constant is a place of its own, and no caller sees None for False
            case ast.Return(value=value) if value is not None and not _is_none(value):
                yield node, "return None", "return"
            case ast.Continue():
                yield node, "break", "continue/break"
            case ast.Break():
                yield node, "continue", "continue/break"
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield node, "pass", "statement dropped"


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs and has a true position: before Python 3.12 nothing in an f-string has."""
    for child in _parts(node):
        yield child
        if not isinstance(child, ast.JoinedStr):
            yield from _code(child)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Raise():
            return iter(())
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            return iter(body)
        case ast.AnnAssign(value=value):
            return iter(() if value is None else (value,))
    return ast.iter_child_nodes(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
