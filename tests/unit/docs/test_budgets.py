"""Each part of the project stays within the budget that CONTRIBUTING gives it.

A change that needs more deletes as much elsewhere, or raises the budget and says why.
"""

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS, ROOT


def budgets() -> dict[str, int]:
    """Return the rows of the table of budgets: the part, and the most that it may have."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## Budgets\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) +\| +([0-9,]+) \|$", section, re.MULTILINE)
    return {part.strip("`"): int(most.replace(",", "")) for part, most in rows}


def lines(folder: Path, *endings: str) -> int:
    """Return the lines of the files of a folder that end so."""
    files = [
        each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts
    ]
    return sum(
        each.read_bytes().count(b"\n") for each in files if not endings or each.suffix in endings
    )


@pytest.mark.parametrize("room", [*ROOMS, "sandbox", "tests", "e2e"])
def test_a_room_has_no_more_lines_of_python_than_its_budget(room: str) -> None:
    assert lines(ROOT / room, ".py") <= budgets()[room]


def test_the_product_has_no_more_lines_than_its_budget_and_no_room_30_percent_of_them() -> None:
    found = {room: lines(ROOT / room, ".py") for room in ROOMS}
    assert sum(found.values()) <= budgets()["product"]
    assert max(found.values()) <= 0.3 * sum(found.values())


def test_the_data_of_tests_stays_small_enough_to_review() -> None:
    everything, code = lines(ROOT / "tests"), lines(ROOT / "tests", ".py")
    assert everything - code <= budgets()["data of tests"]


def test_the_wheel_asks_for_no_more_packages_than_its_budget() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(project["dependencies"]) <= budgets()["dependencies of the wheel"]
