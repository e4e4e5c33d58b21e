"""The rules of a schema (`x-kubernetes-validations`): compiled once, run on every write.

Never stops at the first rule that fails. A transition rule, one that names `oldSelf`, runs only
where there is an old value to compare with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob.api import field
from hyperjob.api.field import OMIT, FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.correlation import Correlation, KeyedList
from hyperjob_sandbox.apiserver.schema.schemanode import Node

VARIABLES: Final = ("self", "oldSelf")
_MAX_MESSAGE_BYTES: Final = 5 * 1024


def compile_rule(text: str, node: Node) -> Expression:
    """Compile a rule of a schema, whose fields it may name; raise CelError."""
    return Expression(text, variables=VARIABLES, schemas=dict.fromkeys(VARIABLES, node))


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule with what it says when it fails."""

    source: Object
    expression: Expression | None
    message_expression: Expression | None
    problem: str

    @classmethod
    def compile(cls, source: Object, node: Node) -> "Rule":
        """Compile a rule; one that does not compile refuses every value it is asked about."""
        try:
            expression = compile_rule(source["rule"], node)
            text = source.get("messageExpression")
            message = compile_rule(text, node) if text else None
        except CelError as error:
            return cls(source, None, None, str(error))
        return cls(source, expression, message, "")

    @property
    def transition(self) -> bool:
        """Tell whether the rule compares with the old value."""
        return self.expression is not None and "oldSelf" in self.expression.variables

    @property
    def label(self) -> str:
        """Return what names the rule in an error: its message, else its text."""
        return str(self.source.get("message") or self.source["rule"]).strip()

    def message(self, values: Mapping[str, Json]) -> str:
        """Return what to say of a value that breaks the rule."""
        if self.message_expression is not None:
            try:
                text = self.message_expression.evaluate(values)
            except CelError:
                text = None
            if isinstance(text, str):
                text = text.strip()
                if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_BYTES:
                    return text
        return self.label if self.source.get("message") else f"failed rule: {self.label}"

    def error(self, path: Path, value: Json, detail: str) -> FieldError:
        """Return the error that the rule's reason and field path ask for."""
        path = _join(path, self.source.get("fieldPath") or "")
        match self.source.get("reason"):
            case "FieldValueForbidden":
                return field.forbidden(path, detail)
            case "FieldValueRequired":
                return field.required(path, detail)
            case "FieldValueDuplicate":
                return field.duplicate(path, value)
            case _:
                return field.invalid(path, value, detail)


def _join(path: Path, below: str) -> Path:
    """Append a rule's `fieldPath`, written as `.a.b` or `['a']`, to a path."""
    if not below:
        return path
    text = below.replace("['", ".").replace("']", "").removeprefix(".")
    return path.child(text)


@dataclass(frozen=True, slots=True)
class Past:
    """Where a value comes from: its own past, and the nearest past above that could be followed."""

    own: Correlation | None = None
    above: Correlation | None = None
    root: bool = True

    def key(self, name: str) -> "Past":
        """Follow a field."""
        if self.own is None:
            return self
        if self.root and name in ("apiVersion", "kind"):
            return Past(root=False)
        return Past(self.own.key(name), self.own, root=False)

    def index(self, position: int) -> "Past":
        """Follow a list item."""
        if self.own is None:
            return self
        return Past(self.own.index(position), self.own, root=False)

    def excuses(self) -> bool:
        """Tell whether an error here is one that was there before."""
        nearest = self.own or self.above
        return nearest is not None and nearest.unchanged()


class Rules:
    """The rules of a node and of all nodes below it; only nodes with rules below are kept."""

    __slots__ = ("_additional", "_all_of", "_items", "_node", "_properties", "_rules")

    def __init__(self, node: Node, validations: Object) -> None:
        self._node = node
        self._rules = tuple(
            Rule.compile(source, node)
            for source in validations.get("x-kubernetes-validations") or ()
        )
        self._properties = {
            name: rules
            for name, child in (validations.get("properties") or {}).items()
            if name in node.properties and (rules := Rules(node.properties[name], child)).needed()
        }
        self._additional = self._below(node.additional, validations.get("additionalProperties"))
        self._items = self._below(node.items, validations.get("items"))
        self._all_of = tuple(
            rules
            for member in validations.get("allOf") or ()
            if (rules := Rules(node, member)).needed()
        )

    @staticmethod
    def _below(node: Node | None, validations: Json) -> "Rules | None":
        if node is None or not isinstance(validations, dict):
            return None
        rules = Rules(node, validations)
        return rules if rules.needed() else None

    def needed(self) -> bool:
        """Tell whether there is any rule here or below."""
        return bool(
            self._rules or self._properties or self._additional or self._items or self._all_of
        )

    def validate(self, value: Json, old: Json, past: Past, path: Path) -> Iterator[FieldError]:
        """Yield what the rules have against a value; `old` None: there is nothing to compare."""
        if value is None:
            return
        if self._rules:
            yield from self._run(value, old, past, path)
        for member in self._all_of:
            yield from member.validate(value, old, Past(None, past.above, past.root), path)
        if isinstance(value, dict):
            yield from self._fields(value, old if isinstance(old, dict) else {}, past, path)
        elif isinstance(value, list) and self._items is not None:
            keyed = KeyedList(
                old if isinstance(old, list) and self._node.list_type == "map" else (),
                self._node.list_map_keys,
            )
            for i, item in enumerate(value):
                before = keyed.get(item)
                yield from self._items.validate(item, before, past.index(i), path.index(i))

    def _fields(self, value: Object, old: Object, past: Past, path: Path) -> Iterator[FieldError]:
        for key, item in value.items():
            if (rules := self._properties.get(key)) is not None:
                yield from rules.validate(item, old.get(key), past.key(key), path.child(key))
            elif self._additional is not None and key not in self._node.properties:
                yield from self._additional.validate(
                    item, old.get(key), past.key(key), path.key(key)
                )

    def _run(self, value: Json, old: Json, past: Past, path: Path) -> Iterator[FieldError]:
        values = {"self": value}
        if old is not None:
            values["oldSelf"] = old
        kind = self._node.type
        for rule in self._rules:
            if rule.expression is None:
                yield field.invalid(path, kind, f"rule compile error: {rule.problem}")
                continue
            if rule.transition and old is None:
                continue
            try:
                holds = rule.expression.evaluate(values)
            except CelError as error:
                yield field.invalid(path, kind, _failure(error, rule))
                continue
            if holds is True or (not rule.transition and past.excuses()):
                continue
            shown = OMIT if kind in ("object", "array") else value
            yield rule.error(path, shown, rule.message(values))


def _failure(error: CelError, rule: Rule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        return (
            f"'{text}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.label}"
        )
    return f"{text} evaluating rule: {rule.label}"
