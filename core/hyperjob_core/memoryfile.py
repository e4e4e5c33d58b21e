"""Files in memory with a path: TLS libraries read private keys from paths only.

The bytes end with the process, however it ends.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def open_in_memory(content: bytes) -> int:
    """Return the descriptor of an unnamed file with `content`; `path_of` returns its path."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    else:  # not Linux: a file that is unlinked before its content is written
        descriptor, name = tempfile.mkstemp()
        os.unlink(name)  # noqa: PTH108 - its name is a string
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def path_of(descriptor: int) -> str:
    """Return the path of an open descriptor in this process."""
    folder = "/proc/self/fd" if hasattr(os, "memfd_create") else "/dev/fd"
    return f"{folder}/{descriptor}"


@contextmanager
def in_memory(content: bytes) -> Iterator[str]:
    """Yield a path of a file with `content`."""
    descriptor = open_in_memory(content)
    try:
        yield path_of(descriptor)
    finally:
        os.close(descriptor)
