from pathlib import Path

import pytest

from docs.generators.defaults import DEFAULTS
from docs.generators.messages import CHAPTERS, message, render
from hyperjob_rules.validation.rules import Rule, declare, declared, rows

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
    with pytest.raises(ValueError, match=r"two rules have the id V5"):
        declare("V5", None, "form", "cause", "remedy")
    ids = [rule.id for rule in declared()]
    assert len(set(ids)) == len(ids)


def test_every_row_of_rules_is_used():
    assert rows().keys() - {rule.id for rule in declared()} == set()


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
