"""The program that ends a local installation after any death of the process that started it.

It is a small program with Python's standard library only. It creates a temporary folder, prints the
path, and reads standard input, whose other end only the owner of the installation holds. At the end
of standard input the owner is gone or has closed the installation: the program kills its process
group, which all processes of the installation have joined, and removes the folder.
"""

import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress

_SWEEP_SECONDS = 10.0
_LOOK_SECONDS = 0.02


def main() -> None:
    """Keep the installation until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = tempfile.mkdtemp(prefix="hyperjob-")
    # Without its owner the program reads the end of standard input next.
    with suppress(BrokenPipeError):
        os.write(1, os.fsencode(folder) + b"\n")
    while os.read(0, 1):
        pass
    group = os.getpgrp()
    if os.fork():
        signal.pause()  # until the child kills the group
    os.setpgid(0, 0)
    with suppress(OSError):
        os.killpg(group, signal.SIGKILL)
    _remove(folder)


def _remove(folder: str) -> None:
    """Remove a folder; pods that are still ending may write to it meanwhile."""
    deadline = time.monotonic() + _SWEEP_SECONDS
    while os.path.lexists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
