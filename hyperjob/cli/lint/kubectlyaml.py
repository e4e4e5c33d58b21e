"""YAML as kubectl reads it: the YAML 1.1 of go-yaml, converted to JSON.

What differs from PyYAML was compared with kubectl: `tests/unit/cli/data/kubectl-texts.jsonl`.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hyperjob_core.yamltext import PLAIN, SPECIAL, YAML_TAG

MAX_DEPTH: Final = 100
_NULLS: Final = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Remark:
    """What kubectl dropped without a word, with its line."""

    line: int
    text: str


class Loader(yaml.SafeLoader):
    """Reads YAML as kubectl does, with a bound for the depth of its nodes."""

    def __init__(self, text: str, first_line: int = 0) -> None:
        super().__init__(text)
        self.line = first_line  # the reader's own count, which each mark copies
        self._depth = 0
        self._remarks: list[Remark] = []

    def take_remarks(self) -> tuple[Remark, ...]:
        """Return the remarks since the last call."""
        taken, self._remarks = tuple(self._remarks), []
        return taken

    def scan_to_next_token(self) -> None:
        """Skip tabs too where libyaml does: behind a token, and in braces."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            while self.peek() == "\t":
                self.forward()
            super().scan_to_next_token()

    def process_directives(self) -> Any:  # noqa: ANN401 - as in PyYAML
        """Refuse a directive: kubectl cuts the file at each `---`, and the directive is alone."""
        if self.check_token(yaml.DirectiveToken):
            mark = self.peek_token().start_mark  # type: ignore[no-untyped-call]
            raise yaml.parser.ParserError(None, None, "kubectl reads no %directive", mark)
        return super().process_directives()  # type: ignore[no-untyped-call]

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        """Compose a node; raises ValueError for a node that is nested too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("is nested too deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping with texts as keys; of a key that is there twice the last counts."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("a key must be a string", key)
            if key.tag == f"{YAML_TAG}null":
                raise _error("a key is null; quote it", key)
            if key.tag != f"{YAML_TAG}merge" and key.value in seen:
                text = f'key "{key.value}" is there twice: kubectl takes the last one'
                self._remarks.append(Remark(key.start_mark.line + 1, text))
            seen.add(key.value)
        made = super().construct_mapping(node, deep=deep)
        return {_as_text(key): value for key, value in made.items()}


def _as_text(key: object) -> str:
    """Return a key of a mapping as kubectl does, which has texts only."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _error(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _float(loader: Loader, node: yaml.ScalarNode) -> float | str:
    if SPECIAL.match(node.value):
        raise _error(f"kubectl cannot write {node.value} as JSON; quote it", node)
    number: float = loader.construct_yaml_float(node)
    return number if math.isfinite(number) else str(node.value)


def _null(_: Loader, node: yaml.ScalarNode) -> None:
    if node.value not in _NULLS:
        raise _error(f"cannot decode {node.value!r} as a !!null", node)


def _binary(loader: Loader, node: yaml.ScalarNode) -> str:
    raw: bytes = loader.construct_yaml_binary(node)
    return raw.decode(errors="replace")


def _own_tag(loader: Loader, suffix: str, node: yaml.Node) -> object:
    """Ignore a tag of an author."""
    del suffix
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in pairs
        if tag.removeprefix(YAML_TAG) not in {"timestamp", "int", "float", "value"}
    ]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind, _pattern, _first in PLAIN:
    Loader.add_implicit_resolver(YAML_TAG + _kind, _pattern, [*_first])
Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
Loader.add_constructor(f"{YAML_TAG}float", _float)
Loader.add_constructor(f"{YAML_TAG}null", _null)
Loader.add_constructor(f"{YAML_TAG}binary", _binary)
Loader.add_constructor(f"{YAML_TAG}merge", lambda _, node: node.value)
Loader.add_multi_constructor("!", _own_tag)
