"""The glossary of CONTRIBUTING.md is short, and public names of the product keep to it."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.rooms import PACKAGES

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| ([a-z-]+) \| (.+) \| ([a-z, ]*)\|$", re.MULTILINE)
ONE_MEANING = {
    "passed": {"passed", "passed_over"},
    "together": {"together"},
    "waiting": {"Waiting", "waiting", "waiting_kind"},
}
"""Words that once had four to seven meanings each, and the public names that have them now."""
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def rows() -> list[tuple[str, str, str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return ROW.findall(text.partition("## Glossary")[2].partition("\n## ")[0])


def names_of(source: str) -> set[str]:
    """Return the public names that a module defines."""
    found = (node.name for node in ast.walk(ast.parse(source)) if isinstance(node, DEFINED))
    return {name for name in found if not name.startswith("_")}


def words_of(name: str) -> set[str]:
    """Return the words of a name, and the name as one word."""
    return {*map(str.lower, re.findall(r"[A-Z]?[a-z0-9]+", name)), name.lower().replace("_", "")}


@pytest.fixture(scope="module")
def names() -> set[str]:
    files = (path for package in PACKAGES.values() for path in package.rglob("*.py"))
    return set.union(*(names_of(path.read_text()) for path in files))


def test_the_glossary_has_forty_words_in_use_at_most_and_none_to_avoid(names: set[str]) -> None:
    words = set.union(*map(words_of, names))
    assert 10 < len(rows()) <= 40
    unused = {word for word, _, _ in rows() if not any(word.replace("-", "") in n for n in words)}
    avoided = {word for _, _, never in rows() for word in never.replace(",", " ").split()}
    assert avoided
    assert (unused, avoided & words) == (set(), set())


def test_a_word_that_had_many_meanings_is_in_no_other_name(names: set[str]) -> None:
    for word, known in ONE_MEANING.items():
        assert {name for name in names if word in words_of(name)} == known


def test_the_words_of_a_name_are_told_apart() -> None:
    source = "class FreeSpace:\n    def in_namespace(self): ...\n    def _space(self): ...\n"
    assert names_of(source) == {"FreeSpace", "in_namespace"}
    assert words_of("in_namespace") == {"in", "namespace", "innamespace"}
