"""A command on a terminal."""

import contextlib
import os
import pty
import subprocess
from collections.abc import Mapping, Sequence


def shown_on_terminal(
    command: Sequence[str], env: Mapping[str, str], *, stdin: bytes = b""
) -> tuple[int, str]:
    """Run a command whose output is a terminal; return its exit code, and what it shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    process.stdin.write(stdin)
    process.stdin.close()
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    return process.wait(60), shown.decode()
