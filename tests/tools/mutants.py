"""Try random small changes of the code and report those that no test notices.

`python -m tests.tools.mutants engine/hyperjob_engine/placement --count 50 --seed 7`

1. pytest collects the tests, once. Each runs under coverage, which notes its lines and its time
   (kept in `.mutants/` for tests and code that do not change). Tests that fail here do not count.
2. `--count` mutants are drawn with `--seed` from the places of the named folders or files, or, with
   `--diff REV`, from the lines changed since REV.
3. For each mutant a fork of the process puts the changed code into the functions of the modules
   that are imported already, and runs the tests of its line, the quickest first, until one fails.
   Whatever survives that, and a change outside of functions, is tried once more by a pytest of its
   own in a copy of the tree: the results of what ran at import are in memory.

`--tests` are those of the units by default; `--only "not hypothesis"` leaves properties out, as
pytest's -m. Exit code 0 where at least `--aim` of the mutants were killed, else 1. Linux only.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.tools.operators import Mutant, mutants

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / ".mutants"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutant: killed, timeout, survived, or uncovered (no test runs it)."""

    mutant: Mutant
    outcome: str
    tests: int


def main() -> int:
    """Run the command line; return the exit code."""
    from tests.tools.mutantrun import Runner

    options = _options()
    lines = _changed_lines(options.diff) if options.diff else None
    places = [
        mutant
        for path in _files(options.paths)
        for mutant in mutants(path, (ROOT / path).read_bytes())
        if lines is None or mutant.line in lines.get(path, ())
    ]
    chosen = random.Random(options.seed).sample(places, min(options.count, len(places)))
    say(f"{len(chosen)} of {len(places)} mutants, seed {options.seed}")
    runner = Runner(chosen, seconds=options.seconds, work=WORK, root=ROOT)
    arguments = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-s"]
    pytest.main([*arguments, "-m", options.only, *options.tests], plugins=[runner])
    if len(runner.results) < len(chosen):
        raise SystemExit("error: pytest ended before all mutants were tried")
    return 0 if _report(runner.results, options.output) >= options.aim else 1


def say(text: str) -> None:
    """Tell a person how far it is."""
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.split("\n")[0])
    parser.add_argument(
        "paths",
        nargs="*",
        default=["controller", "engine", "queueing", "rules", "webhook", "core/hyperjob_core/kube"],
    )
    parser.add_argument("--diff", metavar="REV", help="only lines changed since this revision")
    parser.add_argument("--count", type=int, default=100, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for a mutant")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="tests to run")
    parser.add_argument("--only", default="", metavar="MARKS", help="run these, as pytest's -m")
    parser.add_argument("--aim", type=float, default=0.0, help="exit 1 below this share of killed")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    return parser.parse_args()


def _files(paths: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *paths], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    found = sorted(path for path in listed if path.endswith(".py"))
    if not found:
        raise SystemExit(f"error: git tracks no Python file below {', '.join(paths)}")
    return found


def _changed_lines(revision: str) -> dict[str, set[int]]:
    diff = subprocess.run(
        ["git", "diff", "-U0", revision, "--", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            lines[path].update(range(first, first + count))
    return lines


def _report(results: list[Result], output: str) -> float:
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        folders[str(Path(result.mutant.path).parent)][result.outcome] += 1
    alive = [each for each in results if each.outcome in ("survived", "uncovered")]
    score = 1 - len(alive) / len(results) if results else 1.0
    if output == "json":
        print(json.dumps({
            "score": score,
            "folders": folders,
            "survivors": [_described(each) for each in alive],
        }, indent=2))  # fmt: skip
        return score
    for folder, outcomes in sorted(folders.items()):
        killed = outcomes["killed"] + outcomes["timeout"]
        print(f"{folder:40} {killed:4} of {outcomes.total():4} killed")
    for each in alive:
        row = _described(each)
        print(f"{row['outcome']}: {row['path']}:{row['line']} ({row['operator']})")
        print(f"  - {row['now']}\n  + {row['mutant']}")
    print(f"{score:.1%} of {len(results)} mutants killed")
    return score


def _described(result: Result) -> dict[str, object]:
    mutant = result.mutant
    source = (ROOT / mutant.path).read_bytes()
    first = source.rfind(b"\n", 0, mutant.start) + 1
    last = source.find(b"\n", mutant.end)
    after = mutant.apply(source)
    return {
        "path": mutant.path,
        "line": mutant.line,
        "operator": mutant.operator,
        "outcome": result.outcome,
        "tests": result.tests,
        "now": source[first:last].decode().strip(),
        "mutant": after[first : last + len(after) - len(source)].decode().strip(),
    }


if __name__ == "__main__":
    sys.exit(main())
