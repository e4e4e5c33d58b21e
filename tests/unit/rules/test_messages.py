import ast
import re
from pathlib import Path

import pytest

import hyperjob_rules.validation
from docs.generators.defaults import DEFAULTS
from docs.generators.messages import CHAPTERS, message, render
from hyperjob_rules.validation.rules import Rule, declare, declared

ROOM = Path(hyperjob_rules.validation.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "messages.md"


def test_the_page_of_messages_is_current():
    assert PAGE.read_text(encoding="utf-8") == render(), (
        "run: python -m docs.generators.messages docs/messages.md"
    )


@pytest.mark.parametrize("rule", declared(), ids=lambda rule: rule.id)
def test_a_rule_says_why_it_fires_and_what_to_do(rule: Rule):
    assert rule.id.partition(".")[0] in CHAPTERS or rule.id[0] in CHAPTERS
    assert rule.cause
    assert rule.remedy
    assert not rule.cause.endswith(".")
    assert not rule.remedy.endswith(".")
    assert message(rule) in render().replace("\\|", "|")


def test_no_two_rules_have_the_same_id():
    with pytest.raises(ValueError, match=r"two rules have the id V5\.name-twice"):
        declare("V5.name-twice", None, "form", "cause", "remedy")


def test_the_code_names_each_row_of_rules_and_no_other_one():
    ids = re.findall(r"^\| ([A-Z]\d\S*) \|", (ROOM / "rules.md").read_text(), flags=re.MULTILINE)
    assert len(set(ids)) == len(ids)
    named = {
        node.value
        for file in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and re.fullmatch(r"[FLTVX]\d+\.\S+", str(node.value))
    }
    assert named == set(ids)


def test_every_default_of_volcano_is_told():
    assert [known.id for known in DEFAULTS if known.id.startswith("M")] == [
        f"M{number}" for number in range(1, 11)
    ]


def test_a_warning_is_never_an_error():
    warning = next(rule for rule in declared() if rule.kind is None)
    with pytest.raises(TypeError):
        warning.at(_path())


def _path():
    from hyperjob_core.api.field import SPEC

    return SPEC
