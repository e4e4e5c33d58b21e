"""No test waits for a fixed time: it awaits an event, or polls a fact until a deadline."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "e2e/programs"
"""What runs in pods: its pauses are its work."""
LONGEST_PAUSE = 0.5
"""Seconds between two looks of a poll."""
VIRTUAL = {
    "hyperjob_core.virtualtime",
    "tests.decisions.karmada",
    "tests.support.virtually",
    "tests.unit.controller.wholeworld",
}
LEAVES = (ast.Return, ast.Break, ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CHANCE = {"uniform", "choice", "random", "expovariate"}


class Sleeps(ast.NodeVisitor):
    """Finds the lines of a module that sleep for a fixed time.

    A pause between two looks of a loop is none, nor a moment that is drawn by chance, nor one in
    virtual time, nor what a function does that runs elsewhere, which imports `time` itself.
    """

    def __init__(self) -> None:
        self.found: list[int] = []
        self._polls = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        imports = chain.from_iterable(
            each.names for each in ast.walk(node) if isinstance(each, ast.Import)
        )
        if any(each.name == "time" for each in imports):
            return
        before, self._polls = self._polls, False
        self.generic_visit(node)
        self._polls = before

    def visit_While(self, node: ast.While) -> None:
        self._loop(node, not isinstance(node.test, ast.Constant) or leaves(node))

    def visit_For(self, node: ast.For) -> None:
        self._loop(node, leaves(node))

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._loop(node, polls=False)

    def _loop(self, node: ast.stmt, polls: bool) -> None:
        before, self._polls = self._polls, polls
        self.generic_visit(node)
        self._polls = before

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="asyncio" | "time"), attr="sleep"),
                args=[seconds],
            ) if not self._is_allowed(seconds):
                self.found.append(node.lineno)
        self.generic_visit(node)

    def _is_allowed(self, seconds: ast.expr) -> bool:
        if isinstance(seconds, ast.Constant) and isinstance(seconds.value, int | float):
            return seconds.value == 0 or (self._polls and seconds.value <= LONGEST_PAUSE)
        return self._polls or any(
            isinstance(each, ast.Attribute) and each.attr in CHANCE for each in ast.walk(seconds)
        )


def leaves(loop: ast.While | ast.For) -> bool:
    """Return whether the body of a loop may end it, or the test."""

    def inside(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, FUNCTIONS):
                yield child
                yield from inside(child)

    return any(isinstance(each, LEAVES) for each in inside(loop))


def in_virtual_time(tree: ast.Module) -> bool:
    """Return whether the coroutines of a module run in an event loop without real time."""
    return any(
        isinstance(each, ast.ImportFrom) and each.module in VIRTUAL for each in ast.walk(tree)
    )


def sleeps(text: str) -> list[int]:
    """Return the lines of a module that sleep for a fixed time."""
    if "sleep" not in text:
        return []
    tree = ast.parse(text)
    if in_virtual_time(tree):
        return []
    visitor = Sleeps()
    visitor.visit(tree)
    return visitor.found


def modules() -> Iterator[Path]:
    """Give the modules of all tests and of what supports them."""
    for folder in ("tests", "e2e"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.is_relative_to(PROGRAMS):
                yield path


def test_no_test_sleeps_for_a_fixed_time() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules()
        for line in sleeps(path.read_text())
    }
    assert found == set(), "await an event: a later object, a resourceVersion, a count of passes"


VIRTUALLY = "from tests.support.virtually import virtually\n@virtually"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("async def test():\n await asyncio.sleep(2)", True),
        ("async def test():\n for _ in beats:\n  await asyncio.sleep(0.15)", True),
        ("async def test():\n while not seen():\n  await asyncio.sleep(0.1)", False),
        ("async def test():\n while True:\n  if seen(): return\n  await asyncio.sleep(0.1)", False),
        ("async def test():\n await asyncio.sleep(chance.uniform(1, 2))", False),
        ("def program():\n import time\n time.sleep(1)", False),
        (f"{VIRTUALLY}\nasync def test():\n await asyncio.sleep(600)", False),
        ("while waits():\n def look():\n  time.sleep(0.1)", True),
    ],
)
def test_a_fixed_sleep_is_told_from_a_poll(text: str, refused: bool) -> None:
    assert bool(sleeps(text)) is refused
