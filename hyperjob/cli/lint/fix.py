"""Write defaults into a file and keep everything else: comments, order, quotes.

Defaulting only adds fields and fills in empty fields, which insertions into the text can do. The
module parses the result again; if it differs from the defaulted object, the file stays unchanged.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from hyperjob.cli.lint.check import is_hyperjob
from hyperjob.cli.lint.documents import Document, ManifestFile, parse
from hyperjob_core.api.meta import Object
from hyperjob_rules.defaulting import default
from hyperjob_rules.patch import diff


class CannotFixError(ValueError):
    """The defaults cannot be inserted into the text of a file."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement for the text between the offsets `start` and `end`."""

    start: int
    end: int
    text: str
    indent: int = 0


def fixed(source: ManifestFile) -> str:
    """Return the text of a file with the defaults of its HyperJobs; raises CannotFixError."""
    text = source.text if source.text.endswith("\n") or not source.text else source.text + "\n"
    edits = [edit for document in source.documents for edit in _edits(text, document)]
    # Edits from the end to the start keep the offsets of earlier edits valid. Where several
    # objects end at one offset, the fields of outer objects come last.
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (-edit.start, edit.indent)):
        text = text[: edit.start] + edit.text + text[edit.end :]
    if edits and not _is_as_meant(text, source):
        raise CannotFixError("has a YAML form into which the defaults cannot be inserted")
    return text if edits else source.text


def _is_as_meant(text: str, source: ManifestFile) -> bool:
    try:
        after = [document.content for document in parse(text)]
    except (yaml.YAMLError, ValueError):
        return False
    return after == [_with_defaults(document) for document in source.documents]


def _with_defaults(document: Document) -> Object:
    content = document.content
    return default(content) if is_hyperjob(content) else content


def _edits(text: str, document: Document) -> Iterator[Edit]:
    """Yield the edits for the defaults of a document, one for all fields that a mapping gets."""
    added: dict[int, tuple[yaml.MappingNode, dict[str, Any]]] = {}
    for operation in diff(document.content, _with_defaults(document)):
        *way, last = [_unescape(part) for part in operation["path"].split("/")[1:]]
        holder = _find(document.node, way)
        value = operation["value"]
        if operation["op"] == "add":
            if not isinstance(holder, yaml.MappingNode):
                raise CannotFixError(f"{operation['path']} cannot be inserted into the text")
            added.setdefault(holder.start_mark.index, (holder, {}))[1][last] = value
        else:
            old = _find(document.node, [*way, last])
            yield Edit(old.start_mark.index, _end_of(text, old), f" {_flow(value)}".lstrip())
    for holder, fields in added.values():
        yield _insertion(text, holder, fields)


def _insertion(text: str, holder: yaml.MappingNode, fields: dict[str, Any]) -> Edit:
    """Return the edit that adds fields at the end of a mapping."""
    if holder.flow_style:
        end = text.rindex("}", 0, holder.end_mark.index)
        quoted = bool(holder.value) and holder.value[0][0].style == '"'
        pairs = ", ".join(
            f"{json.dumps(name)}: {json.dumps(value)}"
            if quoted
            else f"{_flow(name)}: {_flow(value)}"
            for name, value in fields.items()
        )
        return Edit(end, end, f", {pairs}" if holder.value else pairs)
    indent = " " * holder.start_mark.column
    lines = "".join(f"{indent}{_flow(name)}: {_flow(value)}\n" for name, value in fields.items())
    at = _end_of(text, holder)
    # A block scalar ends at the start of the next line; other nodes end before the line break.
    if text[at - 1] != "\n":
        at = text.index("\n", at) + 1
    return Edit(at, at, lines, holder.start_mark.column)


def _end_of(text: str, node: yaml.Node) -> int:
    """Return the offset where the text of a node ends, without blank lines after a block."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end_of(text, node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end_of(text, node.value[-1])
    return int(node.end_mark.index)


def _find(node: yaml.Node, way: list[str]) -> yaml.Node:
    """Return the node below a node; `way` has the names of fields and the indexes of items."""
    for step in way:
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(step)]
            continue
        found = [value for key, value in node.value if key.value == step]
        if not found:
            raise CannotFixError(f"{step} comes from a merge key and cannot be changed")
        node = found[-1]
    return node


def _unescape(part: str) -> str:
    """Return a part of a JSON pointer as plain text."""
    return part.replace("~1", "/").replace("~0", "~")


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=2**31, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
