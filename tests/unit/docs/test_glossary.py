"""The glossary of CONTRIBUTING.md is short, and public names of the product keep to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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


def words_of(source: str) -> Iterator[str]:
    """Yield the words of the public names that a module defines, and each name as one word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DEFINED) and not node.name.startswith("_"):
            yield from map(str.lower, re.findall(r"[A-Z]?[a-z0-9]+", node.name))
            yield node.name.lower().replace("_", "")


def test_the_glossary_has_at_most_forty_words_in_use_and_none_that_is_to_be_avoided() -> None:
    names = {
        word
        for package in PACKAGES.values()
        for path in package.rglob("*.py")
        for word in words_of(path.read_text())
    }
    assert 10 < len(rows()) <= 40
    unused = {word for word, _, _ in rows() if not any(word.replace("-", "") in n for n in names)}
    avoided = {word for _, _, never in rows() for word in never.replace(",", " ").split()}
    assert avoided
    assert (unused, avoided & names) == (set(), set())


def test_a_word_that_had_many_meanings_is_in_no_other_name() -> None:
    names = {
        node.name
        for package in PACKAGES.values()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, DEFINED) and not node.name.startswith("_")
    }
    assert {
        word: {name for name in names if word in name.lower().split("_")} for word in ONE_MEANING
    } == ONE_MEANING


def test_the_words_of_a_name_are_told_apart() -> None:
    source = "class FreeSpace:\n    def in_namespace(self): ...\n    def _space(self): ...\n"
    assert set(words_of(source)) == {"free", "space", "freespace", "in", "namespace", "innamespace"}
