"""The syntax of CEL: text to a tree.

Pure. Macros stay calls; what they mean is `celcompile`'s. Raises CelSyntaxError with the place.
"""

import ast
import re
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from hyperjob_sandbox.apiserver.jsonvalue import Json

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
    |(?P<string>[rRbB]{0,2}(?:\"{3}.*?(?<!\\)\"{3}|'{3}.*?(?<!\\)'{3}
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+|\d+[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<symbol>\|\||&&|[=!<>]=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_MAX_DEPTH: Final = 50
RESERVED: Final = frozenset(
    {
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
        "namespace",
        "package",
        "return",
        "var",
        "void",
        "while",
    }
)
_BINARY: Final = (
    ("||",),
    ("&&",),
    ("<", "<=", ">", ">=", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)


class CelSyntaxError(ValueError):
    """An expression that is no CEL."""


class UInt(int):
    """An unsigned integer, which does not mix with signed ones in arithmetic."""


class Literal(NamedTuple):
    """A constant."""

    value: Json


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, by its place in the source for error texts."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """A field of an operand; optional where it was written with `.?`."""

    operand: "Node"
    name: str
    at: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An item of a list or map; optional where it was written with `[?`."""

    operand: "Node"
    key: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (it has a target), a macro or an operator."""

    function: str
    args: tuple["Node", ...]
    at: int
    target: "Node | None" = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; an item marked optional is left out where it has no value."""

    items: tuple["Node", ...]
    optional: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map, as pairs."""

    entries: tuple[tuple["Node", "Node"], ...]


Node: TypeAlias = Literal | Ident | Select | Index | Call | ListOf | MapOf


def parse(source: str) -> Node:
    """Return the tree of an expression; raise CelSyntaxError."""
    return _Parser(source).parse()


def location(source: str, at: int) -> tuple[int, int]:
    """Return line and column (from 1) of a place in the source."""
    line_start = source.rfind("\n", 0, at) + 1
    return source.count("\n", 0, at) + 1, at - line_start + 1


def complaint(source: str, at: int, text: str) -> str:
    """Return an error text that points at a place, as CEL compilers print it."""
    line, column = location(source, at)
    shown = source.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column}: {text}\n | {shown}\n | {'.' * (column - 1)}^"


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens: list[_Token] = []
        self._depth = 0
        self._next = 0
        position = 0
        while position < len(source):
            found = _TOKEN.match(source, position)
            if found is None:
                raise self._error(position, f"Syntax error: token recognition error at: "
                                            f"'{source[position]}'")  # fmt: skip
            kind = found.lastgroup or ""
            if kind != "space":
                self._tokens.append(_Token(kind, found[0], position))
            position = found.end()
        self._tokens.append(_Token("end", "<EOF>", len(source)))

    def _error(self, at: int, text: str) -> CelSyntaxError:
        return CelSyntaxError(complaint(self._source, at, text))

    def _unexpected(self) -> CelSyntaxError:
        token = self._tokens[self._next]
        return self._error(token.at, f"Syntax error: mismatched input '{token.text}'")

    def _peek(self) -> str:
        token = self._tokens[self._next]
        return token.text if token.kind in ("symbol", "name", "end") else ""

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, *texts: str) -> _Token | None:
        return self._take() if self._peek() in texts else None

    def _expect(self, text: str) -> _Token:
        token = self._accept(text)
        if token is None:
            raise self._unexpected()
        return token

    def parse(self) -> Node:
        tree = self._expression()
        if self._peek() != "<EOF>":
            raise self._unexpected()
        return tree

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(0, "expression recursion limit exceeded")
        condition = self._binary(0)
        if question := self._accept("?"):
            chosen = self._binary(0)
            self._expect(":")
            other = self._expression()
            condition = Call("_?_:_", (condition, chosen, other), question.at)
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while operator := self._accept(*_BINARY[level]):
            right = self._binary(level + 1)
            left = Call(f"_{operator.text}_", (left, right), operator.at)
        return left

    def _unary(self) -> Node:
        operator = self._accept("!", "-")
        if operator is None:
            return self._member()
        following = self._tokens[self._next]
        if operator.text == "-" and following.kind == "number":
            self._tokens[self._next] = _Token("number", f"-{following.text}", operator.at)
            return self._member()
        return Call(f"{operator.text}_", (self._unary(),), operator.at)

    def _member(self) -> Node:
        node = self._primary()
        while token := self._accept(".", ".?", "[", "[?"):
            if token.text in ("[", "[?"):
                key = self._expression()
                self._expect("]")
                node = Index(node, key, optional=token.text == "[?")
                continue
            name = self._take()
            if name.kind != "name":
                self._next -= 1
                raise self._unexpected()
            if token.text == "." and self._accept("("):
                node = Call(name.text, self._arguments(), name.at, target=node)
            else:
                text = name.text.strip("`")
                node = Select(node, text, token.at, optional=token.text == ".?")
        return node

    def _arguments(self) -> tuple[Node, ...]:
        args: list[Node] = []
        while not self._accept(")"):
            args.append(self._expression())
            if not self._accept(","):
                self._expect(")")
                break
        return tuple(args)

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == "string":
            return Literal(self._text(token))
        if token.kind == "number":
            return Literal(self._number(token))
        match token.text:
            case "(":
                inner = self._expression()
                self._expect(")")
                return inner
            case "[" | "[?":
                return self._list(first_optional=token.text == "[?")
            case "{":
                return self._map()
            case "true" | "false":
                return Literal(token.text == "true")
            case "null":
                return Literal(None)
        if token.kind != "name" or token.text == "in":
            self._next -= 1
            raise self._unexpected()
        if token.text in RESERVED:
            raise self._error(token.at, f"reserved identifier: {token.text}")
        if self._accept("("):
            return Call(token.text, self._arguments(), token.at)
        return Ident(token.text, token.at)

    def _list(self, *, first_optional: bool) -> Node:
        items: list[Node] = []
        optional: list[bool] = []
        while not self._accept("]"):
            first = first_optional and not items
            optional.append(first or self._accept("?") is not None)
            items.append(self._expression())
            if not self._accept(","):
                self._expect("]")
                break
        return ListOf(tuple(items), tuple(optional))

    def _map(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return MapOf(tuple(entries))

    def _number(self, token: _Token) -> Json:
        text = token.text
        if text[-1] in "uU":
            value = int(text[:-1], 0)
            if not 0 <= value < 2**64:
                raise self._error(token.at, "invalid uint literal")
            return UInt(value)
        if re.search(r"[.eE]", text) and "x" not in text.lower():
            return float(text)
        value = int(text, 16) if "x" in text.lower() else int(text)
        if not -(2**63) <= value < 2**63:
            raise self._error(token.at, "invalid int literal")
        return value

    def _text(self, token: _Token) -> Json:
        found = re.match(r"[rRbB]*", token.text)
        prefix = found[0].lower() if found else ""
        body = token.text[len(prefix) :]
        if not body.startswith(("'''", '"""')):
            body = body.replace("\n", "\\n")
        if "r" not in prefix:
            body = body.replace("\\`", "`").replace("\\?", "?")
        try:
            return (
                ast.literal_eval(("r" if "r" in prefix else "") + body).encode()
                if ("b" in prefix and "\\" not in body)
                else ast.literal_eval(prefix + body)
            )
        except (SyntaxError, ValueError) as error:
            raise self._error(token.at, f"invalid string literal: {error}") from error
