"""Label and field selectors: the query grammar, LabelSelector objects, matching.

Pure. A selector that cannot be parsed raises SelectorError with the API server's text.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hyperjob.api.field import go_quote
from hyperjob.api.formats import label_value, qualified_name
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json

_TOKEN = re.compile(r"\s*(?:(notin|in)(?=[\s=!(),<>]|$)|(==|!=|[=!(),<>])|([^\s=!(),<>]+))\s*")
_BINARY = ("=", "==", "!=", "in", "notin", ">", "<")
_EXPECTED_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_SET_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class SelectorError(ValueError):
    """A selector that says nothing that can be matched."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; operators are `in notin = == != exists ! > <`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy the term."""
        found = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return found is not None and found in self.values
            case "notin" | "!=":
                return found is None or found not in self.values
            case "exists":
                return found is not None
            case "!":
                return found is None
            case _:
                return found is not None and self._compares(found)

    def _compares(self, found: str) -> bool:
        if not _is_integer(found):
            return False
        wanted = int(self.values[0])
        return int(found) > wanted if self.operator == ">" else int(found) < wanted

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Terms that all must hold; no term at all selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Tell whether labels satisfy every term."""
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_labels(text: str) -> LabelSelector:
    """Parse the `labelSelector` query parameter."""
    return LabelSelector(tuple(sorted(_Parser(text).parse(), key=lambda term: term.key)))


def label_selector(selector: Object | None) -> LabelSelector | None:
    """Read a LabelSelector object; None selects nothing, an empty one everything."""
    if selector is None:
        return None
    terms = [
        _requirement(key, "=", (value,))
        for key, value in sorted((selector.get("matchLabels") or {}).items())
    ]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in _SET_OPERATORS:
            raise SelectorError(f"{go_quote(operator)} is not a valid label selector operator")
        terms.append(
            _requirement(
                expression.get("key", ""),
                _SET_OPERATORS[operator],
                tuple(expression.get("values") or ()),
            )
        )
    return LabelSelector(tuple(sorted(terms, key=lambda term: term.key)))


def _is_integer(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]+", text)) and -(2**63) <= int(text) < 2**63


def _quoted(values: Collection[str]) -> str:
    return "[" + ",".join(map(go_quote, values)) + "]"


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    problems = [
        f"key: Invalid value: {go_quote(key)}: {'; '.join(p)}" for p in [qualified_name(key)] if p
    ]
    if operator in ("in", "notin") and not values:
        problems.append(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if operator in ("=", "==", "!=") and len(values) != 1:
        problems.append(
            f"values: Invalid value: {_quoted(values)}: "
            "exact-match compatibility requires one single value"
        )
    if operator in ("exists", "!") and values:
        problems.append(
            f"values: Invalid value: {_quoted(values)}: "
            "values set must be empty for exists and does not exist"
        )
    if operator in (">", "<"):
        problems += [
            f"values[{i}]: Invalid value: {go_quote(value)}: "
            "for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if not _is_integer(value)
        ]
    problems += [
        f"values[{i}][{key}]: Invalid value: {go_quote(value)}: {'; '.join(texts)}"
        for i, value in enumerate(values)
        if (texts := label_value(value))
    ]
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, values)


class _Parser:
    """Recursive descent over a label selector; `in` and `notin` may also be values."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        text = text.strip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            assert found is not None  # every character belongs to one of the three classes
            word, symbol, name = found.groups()
            self._tokens.append((word or symbol or "name", word or symbol or name or ""))
            position = found.end()
        self._tokens.append(("end", ""))
        self._at = 0

    def _peek(self, *, value: bool = True) -> tuple[str, str]:
        kind, text = self._tokens[min(self._at, len(self._tokens) - 1)]
        return ("name" if value and kind in ("in", "notin") else kind), text

    def _take(self, *, value: bool = True) -> tuple[str, str]:
        token = self._peek(value=value)
        self._at += 1
        return token

    def parse(self) -> list[Requirement]:
        terms: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == "end":
                return terms
            if kind not in ("name", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                terms.append(self._term())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from error
            kind, text = self._take()
            if kind == "end":
                return terms
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("name", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _term(self) -> Requirement:
        kind, key = self._take()
        negated = kind == "!"
        if negated:
            kind, key = self._take()
        if kind != "name":
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := qualified_name(key):
            raise SelectorError(f"<nil>: Invalid value: {go_quote(key)}: {'; '.join(problems)}")
        if negated:
            return _requirement(key, "!", ())
        if self._peek()[0] in ("end", ","):
            return _requirement(key, "exists", ())
        kind, text = self._take(value=False)
        if kind not in _BINARY:
            raise SelectorError(f"found '{text}', expected: {_EXPECTED_OPERATORS}")
        values = self._values() if kind in ("in", "notin") else self._exact_value()
        return _requirement(key, kind, values)

    def _exact_value(self) -> tuple[str, ...]:
        if self._peek()[0] in ("end", ","):
            return ("",)
        kind, text = self._take()
        if kind != "name":
            raise SelectorError(f"found '{text}', expected: identifier")
        return (text,)

    def _values(self) -> tuple[str, ...]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        values: set[str] = set()
        expects_name = True
        while True:
            kind, text = self._take()
            if kind == "name" and expects_name:
                values.add(text)
                expects_name = False
            elif kind in (",", ")"):
                if expects_name:
                    values.add("")
                if kind == ")":
                    return tuple(sorted(values))
                expects_name = True
            elif expects_name:
                raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
            else:
                raise SelectorError(f"found '{text}', expected: ',' or ')'")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector: a field equals a value, or does not."""

    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        escaped = re.sub(r"[\\,=]", lambda found: "\\" + found[0], self.value)
        return f"{self.field}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that all must hold; no term at all selects everything."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Tell whether every term holds, given how to read a field as text."""
        return all((value_of(term.field) == term.value) is term.equal for term in self.terms)

    def require(self, supported: Collection[str]) -> None:
        """Raise SelectorError for a field that cannot be selected by."""
        for term in self.terms:
            if term.field not in supported:
                raise SelectorError(f"field label not supported: {term.field}")

    def exact(self, field: str) -> str | None:
        """Return the one value that the selector demands of a field, if it does."""
        return next((t.value for t in self.terms if t.field == field and t.equal), None)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_fields(text: str) -> FieldSelector:
    """Parse the `fieldSelector` query parameter."""
    terms = []
    for part in sorted(re.findall(r"(?:\\.|[^,\\]|\\$)+", text)):
        found = re.search(r"!=|==|=", part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescape(part[found.end() :])
        terms.append(FieldTerm(part[: found.start()], found[0] != "!=", value))
    return FieldSelector(tuple(terms))


def _unescape(value: str) -> str:
    for found in re.finditer(r"\\(.?)|[,=]", value, re.DOTALL):
        if found[0][0] != "\\":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(found[0])}"
            )
        if found[1] not in ("\\", ",", "=") or not found[1]:
            raise SelectorError(f"invalid field selector: invalid escape sequence: {found[0]}")
    return re.sub(r"\\(.)", r"\1", value)


def field_value(obj: Object, path: str) -> str:
    """Read a field such as `status.phase` as the text that a field selector compares with."""
    found: Json = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
