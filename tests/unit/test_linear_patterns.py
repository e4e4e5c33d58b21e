"""Every regular expression of the project reads any text in linear time.

Foreign text reaches nearly all of them. The steps of backtracking are counted, so the tests do not
depend on the machine.
"""

import ast
import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hyperjob_core.api.schema import hyperjob_crd
from tests.support.backtracking import Attack, Matcher, TooManyStepsError, attacks
from tests.support.rooms import PACKAGES, module_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
METHODS = {"match", "fullmatch", "search", "sub", "findall", "finditer", "split"}
N = 48


class Use(NamedTuple):
    """A pattern, and the most thorough method by which it is used."""

    where: str
    pattern: str
    flags: int
    method: str


GIVEN = {
    ("hyperjob/sdk/job.py", "search or ''"),
}
"""Patterns that a user of the SDK gives for the user's own process."""


LOCALS = {"engine/hyperjob_engine/resources.py": ("rows", "_ROWS")}
"""Names in patterns that a function makes, and the value that its module passes for them."""


def _is_given(path: Path, call: ast.Call) -> bool:
    return (str(path.relative_to(ROOT)), ast.unparse(call.args[0])) in GIVEN


def _sources() -> Iterator[Path]:
    for folder in PACKAGES.values():
        for path in sorted(folder.rglob("*.py")):
            if "sandbox" not in path.parts:
                yield path


def _uses() -> Iterator[Use]:
    for path in _sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if _is_re_call(node)]
        if not calls:
            continue
        module = importlib.import_module(module_of(path))
        for call in calls:
            name = call.func.attr
            known = dict(vars(module))
            if names := LOCALS.get(str(path.relative_to(ROOT))):
                known[names[0]] = known[names[1]]
            if _is_given(path, call):
                continue
            pattern = eval(ast.unparse(call.args[0]), known)
            if isinstance(pattern, bytes):
                pattern = pattern.decode("latin-1")  # each byte is a character there
            flags = sum(eval(ast.unparse(each), known) for each in _flags(call))
            method = _method_of(tree, call) if name == "compile" else name
            yield Use(f"{path.relative_to(ROOT)}:{call.lineno}", pattern, int(flags), method)
    for index, pattern in enumerate(sorted(_schema_patterns(hyperjob_crd()))):
        yield Use(f"crd:{index}", pattern, 0, "search")


def _is_re_call(node: Any) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in METHODS | {"compile"}
    )


def _flags(call: Any) -> list[Any]:
    after = {"compile": 1, "sub": 4}.get(call.func.attr, 2)
    return [*call.args[after:], *(word.value for word in call.keywords if word.arg == "flags")]


def _method_of(tree: ast.AST, call: ast.Call) -> str:
    """Return how a compiled pattern is used; as a search where that cannot be seen."""
    names: set[str] = set()
    methods: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is call:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.Attribute) and node.value is call:
            methods.add(node.attr)
    for node in ast.walk(tree):
        used = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if used and node.value.id in names and node.attr in METHODS:
            methods.add(node.attr)
    for method in ("search", "findall", "finditer", "sub", "split", "match", "fullmatch"):
        if method in methods:
            return "search" if method in {"findall", "finditer", "split"} else method
    return "search"


def _schema_patterns(node: object) -> set[str]:
    if isinstance(node, list):
        return {found for item in node for found in _schema_patterns(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["pattern"]} if isinstance(node.get("pattern"), str) else set()
    return own | {found for item in node.values() for found in _schema_patterns(item)}


USES = list(_uses())


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    """Leave room for the matcher, which goes one level deeper with each part of a text."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


def worst(use: Use) -> tuple[Attack, float] | None:
    """Return the attack under which the steps grow faster than the text, if there is any."""
    matcher = Matcher(use.pattern, use.flags, limit=200 * N)
    for attack in attacks(matcher.tree, random.Random(14)):
        try:
            matcher.run(attack.text(N), use.method)
            if matcher.steps < 14 * N:
                continue
            small = matcher.steps
            matcher.run(attack.text(2 * N), use.method)
            ratio = matcher.steps / small
        except TooManyStepsError:
            ratio = float("inf")
        if ratio > 2.7:
            return attack, ratio
    return None


def test_the_patterns_are_found() -> None:
    where = {use.where.partition(":")[0] for use in USES}
    assert {
        "core/hyperjob_core/api/quantity.py",
        "core/hyperjob_core/api/formats.py",
        "crd",
    } <= where
    assert len(USES) > 25


@pytest.mark.parametrize("use", USES, ids=lambda use: use.where)
def test_a_pattern_reads_any_text_in_linear_time(use: Use) -> None:
    assert worst(use) is None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        ("0*([0-9]*)(?:\\.([0-9]*))?([eE]*[+-]?[0-9]*)", "fullmatch"),
        ("[0-9][0-9_]*\\.?[0-9_]*", "fullmatch"),
        ("(a+)+b", "fullmatch"),
        ("(a|a)*b", "match"),
        ("[a-z]*b", "search"),
        ("([a-z0-9]([-a-z0-9]*[a-z0-9])?\\.?)*", "fullmatch"),
    ],
)
def test_a_pattern_that_backtracks_is_found(pattern: str, method: str) -> None:
    assert worst(Use("", pattern, 0, method)) is not None
