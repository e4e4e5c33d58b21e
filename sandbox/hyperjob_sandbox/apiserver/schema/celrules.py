"""The rules of a schema (`x-kubernetes-validations`): compiled once, run on every write.

All rules run, also after one has failed. A transition rule, which names `oldSelf`, runs only
where there is an old value to compare with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api import field
from hyperjob_core.api.field import OMIT, FieldError, Path
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

_VARIABLES: Final = ("self", "oldSelf")


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule with what it says when it fails."""

    source: Object
    expression: Expression

    @property
    def transition(self) -> bool:
        """Tell whether the rule compares with the old value."""
        return "oldSelf" in self.expression.variables

    @property
    def label(self) -> str:
        """Return what names the rule in an error: its message, else its text."""
        return str(self.source.get("message") or self.source["rule"]).strip()

    def error(self, path: Path, value: Json) -> FieldError:
        """Return the error of a value that breaks the rule."""
        detail = self.label if self.source.get("message") else f"failed rule: {self.label}"
        below = str(self.source.get("fieldPath") or "").removeprefix(".")
        return field.invalid(path.child(below) if below else path, value, detail)


class Rules:
    """The rules of a node and of all nodes below it; only nodes with rules below are kept."""

    __slots__ = ("_additional", "_items", "_node", "_properties", "_rules")

    def __init__(self, node: Node) -> None:
        """Compile; raise CelError."""
        self._node = node
        self._rules = tuple(
            Rule(source, Expression(source["rule"], variables=_VARIABLES))
            for source in node.raw.get("x-kubernetes-validations") or ()
        )
        below = {name: _kept(child) for name, child in node.properties.items()}
        self._properties = {name: rules for name, rules in below.items() if rules is not None}
        self._additional = _kept(node.additional)
        self._items = _kept(node.items)

    def needed(self) -> bool:
        """Tell whether there is any rule here or below."""
        return bool(self._rules or self._properties or self._additional or self._items)

    def validate(self, value: Json, old: Json, path: Path) -> Iterator[FieldError]:
        """Yield what the rules have against a value; `old` None: there is nothing to compare."""
        if value is None:
            return
        yield from self._run(value, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, item in value.items():
                if (rules := self._properties.get(key)) is not None:
                    yield from rules.validate(item, before.get(key), path.child(key))
                elif self._additional is not None and key not in self._node.properties:
                    yield from self._additional.validate(item, before.get(key), path.key(key))
        elif isinstance(value, list) and self._items is not None:
            items = old if isinstance(old, list) and self._node.keys else []
            earlier = {self._key(item): item for item in items}
            for i, item in enumerate(value):
                yield from self._items.validate(item, earlier.get(self._key(item)), path.index(i))

    def _key(self, item: Json) -> str:
        keys = self._node.keys
        return str([item.get(key) for key in keys] if keys and isinstance(item, dict) else item)

    def _run(self, value: Json, old: Json, path: Path) -> Iterator[FieldError]:
        values: Mapping[str, Json] = {"self": value} | ({"oldSelf": old} if old is not None else {})
        kind = self._node.type
        for rule in self._rules:
            if rule.transition and old is None:
                continue
            try:
                holds = rule.expression.evaluate(values)
            except CelError as error:
                yield field.invalid(path, kind, f"{error} evaluating rule: {rule.label}")
                continue
            # A value that broke the rule before and did not change may stay.
            if holds is True or (not rule.transition and jsonvalue.equal(value, old)):
                continue
            yield rule.error(path, OMIT if kind in ("object", "array") else value)


def _kept(node: Node | None) -> Rules | None:
    rules = Rules(node) if node is not None else None
    return rules if rules is not None and rules.needed() else None
