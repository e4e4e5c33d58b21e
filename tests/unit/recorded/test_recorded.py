"""What the code decides of many generated situations is what the files of `data` say."""

import pytest

from tests.unit.recorded.recording import DATA, compare
from tests.unit.recorded.sections import SECTIONS


@pytest.mark.parametrize("name", SECTIONS)
def test_the_decisions_are_those_of_the_file(name: str) -> None:
    compare(name, SECTIONS[name])


def test_every_file_has_its_section() -> None:
    assert {path.stem for path in DATA.glob("*.txt")} == set(SECTIONS)
