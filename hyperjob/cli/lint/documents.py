"""Read objects from YAML or JSON files as kubectl does, with the line of each field.

It is the YAML 1.1 of go-yaml, converted to JSON. What differs from PyYAML was compared with
kubectl: `tests/unit/cli/data/kubectl-texts.jsonl`.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob_core.api.meta import Object
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


MAX_BYTES: Final = 7 * 1024 * 1024
MAX_NODES: Final = 100_000
"""The fields of an object: ten times those of a HyperJob with 400 replicatedJobs."""
MAX_LETTERS: Final = 16 * 1024 * 1024
"""The letters of the paths of all fields of an object together."""
_QUICK: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDINGS: Final = (".yaml", ".yml", ".json")
LISTS: Final = ("List", "HyperJobList")


class UnreadableError(ValueError):
    """A file that cannot be read as YAML or JSON; the text names the line and the reason."""


class TooManyFieldsError(ValueError):
    """A document that is no HyperJob: reading all its fields would take minutes."""

    def __init__(self) -> None:
        super().__init__(f"has more than {MAX_NODES} fields in one object; divide the file")


@dataclass(frozen=True, slots=True)
class Document:
    """An object of a file, its YAML node, the line of each of its fields, and what was dropped.

    The object has no null: `kubectl apply` and the API server drop the fields that are null.
    """

    content: Object
    node: yaml.MappingNode
    lines: Mapping[str, int]
    remarks: tuple[Remark, ...] = ()

    @property
    def line(self) -> int:
        """The line where the object starts, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def line_of(self, path: str) -> int:
        """Return the line of a field, or of its nearest parent if the field is absent."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.line


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file and its objects."""

    name: str
    text: str
    documents: tuple[Document, ...]


def files_of(name: str) -> list[str]:
    """List the files of a folder as kubectl does, by extension; for a file, the file alone."""
    folder = Path(name)
    if name == "-" or not folder.is_dir():
        return [name]
    return [str(path) for path in sorted(folder.iterdir()) if path.suffix in _ENDINGS]


def read(name: str) -> ManifestFile:
    """Read a file, or standard input for `-`; raises UnreadableError."""
    text = _text_of(name)
    try:
        documents = tuple(parse(text))
    except yaml.YAMLError as error:
        raise UnreadableError(_in_one_line(error)) from None
    except ValueError as error:
        raise UnreadableError(str(error)) from None
    except RecursionError:
        raise UnreadableError("is nested too deep") from None
    return ManifestFile(name, text, documents)


def parse(text: str) -> Iterator[Document]:
    """Yield the objects of a text and the items of a List; raises YAMLError, ValueError."""
    line = 0
    for part in _parts(text):
        yield from _parsed(part, line)
        line += part.count("\n")


def _parts(text: str) -> Iterator[str]:
    """Yield the values of a stream of JSON, one by one; any other text as a whole."""
    decoder, rest = json.JSONDecoder(), text
    while rest.lstrip().startswith("{"):
        try:
            end = decoder.raw_decode(rest, len(rest) - len(rest.lstrip()))[1]
        except (ValueError, RecursionError):
            break
        yield rest[:end]
        rest = rest[end:]
    if rest.strip() or rest is text:
        yield rest


def _parsed(text: str, first: int) -> Iterator[Document]:
    """Yield the objects of a stream of YAML whose first line has this number in its file."""
    _refuse_many(text)
    loader = Loader(text, first)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            _refuse_unbounded(node)
            content = loader.construct_document(node)
            if content is None:
                continue
            if not isinstance(node, yaml.MappingNode):
                problem = "is not an object"
                raise yaml.constructor.ConstructorError(None, None, problem, loader.get_mark())
            yield from _unpack(without_nulls(content), node, loader.take_remarks())
    finally:
        loader.dispose()


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - any value of JSON
    """Return a value without the fields that are null; items of lists stay."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def _refuse_many(text: str) -> None:
    """Raise ValueError for a document with too many fields, before the slow reading of it.

    libyaml reads half a million fields in half a second. Its errors in YAML are left to the slow
    reader, which names their lines.
    """
    fields = 0
    try:
        for event in yaml.parse(text, Loader=_QUICK):
            fields += 1
            if isinstance(event, yaml.DocumentStartEvent):
                fields = 0
            elif isinstance(event, yaml.CollectionEndEvent):
                fields -= 1
            elif fields > MAX_NODES:
                raise TooManyFieldsError
    except yaml.YAMLError:
        return


def _refuse_unbounded(root: yaml.Node) -> None:
    """Raise ValueError for a document that refers to itself, or is too large without aliases.

    An alias counts as a copy of its node; the function runs before any copy is made.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        at = id(node)
        parts = _children(node) if at not in sizes else []
        missing = [part for part in parts if id(part) not in sizes]
        if not missing:
            sizes.setdefault(at, 1 + sum(sizes[id(part)] for part in parts))
            open_nodes.discard(at)
            stack.pop()
            if sizes[at] > MAX_NODES:
                raise TooManyFieldsError
            continue
        if at in open_nodes:
            line = node.start_mark.line + 1
            raise ValueError(f"line {line}: the value contains itself by an alias")
        open_nodes.add(at)
        stack.extend(missing)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _unpack(
    content: Object, node: yaml.MappingNode, remarks: tuple[Remark, ...]
) -> Iterator[Document]:
    """Yield an object, or the objects of a List, of which the first has the remarks."""
    items = content.get("items")
    if content.get("kind") not in LISTS or not isinstance(items, list):
        yield Document(content, node, dict(_lines(node)), remarks)
        return
    if not content.get("apiVersion"):
        raise UnreadableError(f"line {node.start_mark.line + 1}: the List has no apiVersion")
    sequence = [value for key, value in node.value if key.value == "items"][-1]
    for item, item_node in zip(items, sequence.value, strict=True):
        if not isinstance(item_node, yaml.MappingNode):
            line = item_node.start_mark.line + 1
            raise UnreadableError(f"line {line}: an item of the List is not an object")
        yield Document(item, item_node, dict(_lines(item_node)), remarks)
        remarks = ()


def _lines(root: yaml.Node) -> Iterator[tuple[str, int]]:
    """Yield the path and line of each field; a map's entry has two paths: `a.b` and `a[b]`."""
    letters = 0
    stack: list[tuple[str, yaml.Node]] = [("", root)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                line = key.start_mark.line + 1
                name = f"{path}.{key.value}" if path else str(key.value)
                letters += len(name)
                if letters > MAX_LETTERS:
                    raise ValueError(f"has paths of more than {MAX_LETTERS} letters")
                yield name, line
                yield f"{path}[{key.value}]", line
                stack.append((name, value))
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                yield f"{path}[{index}]", value.start_mark.line + 1
                stack.append((f"{path}[{index}]", value))


def _text_of(name: str) -> str:
    """Read a file of at most MAX_BYTES, or standard input; raises UnreadableError."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise UnreadableError(
                f"is larger than {MAX_BYTES} bytes, more than the API server accepts for an object"
            )
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8: {error.reason} at byte {error.start}") from None


def _in_one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)


def manifest_of(name: str) -> ManifestFile:
    """Read a file of objects, or standard input for `-`; FailureError where that is impossible."""
    try:
        return read(name)
    except UnreadableError as error:
        raise FailureError(f"{name}: {error}", code=Code.USAGE) from None
