"""`hyperjob simulate --picture` draws where matplotlib is installed."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main


def simulate(picture: Path) -> Result:
    given = ("--jobs", "5", "--days", "0.1", "--load", "0.1", "--policy", "hyperjob,fifo")
    return CliRunner().invoke(main, ["simulate", *given, "--picture", str(picture)])


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_use_and_waiting_are_drawn(tmp_path: Path, name: str, begin: bytes) -> None:
    result = simulate(tmp_path / name)
    assert result.exit_code in (0, 4), result.output
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(begin)
    assert len(drawn) > 5_000


def test_a_picture_of_an_unknown_kind_or_place_is_refused(tmp_path: Path) -> None:
    result = simulate(tmp_path / "a.doc")
    assert result.exit_code == 2
    assert "a.doc: Format 'doc' is not supported" in result.stderr
    assert "No such file or directory" in simulate(tmp_path / "none" / "a.png").stderr
