"""Run pytest again and again from a process that has imported the libraries already.

Each line of standard input is a JSON object with `arguments` and `timeout` in seconds; each line of
standard output is the exit code of pytest, null past the timeout. The process imports nothing of
the project itself: each run imports that anew. Linux only.
"""

import importlib
import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Final

import pytest

LIBRARIES: Final = (
    "aiohttp.test_utils",
    "aiohttp.web",
    "cryptography.x509",
    "hypothesis.stateful",
    "jsonpatch",
    "jsonschema",
    "kubernetes_asyncio.config",
    "orjson",
    "prometheus_client",
    "pydantic",
    "pytest_asyncio.plugin",
    "yaml",
)
IMPORTED: Final = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""pytest warns where a library with a plugin for it is imported before."""


def main() -> None:
    """Serve until standard input ends."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run(request["arguments"], request["timeout"])), flush=True)


def _run(arguments: list[str], timeout: float) -> int | None:
    child = os.fork()
    if not child:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        os._exit(int(pytest.main([*IMPORTED, *arguments])))
    ended = os.pidfd_open(child)
    in_time = bool(select.select([ended], [], [], timeout)[0])
    os.close(ended)
    # Its tests may have started processes, which end with it.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status) if in_time else None


if __name__ == "__main__":
    main()
