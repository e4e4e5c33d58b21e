"""Commands run on the API server of the test, which each file fills."""

import pytest

from tests.unit.cli.fleet import Fleet, Run, runner


@pytest.fixture
def run(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(fleet, monkeypatch)
