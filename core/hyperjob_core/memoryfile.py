"""Files in memory with a path: TLS libraries read private keys from paths only.

The bytes end with the process, however it ends.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_memory(content: bytes) -> Iterator[str]:
    """Yield a path of a file with `content`, which this process can read until the block ends."""
    if hasattr(os, "memfd_create"):
        descriptor, folder = os.memfd_create("pem", os.MFD_CLOEXEC), "/proc/self/fd"
    else:  # not Linux: a file that is unlinked before its content is written
        descriptor, name = tempfile.mkstemp()
        os.unlink(name)  # noqa: PTH108 - its name is a string
        folder = "/dev/fd"
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield f"{folder}/{descriptor}"
    finally:
        os.close(descriptor)
