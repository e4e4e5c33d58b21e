"""No decision hangs on the words of a message: programs compare reasons, codes and numbers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("controller", "hyperjob/cli", "hyperjob/client")
MATCHING = {"startswith", "endswith", "partition", "rpartition", "split", "find", "index", "count"}
WORDS = {"message", "note"}


def _is_message(node: ast.expr) -> bool:
    """Tell whether an expression is a message: `x.message`, `x["message"]`, `x.get("message")`."""
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return name in WORDS
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=name), *_]):
            return name in WORDS
        case ast.Call(func=ast.Name(id="string" | "str"), args=[inner]):
            return _is_message(inner)
    return False


def matches(source: str) -> Iterator[int]:
    """Yield the lines that look into the text of a message."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                if name in MATCHING and _is_message(value):
                    yield node.lineno
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[where]):
                if _is_message(where):
                    yield node.lineno


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_code_matches_on_the_text_of_a_message(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "view.py"  # lays text out, decides nothing
        for line in matches(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'job.message.startswith("has room")',
        "NEVER in summary.message",
        'record.message.partition("; starts again at ")[0]',
        'string(job.get("message")).startswith("waits")',
        'a["message"].split(": ")',
    ],
)
def test_what_is_forbidden_is_found(source: str) -> None:
    assert list(matches(source)) == [1]


@pytest.mark.parametrize(
    "source", ["job.message or told", 'key.startswith("a")', "f'{job.name}: {job.message}'"]
)
def test_what_only_shows_a_message_is_not(source: str) -> None:
    assert list(matches(source)) == []


DECIDING = (
    *("steps", "lifecycle", "gang", "expansion", "queueing", "placement", "plugins", "model"),
    *("splitting", "causes", "training"),
)
"""Rooms of the controller that decide: the words for it are made in `controller/status`."""


def prose(source: str) -> Iterator[str]:
    """Yield the texts of several words but docstrings, log lines and errors that are raised."""
    tree = ast.parse(source)
    raised = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for part in ast.walk(node)
    }
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    docs |= {id(node.annotation) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    errors = {
        id(part)
        for node in ast.walk(tree)
        if _makes_error(node) or _logs(node)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in raised | docs | errors:
                if " " in text.strip():
                    yield text


def _makes_error(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.endswith("Error")
    )


def _logs(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "_log"))):
            return True
    return False


@pytest.mark.parametrize("room", [*DECIDING, "plan.py"])
def test_decisions_have_no_words(room: str) -> None:
    path = ROOT / "controller" / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert {str(each.relative_to(ROOT)): list(prose(each.read_text())) for each in files} == {
        str(each.relative_to(ROOT)): [] for each in files
    }


def test_words_in_a_decision_are_found() -> None:
    assert list(prose('why = f"{name} is lost on {where}"')) == [" is lost on "]
    assert list(prose('"""A line of docs."""\nraise SpecError("no tasks at all")')) == []
