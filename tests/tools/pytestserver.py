"""Run pytest again and again from a process that has imported the libraries already.

Each line of standard input is a JSON object: `arguments`, and `seconds` of CPU time. Each line of
standard output is the exit code of pytest, null where it takes longer, or ten times as long by the
clock. The process imports nothing of the project itself: each run imports that anew. Linux only.
"""

import importlib
import json
import os
import resource
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

_CLOCK: Final = 10


def main() -> None:
    """Serve until standard input ends."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run(request["arguments"], request["seconds"])), flush=True)


def _run(arguments: list[str], seconds: int) -> int | None:
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        os._exit(int(pytest.main([*IMPORTED, *arguments])))
    ended = os.pidfd_open(child)
    in_time = bool(select.select([ended], [], [], _CLOCK * seconds)[0])
    os.close(ended)
    # Its tests may have started processes, which end with it.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    return code if in_time and code >= 0 else None


if __name__ == "__main__":
    main()
