"""Compare what two commits decide: `python -m tests.decisions BASE`.

The generated cases of this tree are decided by the code of the commit BASE, in a worktree of its
own, and by the code of this tree with its uncommitted changes. Exit code 0: all decisions are
equal; 1: some differ; 2: they cannot be compared.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.decisions.compare import Decided, compared
from tests.decisions.sections import SECTIONS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENTRY = "tests/decisions/entry.py"
LONGEST = 1800.0
"""Seconds for all cases of one tree."""


def git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], check=True, text=True, capture_output=True
    ).stdout.strip()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "base"
        git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def entry_of(tree: Path, folder: Path) -> Path:
    """Return a tree's own entry; an older tree gets the first version of the entry."""
    if (tree / ENTRY).exists():
        return tree / ENTRY
    versions = git("log", "--reverse", "--diff-filter=A", "--format=%H", "--", ENTRY).split()
    if not versions:
        return ROOT / ENTRY
    made = folder / "entry.py"
    made.write_text(git("show", f"{versions[0]}:{ENTRY}"), encoding="utf-8")
    return made


def path_of(tree: Path) -> str:
    """Return the PYTHONPATH by which a process runs the code of a tree."""
    settings = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = settings["tool"]["pytest"]["ini_options"]["pythonpath"]
    return os.pathsep.join(str((tree / room).resolve()) for room in rooms)


def begun(tree: Path, entry: Path, sections: list[str], seed: int, out: Path) -> subprocess.Popen:
    """Start to decide; another hash seed for each tree shows decisions that depend on hashes."""
    command = [sys.executable, "-P", str(HERE / "child.py"), str(tree), str(entry), *sections]
    environment = {**os.environ, "PYTHONPATH": path_of(tree), "PYTHONHASHSEED": str(seed)}
    with out.open("w", encoding="utf-8") as file:
        return subprocess.Popen(command, cwd=tree, env=environment, stdout=file)


def read(out: Path, sections: list[str]) -> Decided:
    found: dict[str, dict] = {name: {} for name in sections}
    for line in out.read_text(encoding="utf-8").splitlines():
        section, title, rows = json.loads(line)
        found[section][title] = [tuple(row) for row in rows]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="make decisions", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    only = f"a section of the cases, of {', '.join(SECTIONS)}; may be given more than once"
    parser.add_argument("--only", action="append", choices=SECTIONS, metavar="SECTION", help=only)
    parser.add_argument("--show", type=int, default=8, help="differing cases that are shown")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # removes the worktree
    sections = asked.only or list(SECTIONS)
    try:
        commit = git("rev-parse", "--verify", f"{asked.base}^{{commit}}")
    except subprocess.CalledProcessError as error:
        print(f"BASE={asked.base}: {error.stderr.strip()}", file=sys.stderr)
        return 2
    with worktree(commit) as base, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outs = folder / "base.jsonl", folder / "here.jsonl"
        children = [
            begun(base, entry_of(base, folder), sections, 1, outs[0]),
            begun(ROOT, ROOT / ENTRY, sections, 2, outs[1]),
        ]
        try:
            codes = [child.wait(timeout=LONGEST) for child in children]
        finally:
            for child in children:
                child.kill()
        if any(codes):
            print("the cases could not be decided by both trees: see above", file=sys.stderr)
            return 2
        same, report = compared(*(read(out, sections) for out in outs), shown=asked.show)
    print(f"decisions of {asked.base} (-) and of this tree (+)")
    print("\n".join(report))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
