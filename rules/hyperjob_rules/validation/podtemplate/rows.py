"""The rules of pod templates across several fields, with the messages in `rules.md`."""

from functools import cache
from importlib import resources

from hyperjob_core.api.field import ErrorType
from hyperjob_rules.validation.rules import Rule, rule


def row(name: str) -> Rule:
    """Declare the rule of an id; raises KeyError if `rules.md` has no such row."""
    kind, form, cause, remedy = rows()[name]
    type_ = None if kind == "Warning" else ErrorType(f"FieldValue{kind}")
    return rule(name, type_, form, cause, remedy)


@cache
def rows() -> dict[str, list[str]]:
    """Return type, message, cause and remedy of each rule by its id."""
    text = resources.files(__package__).joinpath("rules.md").read_text(encoding="utf-8")
    table = text.partition("|---|---|---|---|---|\n")[2]
    cells = (line[2:-2].split(" | ") for line in table.splitlines())
    return {name: words for name, *words in cells}
