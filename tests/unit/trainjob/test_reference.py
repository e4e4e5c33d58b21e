"""The page of all fields of a TrainJob."""

from pathlib import Path

from docs.generators.trainjob import render

ROOT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_tables() -> None:
    page = ROOT / "docs" / "reference" / "trainjob.md"
    assert page.read_text(encoding="utf-8") == render(), "run `make docs`"
