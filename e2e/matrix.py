"""Fill the table of tried releases in docs/compatibility.md: one row for the Karmada that runs.

    python -m e2e.matrix --karmada 1.18.2 --volcano 1.15.1 --gates "all alpha and beta" --pull

The scenarios run on the Karmada that `HYPERJOB_E2E_*` names, as with `make e2e`. `hyperjob
preflight` must find no newer release than the given ones. A row of the same releases is replaced.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
BEGIN, END = "<!-- tried: python -m e2e.matrix -->", "<!-- tried -->"
HEAD = "| Karmada | feature gates | members | Volcano | Volcano Global | scenarios |"
SCENARIOS = (
    "e2e/test_admission.py",
    "e2e/test_beside_volcano_global.py",
    "e2e/test_gang.py",
    "e2e/test_lifecycle.py",
    "e2e/test_placement.py::test_two_sub_jobs_that_one_cluster_cannot_hold_run_on_two",
    "e2e/test_placement.py::test_a_job_overflows_from_a_full_cluster_that_it_prefers",
    "e2e/test_placement.py::test_the_example_of_a_split_runs_to_its_end",
    "e2e/test_plugins.py",
    "e2e/test_recovery.py",
)
_FOUND = re.compile(r"(Karmada is|Volcano) (\d+\.\d+) or newer")


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """What was tried, and how many scenarios passed."""

    karmada: str
    gates: str
    members: str
    volcano: str
    volcano_global: str
    scenarios: str = ""

    def text(self) -> str:
        """Return the row as Markdown."""
        cells = (self.karmada, self.gates, self.members, self.volcano, self.volcano_global)
        return f"| {' | '.join((*cells, self.scenarios))} |"

    def key(self) -> tuple[str, ...]:
        """Return what identifies the row: everything but the result."""
        return (self.karmada, self.gates, self.members, self.volcano, self.volcano_global)


def rows(page: str) -> list[Row]:
    """Return the rows of the table between the two marks of a page."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    found = [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]
    return [row for row in found if set(row.karmada) != {"-"}]


def put(page: str, row: Row) -> str:
    """Return the page with a row in its place, instead of the row with the same key."""
    kept = [each for each in rows(page) if each.key() != row.key()]
    lines = [HEAD, "| --- " * HEAD.count(" | ") + "| --- |"]
    lines += [each.text() for each in sorted([*kept, row])]
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


def contradictions(preflight: str, row: Row) -> list[str]:
    """Return the releases that preflight found and that are newer than those of the row."""
    given = {"Karmada is": row.karmada, "Volcano": row.volcano}
    return [
        f"preflight says {what} {release} or newer, not {given[what]}"
        for what, release in _FOUND.findall(preflight)
        if _numbers(release) > _numbers(given[what])[:2]
    ]


def result(report: ET.Element) -> str:
    """Return how many scenarios of a JUnit report passed, with the names of the others."""
    cases = [case for case in report.iter("testcase") if case.find("skipped") is None]
    bad = [case for case in cases if {child.tag for child in case} & {"failure", "error"}]
    failed = "".join(f", not {case.get('name')}" for case in bad)
    return f"{len(cases) - len(bad)} of {len(cases)}{failed}"


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the scenarios, and write their result into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--karmada", required=True)
    parser.add_argument("--volcano", required=True)
    parser.add_argument("--gates", default="defaults")
    parser.add_argument("--pull", action="store_true", help="one member is in Pull mode")
    parser.add_argument("--volcano-global", default="none")
    given = parser.parse_args(None if arguments is None else list(arguments))
    members = "Push and Pull" if given.pull else "Push"
    row = Row(given.karmada, given.gates, members, given.volcano, given.volcano_global)
    kubeconfig = os.environ["HYPERJOB_E2E_KUBECONFIG"]
    preflight = subprocess.run(
        [sys.executable, "-m", "hyperjob", "preflight", f"--kubeconfig={kubeconfig}"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    if wrong := contradictions(preflight, row):
        sys.stderr.write("\n".join(wrong) + "\n")
        return 2
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", f"--junitxml={report}"]
        code = subprocess.run([*command, *SCENARIOS], check=False).returncode
        done = replace(row, scenarios=result(ET.parse(report).getroot()))
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), done), encoding="utf-8")
    sys.stdout.write(done.text() + "\n")
    return code


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


if __name__ == "__main__":
    raise SystemExit(main())
