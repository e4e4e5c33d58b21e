"""Label and field selectors: the query grammar, LabelSelector objects, matching.

Pure. A selector that cannot be parsed raises SelectorError.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hyperjob_core.api.field import go_quote
from hyperjob_core.api.formats import label_value, qualified_name
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at

_TERM = re.compile(
    r"\s*(?:!\s*(?P<absent>[^\s=!(),<>]+)"
    r"|(?P<key>[^\s=!(),<>]+)(?:"
    r"\s+(?P<set>in|notin)\s*\((?P<values>[^()=!<>]*)\)"
    r"|\s*(?P<operator>==|!=|=)\s*(?P<value>[^\s=!(),<>]*))?)\s*(?:,|$)"
)
_SET_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class SelectorError(ValueError):
    """A selector that says nothing that can be matched."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; operators are `in notin exists !`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy the term."""
        found = labels.get(self.key)
        match self.operator:
            case "in":
                return found is not None and found in self.values
            case "notin":
                return found is None or found not in self.values
            case "exists":
                return found is not None
            case _:
                return found is None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Terms that all must hold; no term at all selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether labels satisfy every term."""
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


def parse_labels(text: str) -> LabelSelector:
    """Parse the `labelSelector` query parameter."""
    terms: list[Requirement] = []
    position = 0
    while position < len(text.rstrip()):
        found = _TERM.match(text, position)
        if found is None:
            raise SelectorError(f"found {go_quote(text[position:])}, expected a requirement")
        terms.append(_term(found))
        position = found.end()
    if text.rstrip().endswith(","):
        raise SelectorError("found '', expected: identifier after ','")
    return LabelSelector(tuple(terms))


def _term(found: re.Match[str]) -> Requirement:
    """Return the term of one match of `_TERM`."""
    if found["absent"]:
        return _requirement(found["absent"], "!", ())
    if found["set"]:
        values = sorted({value.strip() for value in found["values"].split(",")})
        return _requirement(found["key"], found["set"], tuple(values))
    if found["operator"] is None:
        return _requirement(found["key"], "exists", ())
    word = "notin" if found["operator"] == "!=" else "in"
    return _requirement(found["key"], word, (found["value"],))


def label_selector(selector: Object) -> LabelSelector:
    """Read a LabelSelector object; an empty one selects everything."""
    terms = [
        _requirement(key, "in", (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in _SET_OPERATORS:
            raise SelectorError(f"{go_quote(operator)} is not a valid label selector operator")
        values = tuple(expression.get("values") or ())
        terms.append(_requirement(expression.get("key", ""), _SET_OPERATORS[operator], values))
    return LabelSelector(tuple(terms))


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a term; raises SelectorError for a malformed key or value, or without values."""
    if problems := qualified_name(key):
        raise SelectorError(f"<nil>: Invalid value: {go_quote(key)}: {'; '.join(problems)}")
    if operator in ("in", "notin") and not values:
        raise SelectorError(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    for i, value in enumerate(values):
        if problems := label_value(value):
            text = f"values[{i}][{key}]: Invalid value: {go_quote(value)}: {'; '.join(problems)}"
            raise SelectorError(text)
    return Requirement(key, operator, values)


def parse_fields(text: str) -> LabelSelector:
    """Parse the `fieldSelector` query parameter; a backslash escapes in values.

    A field selector is matched as labels are, with the texts of the fields that it names.
    """
    terms = []
    for part in re.findall(r"(?:\\.|[^,\\])+", text):
        found = re.match(r"([^=!\\]+)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)$", part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\(.)", r"\1", found[3])
        terms.append(Requirement(found[1], "notin" if found[2] == "!=" else "in", (value,)))
    return LabelSelector(tuple(terms))


def field_value(obj: Object, path: str) -> str:
    """Read a field such as `status.phase` as the text that a field selector compares with."""
    found = at(obj, *path.split("."))
    if found is None:
        return ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
