"""End a command as kubectl does where its output cannot be written: without a traceback."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def written() -> Iterator[None]:
    """Flush the output of the block; a closed pipe ends the process by SIGPIPE."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # a process without standard output
                sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        from hyperjob.cli.kubectl.exits import FailureError

        # What is left in the buffer would fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FailureError(f"cannot write the output: {error.strerror}") from None
