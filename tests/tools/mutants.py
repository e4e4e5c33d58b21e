"""Try random small changes of the code and report those that no test notices.

`python -m tests.tools.mutants controller/placement --count 50 --seed 7`

1. The suite runs once under coverage in a copy of the tree, which notes for every line the tests
   that run it (kept in `.mutants/`, until a file of the tree changes). A test that fails there
   would kill every mutant, so it ends the run.
2. `--count` mutants are drawn with `--seed` from the places of the named folders or files, or, with
   `--diff REV`, from the lines changed since REV.
3. Each mutant is written into a copy of the tree, where the tests that run its line are run,
   the narrowest first, until one of them fails. A mutant that none of them fails has survived.
   The copies keep the bytecode of the first run, and a process for each copy the libraries, since
   compiling and importing take longer than most tests.

With `--only "not hypothesis"` no property counts: quicker by far, and some survivors are killed by
a property alone.

Exit code 0 where at least `--aim` of the mutants were killed, else 1. Linux only.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from coverage.numbits import numbits_to_nums

from tests.tools.operators import Mutant, lines_at_import, mutants

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / ".mutants"
DEFAULT_TESTS: Final = ("tests/unit",)
ARGUMENTS: Final = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider")
FIRST: Final = 10
"""Tests that are tried first: they kill most mutants, for which no others are then imported."""
CPU_SECONDS: Final = 300
"""For the tests of a mutant."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutant: killed, timeout, survived, or uncovered (no test runs it)."""

    mutant: Mutant
    outcome: str
    tests: int


def main() -> int:
    """Run the command line; return the exit code."""
    options = _options()
    files = _files(options.paths)
    lines = _changed_lines(options.diff) if options.diff else None
    places = [
        mutant
        for path in files
        for mutant in mutants(path, (ROOT / path).read_bytes())
        if lines is None or mutant.line in lines.get(path, ())
    ]
    chosen = random.Random(options.seed).sample(places, min(options.count, len(places)))
    _say(f"{len(chosen)} of {len(places)} mutants, seed {options.seed}")
    covering = _covering_tests((*options.tests, "-m", options.only), files)
    verdicts = _try_all(chosen, covering, jobs=options.jobs, most=options.most)
    score = _report(verdicts, options.output)
    return 0 if score >= options.aim else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", default=["controller", "webhook", "hyperjob/kube"])
    parser.add_argument("--diff", metavar="REV", help="only lines changed since this revision")
    parser.add_argument("--count", type=int, default=100, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--most", type=int, default=400, help="tests for a mutant at the most")
    parser.add_argument("--tests", nargs="+", default=list(DEFAULT_TESTS), help="tests to measure")
    parser.add_argument("--only", default="", metavar="MARKS", help="measure these, as pytest's -m")
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


def _covering_tests(tests: tuple[str, ...], files: list[str]) -> dict[tuple[str, int], list[str]]:
    """Return the tests that run each line, those that run the fewest lines first."""
    data = WORK / f"coverage-{_digest(tests)}"
    copy = WORK / "tree-0"
    if not data.exists():
        shutil.rmtree(copy, ignore_errors=True)
    _lay_out(copy)
    if not data.exists():
        _say(f"measuring which test runs which line: {' '.join(tests)}")
        packages = sorted({path.split("/")[0] for path in files} | {"controller", "webhook"})
        measured = [f"--cov={package}" for package in packages]
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", *ARGUMENTS, "-n2", *tests),
                *(*measured, "--cov-context=test", "--cov-report="),
            ],
            cwd=copy,
            env=_environment(copy, COVERAGE_FILE=str(data)),
            check=True,
        )
    with sqlite3.connect(data) as db:
        rows = db.execute(
            "select file.path, context.context, line_bits.numbits from line_bits"
            " join file on file.id = line_bits.file_id"
            " join context on context.id = line_bits.context_id where context.context != ''"
        ).fetchall()
    # A line outside of functions runs when its file is imported, before any test.
    at_import: dict[str, set[int]] = defaultdict(set)
    for name in files:
        at_import[name] = lines_at_import((ROOT / name).read_bytes())
    width: Counter[str] = Counter()
    running: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path, context, bits in rows:
        test = context.split("|")[0]
        numbers = numbits_to_nums(bits)
        width[test] += len(numbers)
        relative = os.path.relpath(path, copy)
        for number in (*numbers, *at_import[relative]):
            running[relative, number].add(test)
    return {
        place: sorted(names, key=lambda name: (width[name], name))
        for place, names in running.items()
    }


