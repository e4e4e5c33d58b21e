"""Which progress of the sub-jobs counts for the step from which all start again."""

from dataclasses import replace

import pytest

from hyperjob_core.api import table
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.lifecycle.stops import latest_reports
from tests.unit.engine.test_stops import NAMES, records, said, world

SILENT = {"ended": True, "reported": False}


@pytest.mark.parametrize(
    ("read", "step"),
    [
        pytest.param(None, 90, id="no log"),
        pytest.param(said(0, attempt=1, **SILENT), 90, id="silent, of the same attempt"),
        pytest.param(said(0, attempt=0, **SILENT), 90, id="silent, of an earlier attempt"),
        pytest.param(said(0, attempt=2, **SILENT), None, id="silent, of a later attempt"),
        pytest.param(said(0, attempt=2, reported=False), 90, id="of a later attempt that runs"),
        pytest.param(said(95, attempt=2, ended=True), 95, id="with a line, of a later attempt"),
    ],
)
def test_a_report_counts_until_a_later_attempt_has_ended_without_one(
    read: SubJobTraining | None, step: int | None
) -> None:
    entries = records(attempt=1)
    entries[0]["training"] = table.write(replace(said(90, 80), attempt=1))
    seen = world({} if read is None else {NAMES[0]: read}, status={"jobs": entries})
    found = {name: each.step for name, each in latest_reports(seen).items()}
    assert found == ({} if step is None else {NAMES[0]: step})


def test_of_two_replicated_jobs_with_reports_the_first_counts() -> None:
    entries = records()
    entries[1] |= {"name": "hj-evaluator-0", "replicatedJob": "evaluator", "index": 0}
    seen = world({NAMES[0]: said(9), "hj-evaluator-0": said(99)}, status={"jobs": entries})
    assert {name: each.step for name, each in latest_reports(seen).items()} == {NAMES[0]: 9}
