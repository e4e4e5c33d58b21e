"""The tour of the code names files and names that exist, and is as short as it shall stay."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
MOST = {
    "Why was my HyperJob refused?": 8,
    "Why is my HyperJob in this state?": 12,
    "Why does my HyperJob wait in its queue?": 8,
    "How does a line of a log become progress?": 9,
    "What does the page show?": 9,
    "What does the page of one HyperJob show?": 9,
}
"""The files that one must open to explain an answer, at most."""
STOP = re.compile(r"^\d+\. \[`([^`]+)`\]\(\.\./([^)]+)\)((?:,? +`\w+`|,\n +`\w+`)*):", re.MULTILINE)
TEXTS = dict(re.findall(r"^## (.+?)$\n(.*?)(?=^## |\Z)", TOUR, re.DOTALL | re.MULTILINE))
SECTIONS = {head: STOP.findall(text) for head, text in TEXTS.items()}


def defined(path: Path) -> set[str]:
    """Return the functions, classes and constants of a module, methods included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


@pytest.mark.parametrize(("section", "most"), MOST.items())
def test_a_walk_has_no_more_files_than_one_can_keep_in_mind(section: str, most: int) -> None:
    assert SECTIONS.keys() == MOST.keys()
    files = [path for path, _, _ in SECTIONS[section]]
    assert len(files) == len(re.findall(r"^\d+\. ", TEXTS[section], re.MULTILINE))
    assert 0 < len(set(files)) == len(files) <= most


@pytest.mark.parametrize(
    ("path", "link", "names"), [stop for stops in SECTIONS.values() for stop in stops]
)
def test_a_stop_of_the_tour_exists_with_its_names(path: str, link: str, names: str) -> None:
    assert link == path
    assert (ROOT / path).is_file()
    wanted = set(re.findall(r"`(\w+)`", names))
    assert bool(wanted) is path.endswith(".py")
    if wanted:
        assert wanted - defined(ROOT / path) == set()


def test_files_that_the_tour_mentions_between_its_stops_exist() -> None:
    mentioned = re.findall(
        r"`((?:core|rules|engine|queueing|controller|webhook|hyperjob)/[\w/.]+)`", TOUR
    )
    assert mentioned
    assert [path for path in mentioned if not (ROOT / path).exists()] == []
