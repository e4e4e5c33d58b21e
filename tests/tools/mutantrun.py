"""The pytest plugin that tries mutants: in a fork of its process, then in a copy of the tree."""

import functools
import gc
import hashlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import coverage
import pytest

from tests.support.rooms import PACKAGES, ROOT
from tests.tools.mutants import Result, say
from tests.tools.operators import Mutant, lines_at_import

CPU_SECONDS: Final = 120
"""For the tests of a mutant; one that takes longer has been noticed."""
FEWEST: Final = 10
"""Tests of a mutant that run whatever they take."""


class Runner:
    """Runs what pytest has collected once for its lines, and in part for each mutant."""

    def __init__(self, chosen: Sequence[Mutant], *, seconds: float, work: Path, root: Path) -> None:
        self.results: list[Result] = []
        self._chosen = chosen
        self._seconds = seconds
        self._work = work
        self._root = root
        self._took: dict[str, float] = {}
        self._running: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._functions: dict[tuple[str, str, int], list[types.FunctionType]] = defaultdict(list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        if session.testsfailed:
            return False  # a module of tests could not be imported: pytest says so
        self._measure(session)
        items = {item.nodeid: item for item in session.items}
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType):
                code = each.__code__
                place = code.co_filename, code.co_qualname, code.co_firstlineno
                self._functions[place].append(each)
            elif isinstance(each, functools._lru_cache_wrapper):
                each.cache_clear()
        gc.collect()
        gc.freeze()
        session.testsfailed = 0
        for number, mutant in enumerate(self._chosen, start=1):
            tests = [name for name in self._tests_of(mutant) if name in items]
            outcome = self._judge(session, mutant, [items[name] for name in tests])
            self.results.append(Result(mutant, outcome, len(tests)))
            place = f"{mutant.path}:{mutant.line}"
            say(f"{number}/{len(self._chosen)} {outcome:9} {place} {mutant.operator}")
        return True

    def _measure(self, session: pytest.Session) -> None:
        """Note for each test its time and the lines that it runs."""
        path = self._work / f"lines-{self._digest(session)}.jsonl"
        if not path.exists():
            say(f"measuring which lines each of {len(session.items)} tests runs")
            self._work.mkdir(exist_ok=True)
            path.with_suffix(".part").write_text("\n".join(self._measured(session)))
            path.with_suffix(".part").rename(path)
        for row in path.read_text().splitlines():
            name, took, lines = json.loads(row)
            self._took[name] = took
            for file, numbers in lines.items():
                for number in numbers:
                    self._running[file, number].append(name)

    def _measured(self, session: pytest.Session) -> Iterator[str]:
        folders = sorted({mutant.path.split("/")[0] for mutant in self._chosen})
        measuring = coverage.Coverage(data_file=None, config_file=False, source=folders)
        took: dict[str, float] = {}
        measuring.start()
        for number, item in enumerate(session.items):
            after = session.items[number + 1] if number + 1 < len(session.items) else None
            failed, began = session.testsfailed, time.process_time()
            measuring.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed == failed:
                took[item.nodeid] = time.process_time() - began
        measuring.stop()
        data = measuring.get_data()
        lines: dict[str, dict[str, list[int]]] = {name: defaultdict(list) for name in took}
        for file in data.measured_files():
            short = os.path.relpath(file, self._root)
            for line, names in data.contexts_by_lineno(file).items():
                for name in took.keys() & set(names):
                    lines[name][short].append(line)
        for name, found in lines.items():
            yield json.dumps([name, round(took[name], 4), found])

    def _digest(self, session: pytest.Session) -> str:
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self._root,
            check=True,
            capture_output=True,
        ).stdout.decode()
        state = hashlib.sha256("\0".join(item.nodeid for item in session.items).encode())
        state.update(",".join(sorted({m.path.split("/")[0] for m in self._chosen})).encode())
        for name in files.split("\0"):
            if name.endswith(".py") and (self._root / name).is_file():
                state.update((self._root / name).read_bytes())
        return state.hexdigest()[:16]

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests of a mutant, the quickest first, as many as the time allows."""
        at_import = mutant.line in lines_at_import((self._root / mutant.path).read_bytes())
        found = (
            {name for (path, _), names in self._running.items() if path == mutant.path
             for name in names}
            if at_import
            else set(self._running[mutant.path, mutant.line])
        )  # fmt: skip
        chosen, left = [], self._seconds
        for name in sorted(found, key=lambda name: (self._took[name], name)):
            if left < 0 and len(chosen) >= FEWEST:
                break
            chosen.append(name)
            left -= self._took[name]
        return chosen

    def _judge(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> str:
        if not items:
            return "uncovered"
        pid = os.fork()
        if not pid:
            _child(session, self._patched(mutant), items)
        code = _ended(pid)
        if code in (None, 1):
            return "timeout" if code is None else "killed"
        return self._judge_in_copy(mutant, [item.nodeid for item in items])

    def _patched(self, mutant: Mutant) -> bool:
        """Put the changed code into the functions that have it; tell whether any has."""
        path = str(self._root / mutant.path)
        source = (self._root / mutant.path).read_bytes()
        found = False
        for code in _codes(compile(mutant.apply(source), path, "exec", dont_inherit=True)):
            for each in self._functions.get((path, code.co_qualname, code.co_firstlineno), ()):
                if each.__code__ != code and each.__code__.co_freevars == code.co_freevars:
                    each.__code__ = code
                    found = True
        return found

    def _judge_in_copy(self, mutant: Mutant, tests: list[str]) -> str:
        copy = self._work / "tree"
        if not (copy / mutant.path).exists() or not self.results:
            shutil.rmtree(copy, ignore_errors=True)
            kept = shutil.ignore_patterns(".mutants", ".venv*", "__pycache__", "build")
            shutil.copytree(self._root, copy, ignore=kept, symlinks=True)
        target = copy / mutant.path
        source = (self._root / mutant.path).read_bytes()
        target.write_bytes(mutant.apply(source))
        options = ("-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "pytest", *options, *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _paths(copy)))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_limited,
        )
        try:
            code = _ended(process.pid)
        finally:
            target.write_bytes(source)
            process.returncode = 0  # waited for already
        return "timeout" if code is None else "killed" if code else "survived"


def _paths(copy: Path) -> list[Path]:
    folders = (*PACKAGES.values(), ROOT / "sandbox" / "hyperjob_sandbox")
    return [copy / folder.parent.relative_to(ROOT) for folder in folders]


def _child(session: pytest.Session, patched: bool, items: list[pytest.Item]) -> None:
    """Run tests in the forked process until one fails; end with 1 if so, with 2 untried."""
    code: int = 2
    try:
        os.setsid()
        _limited()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        if patched:
            code = _first_failure(session, items)
    finally:
        os._exit(code)


def _first_failure(session: pytest.Session, items: list[pytest.Item]) -> int:
    for number, item in enumerate(items):
        after = items[number + 1] if number + 1 < len(items) else None
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        except BaseException:  # noqa: BLE001 - pytest itself failed over the mutant
            return 1
        if session.testsfailed:
            return 1
    return 0


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def _ended(pid: int) -> int | None:
    """Wait for a process and end its group; return its exit code, None where it took too long."""
    handle = os.pidfd_open(pid)
    in_time = bool(select.select([handle], [], [], 10 * CPU_SECONDS)[0])
    os.close(handle)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if in_time and code >= 0 else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)
