"""The table of tried releases: what a run writes into the page, and what it refuses."""

from xml.etree import ElementTree as ET

import pytest

from e2e.matrix import BEGIN, END, PAGE, SCENARIOS, Row, contradictions, put, result, rows

EMPTY = f"# Page\n\n{BEGIN}\n{END}\n\nMore.\n"
OLD = Row("1.16.8", "defaults", "Push", "1.12.4", "none", "30 of 30")
NEW = Row("1.18.2", "all alpha and beta", "Push and Pull", "1.15.1", "0.3.0", "31 of 31")


def test_a_row_is_written_between_the_marks_and_read_again() -> None:
    page = put(EMPTY, OLD)
    assert rows(page) == [OLD]
    assert page.startswith("# Page\n")
    assert page.endswith(f"{END}\n\nMore.\n")


def test_a_release_that_preflight_contradicts_is_refused() -> None:
    said = "ok karmada: Karmada is 1.17 or newer\nok members: Volcano 1.13 or newer in east\n"
    assert contradictions(said, OLD) == [
        "preflight says Karmada is 1.17 or newer, not 1.16.8",
        "preflight says Volcano 1.13 or newer, not 1.12.4",
    ]
    assert contradictions(said, NEW) == []


def test_skipped_scenarios_do_not_count_and_failed_ones_are_named() -> None:
    report = ET.fromstring(
        '<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>'
        "</testsuite></testsuites>"
    )
    assert result(report) == "1 of 3, not b, not d"


@pytest.mark.parametrize("row", rows(PAGE.read_text(encoding="utf-8")), ids=str)
def test_the_page_has_what_a_run_wrote(row: Row) -> None:
    passed, total = row.scenarios.partition(",")[0].split(" of ")
    assert 0 < int(passed) <= int(total)
    assert put(PAGE.read_text(encoding="utf-8"), row) == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_of_a_run_exists(scenario: str) -> None:
    file, _, name = scenario.partition("::")
    assert f"async def {name or 'test_'}" in (PAGE.parents[1] / file).read_text(encoding="utf-8")
