"""Bytes under a path that no file system keeps: TLS libraries read private keys from paths only.

However a process ends, the bytes are gone with it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def open_in_memory(content: bytes) -> int:
    """Return a descriptor of a file without a name that holds `content`, to be read by its path."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    else:  # not Linux: a file that loses its name before it gets its content
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
    """Give a path of `content` while inside."""
    descriptor = open_in_memory(content)
    try:
        yield path_of(descriptor)
    finally:
        os.close(descriptor)
