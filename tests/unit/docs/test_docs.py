"""The documentation is true: links lead somewhere, YAML is accepted, pages are current."""

import doctest
import re
import runpy
from pathlib import Path

import pytest
import yaml

from docs.generators.api import render
from hyperjob_core.api.names import KIND
from hyperjob_rules.validation.create import validate_create
from tests.support.rooms import PACKAGES

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("e2e/*.md")])
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SESSION = re.compile(r"^```pycon\n(.*?)^```", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=_title)
def test_links_lead_somewhere(page: Path):
    for found in _LINK.finditer(page.read_text(encoding="utf-8")):
        target = found[1] or found[2]
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{_title(page)}: {target}"
        if anchor:
            assert anchor in _anchors(there), f"{_title(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=_title)
def test_hyperjobs_on_a_page_are_accepted_as_they_are(page: Path):
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for document in yaml.safe_load_all(block):
            if not isinstance(document, dict) or document.get("kind") != KIND:
                continue
            name = document["metadata"]["name"]
            errors = validate_create(document).errors
            assert not errors, f"{_title(page)}: {name}: {errors}"


@pytest.mark.parametrize("page", PAGES, ids=_title)
def test_python_on_a_page_compiles_and_its_sessions_show_what_they_print(page: Path, capsys):
    text = page.read_text(encoding="utf-8")
    for block in _PYTHON.findall(text):
        compile(block, _title(page), "exec")
    sessions = "\n".join(_SESSION.findall(text))
    examples = doctest.DocTestParser().get_examples(sessions)
    if not examples:
        return
    name = _title(page).replace("/", ".")
    found = doctest.DocTestRunner().run(
        doctest.DocTest(examples, {"__name__": "page"}, name, str(page), 0, sessions)
    )
    assert not found.failed, capsys.readouterr().out


def test_every_page_can_be_reached_from_the_contents():
    contents = ROOT / "docs" / "README.md"
    linked = {
        (contents.parent / found[1].partition("#")[0]).resolve()
        for found in _LINK.finditer(contents.read_text(encoding="utf-8"))
        if found[1] and "://" not in found[1]
    }
    pages = {page.resolve() for page in (ROOT / "docs").glob("**/*.md")} - {contents.resolve()}
    assert not {_title(page) for page in pages - linked}


def test_the_reference_of_the_api_is_current():
    page = ROOT / "docs" / "reference" / "api.md"
    assert page.read_text(encoding="utf-8") == render(), (
        "run: python -m docs.generators.api docs/reference/api.md"
    )


SEQUENCE = runpy.run_path(str(ROOT / "docs" / "images" / "sequence.py"))


@pytest.mark.parametrize("source", sorted((ROOT / "docs" / "images").glob("*.seq")), ids=_title)
def test_a_picture_is_drawn_from_its_source(source: Path):
    drawn = SEQUENCE["draw"](SEQUENCE["read"](source.read_text(encoding="utf-8")))
    assert source.with_suffix(".svg").read_text(encoding="utf-8") == drawn, (
        "run: python docs/images/sequence.py docs/images/*.seq"
    )


def test_a_line_of_a_picture_that_makes_no_sense_is_named():
    diagram = SEQUENCE["read"]("title: x\nparts: A | B\nA -> C: hello\n")
    with pytest.raises(ValueError, match="no part is called 'C'"):
        SEQUENCE["draw"](diagram)


def test_every_path_in_the_recipes_for_contributors_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_0-9]+/)+[\w.\-]*)`", text)
    assert len(named) > 30
    assert [
        path for path in named if not path.startswith("build/") and not (ROOT / path).exists()
    ] == []


def test_every_path_in_the_architecture_exists():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+(?:\.py)?)?)`", text)
    packages = (ROOT, *PACKAGES.values(), ROOT / "sandbox" / "hyperjob_sandbox")
    assert len(named) > 15
    assert [path for path in named if not any((each / path).exists() for each in packages)] == []


def test_every_target_of_make_that_the_recipes_name_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for found in re.findall(r"`make ([a-z0-9 -]+)", text) for word in found.split()}
    assert named <= targets


def test_uninstalling_by_hand_deletes_each_secret_that_installing_by_hand_makes() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    made = set(re.findall(r"--account [a-z-]+=([a-z-]+)", text))
    commands = re.findall(r"hyperjob credentials delete .*?(?=\n```|\n\$)", text, re.DOTALL)
    deleted = set(re.findall(r"hyperjob-[a-z]+-karmada", " ".join(commands)))
    assert made
    assert made <= deleted