def _digest(tests: tuple[str, ...]) -> str:
    state = (
        subprocess.run(
            ["git", "rev-parse", "HEAD^{tree}"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        + subprocess.run(
            ["git", "diff", "HEAD", "--", "*.py"], cwd=ROOT, check=True, capture_output=True
        ).stdout
    )
    return hashlib.sha256(state + "\0".join(tests).encode()).hexdigest()[:16]


def _try_all(
    chosen: list[Mutant], covering: dict[tuple[str, int], list[str]], *, jobs: int, most: int
) -> list[Result]:
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(jobs):
        path = WORK / f"tree-{number}"
        if number:
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(WORK / "tree-0", path)
        copies.put(Copy(path))
    needed = {test for each in chosen for test in covering.get((each.path, each.line), [])[:most]}
    _say(f"looking for {len(needed)} tests")
    first = copies.get()
    first.check(sorted(needed))
    copies.put(first)

    def judge(mutant: Mutant) -> Result:
        tests = covering.get((mutant.path, mutant.line), [])[:most]
        if not tests:
            return Result(mutant, "uncovered", 0)
        copy = copies.get()
        try:
            return Result(mutant, copy.outcome(mutant, tests), len(tests))
        finally:
            copies.put(copy)

    verdicts = []
    with ThreadPoolExecutor(jobs) as pool:
        for number, verdict in enumerate(pool.map(judge, chosen), start=1):
            place = f"{verdict.mutant.path}:{verdict.mutant.line}"
            _say(f"{number}/{len(chosen)} {verdict.outcome:9} {place} {verdict.mutant.operator}")
            verdicts.append(verdict)
    while not copies.empty():
        copies.get().close()
    return verdicts


def _lay_out(copy: Path) -> None:
    """Write the tracked files of the tree once more, also over a mutant that was interrupted."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def _environment(copy: Path, **more: str) -> dict[str, str]:
    """Have a process import from a copy of the tree, and write bytecode there."""
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(copy), str(copy / "sandbox"))), **more}


class Copy:
    """A copy of the tree, with a process that runs pytest there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.pytestserver"],
            cwd=path,
            env=_environment(path, PYTHONDONTWRITEBYTECODE="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def check(self, tests: list[str]) -> None:
        """Raise SystemExit where pytest does not find the tests: that would kill every mutant."""
        if tests and self._run(["--collect-only", *tests]) != 0:
            raise SystemExit("error: pytest finds the tests under other names than coverage")

    def outcome(self, mutant: Mutant, tests: list[str]) -> str:
        """Try one mutant: killed, timeout, or survived."""
        target = self._path / mutant.path
        source, times = target.read_bytes(), target.stat()
        target.write_bytes(mutant.apply(source))
        try:
            for part in filter(None, (tests[:FIRST], tests[FIRST:])):
                code = self._run(part)
                if code is None:
                    return "timeout"
                if code:
                    return "killed"
            return "survived"
        finally:
            target.write_bytes(source)
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, tests: list[str]) -> int | None:
        """Run tests; return pytest's exit code, None past the timeout."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"arguments": [*ARGUMENTS, "-x", "--no-header", *tests], "seconds": CPU_SECONDS}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code: int | None = json.loads(self._server.stdout.readline())
        return code

    def close(self) -> None:
        """End the process."""
        self._server.communicate()


def _report(verdicts: list[Result], output: str) -> float:
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        folders[str(Path(verdict.mutant.path).parent)][verdict.outcome] += 1
    alive = [each for each in verdicts if each.outcome in ("survived", "uncovered")]
    score = 1 - len(alive) / len(verdicts) if verdicts else 1.0
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
    print(f"{score:.1%} of {len(verdicts)} mutants killed")
    return score


def _described(verdict: Result) -> dict[str, object]:
    mutant = verdict.mutant
    source = (ROOT / mutant.path).read_bytes()
    first = source.rfind(b"\n", 0, mutant.start) + 1
    last = source.find(b"\n", mutant.end)
    after = mutant.apply(source)
    return {
        "path": mutant.path,
        "line": mutant.line,
        "operator": mutant.operator,
        "outcome": verdict.outcome,
        "tests": verdict.tests,
        "now": source[first:last].decode().strip(),
        "mutant": after[first : last + len(after) - len(source)].decode().strip(),
    }


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
