"""What the library leaves as it is in the process of its user."""

import subprocess
import sys

PROGRAM = """
from asyncio.sslproto import SSLProtocol
before = SSLProtocol.max_size
import hyperjob.sdk
import hyperjob_core.kube.http
assert SSLProtocol.max_size == before
"""


def test_an_import_changes_no_buffer_of_other_tls_connections() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)
