"""No decision hangs on the words of a message: programs compare reasons, codes and numbers."""

import ast
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[3]
WORDS = {"message", "note"}
OTHERS_WORDS = {
    "engine/hyperjob_engine/reasons/pods.py": "Volcano prints errors as Go structs behind counts",
    "controller/hyperjob_controller/apply/applier.py": "API servers have no code for a full quota",
    "engine/hyperjob_engine/members/podtroubles.py": "no code for a missing object or claim",
    "core/hyperjob_core/api/status.py": "shows the last line of what a container printed",
    "hyperjob/client/logs/reading.py": "shows the last lines of what a container printed",
    "hyperjob/cli/plan/planning.py": "leaves out of a table what the line above says already",
    "install/hyperjob_install/preflight/volcano.py": "no code for a webhook out of reach",
    "install/hyperjob_install/preflight/webhooks.py": "no code for a webhook out of reach",
    "install/hyperjob_install/problems.py": "the message alone has the manager",
}
"""Files that look into a message which is not ours, or only lay it out."""
LOOKING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"),
    *("split", "rsplit", "splitlines", "find", "rfind", "index", "rindex", "count"),
    *("lower", "upper", "casefold", "translate", "__contains__", "__eq__"),
}
PATTERNS = {"search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"}
READERS = {"get", "at", "string", "str", "getattr", "mapping"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Messages(ast.NodeVisitor):
    """Finds the lines of a module that look into the text of a message.

    A message is an attribute, a key or a parameter of that name, and each variable that holds one.
    """

    def __init__(self) -> None:
        self.found: list[int] = []
        self._names: set[str] = set()

    def is_message(self, node: ast.expr | None) -> bool:
        """Return whether the value of an expression is, or may be, the text of a message."""
        match node:
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
                return name in WORDS
            case ast.Name(id=name):
                return name in self._names
            case ast.NamedExpr(value=value) | ast.Subscript(value=value):
                return self.is_message(value)
            case ast.BoolOp(values=values):
                return any(map(self.is_message, values))
            case ast.IfExp(body=body, orelse=other):
                return self.is_message(body) or self.is_message(other)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args):
                keys = [arg for arg in args if isinstance(arg, ast.Constant)]
                if name in READERS and any(key.value in WORDS for key in keys):
                    return True
                return name in {"string", "str"} and any(map(self.is_message, args))
        return False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: Function) -> None:
        before = self._names
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        self._names = before | {each.arg for each in arguments if each.arg in WORDS}
        while True:
            known = set(self._names)
            for inner in ast.walk(node):
                self._assigned(inner)
            if self._names == known:
                break
        self.generic_visit(node)
        self._names = before

    def _assigned(self, node: ast.AST) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                if self.is_message(value):
                    self._names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if self.is_message(value):
                    self._names.add(name)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            name, value = node.func.attr, node.func.value
            looks = name in LOOKING and self.is_message(value)
            if looks or (name in PATTERNS and any(map(self.is_message, node.args))):
                self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            looks = isinstance(operator, ast.In | ast.NotIn) or any(map(_is_wording, (left, right)))
            if looks and any(map(self.is_message, (left, right))):
                self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self.is_message(node.subject):
            self.found.append(node.lineno)
        self.generic_visit(node)


def _is_wording(node: ast.expr) -> bool:
    """Return whether an expression is a text of our own; an empty one says that there is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text != ""
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.JoinedStr():
            return True
    return False


def matches(source: str) -> list[int]:
    """Return the lines that look into the text of a message."""
    found = Messages()
    found.visit(ast.parse(source))
    return found.found


def test_no_code_matches_on_the_text_of_a_message() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for folder in ROOMS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(word in (source := path.read_text()) for word in WORDS)
        if (lines := matches(source))
    }
    assert {name: found.get(name) for name in found.keys() ^ OTHERS_WORDS.keys()} == {}


@pytest.mark.parametrize(
    "source",
    [
        'job.message.startswith("has room")',
        'record.message.partition("; starts again at ")[0]',
        'job.message == "waits for room"',
        're.search("is not .*Ready", job.message)',
        "_ROOM.match(string(at(job, 'status', 'message')))",
        "any(word in job.message for word in WORDS)",
        'def f(job): text = job.message; return "room" in text',
        'def f(job): text = job.message; other = text or ""; return other.count("room")',
        'def f(job): return (text := job.message) and text.startswith("has")',
    ],
)
def test_what_is_forbidden_is_found(source: str) -> None:
    assert set(matches(source)) == {1}
