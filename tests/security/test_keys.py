"""Private keys: none is left in the temporary folder, however a command ends."""

import asyncio
import base64
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hyperjob_certs.x509 import Pair
from hyperjob_core.kube.config import load
from hyperjob_core.memoryfile import in_memory
from tests.support.kubeconfigs import write_kubeconfig
from tests.support.processes import wait_for
from tests.support.stack import issue_certificates

pytestmark = pytest.mark.scenario

ENDS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]


def kubeconfig_with_key(path, server, pair):
    certificate, key = (base64.b64encode(each).decode() for each in (pair.certificate, pair.key))
    user = {"client-certificate-data": certificate, "client-key-data": key}
    return write_kubeconfig(path, server, user=user, certificate_authority_data=certificate)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    files = issue_certificates(tmp_path_factory.mktemp("tls"))
    return Pair(files.certificate.read_bytes(), files.key.read_bytes())


@pytest.fixture(autouse=True)
def heard():
    """Let processes hear all signals: under nohup, or behind a shell's `&`, they ignore some."""
    ignored = [end for end in ENDS[:3] if signal.getsignal(end) is signal.SIG_IGN]
    for end in ignored:
        signal.signal(end, signal.SIG_DFL)
    yield
    for end in ignored:
        signal.signal(end, signal.SIG_IGN)


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def start(temporary, *words, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "hyperjob", *words],
        env={**os.environ, "TMPDIR": str(temporary), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_a_command_leaves_no_key_of_its_kubeconfig(tmp_path, temporary, pair, end):
    """It is ended while it waits for an API server that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        config = kubeconfig_with_key(tmp_path / "kubeconfig", address, pair)
        process = start(temporary, "get", KUBECONFIG=str(config))
        try:
            connection, _ = server.accept()
            assert not list(temporary.iterdir()), "not even while it runs"
            process.send_signal(end)
            process.wait(60)
            connection.close()
        finally:
            process.kill()
            process.wait(30)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("end", ENDS[:1], ids=lambda end: end.name)
def test_the_sandbox_leaves_no_folder(temporary, end):
    process = start(temporary, "sandbox", "up")
    try:
        wait_for(
            lambda: list(temporary.glob("*/ready")) or list(temporary.glob("*/*kubeconfig*")),
            what="the sandbox's kubeconfig",
            process=process,
        )
        process.send_signal(end)
        process.wait(60)
    finally:
        process.kill()
        process.wait(30)
    assert not list(temporary.iterdir())


async def test_keys_are_loaded_and_their_descriptors_closed(tmp_path, pair):
    config = kubeconfig_with_key(tmp_path / "kubeconfig", "https://127.0.0.1:1", pair)
    await load(config)
    before = len(list(Path("/dev/fd").iterdir()))
    await asyncio.gather(*(load(config) for _ in range(5)))
    assert len(list(Path("/dev/fd").iterdir())) <= before


def test_a_file_in_memory_can_be_read_by_its_path_alone(temporary, monkeypatch):
    with in_memory(b"key") as path:
        assert Path(path).read_bytes() == b"key"
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with in_memory(b"key") as path:
        assert not list(temporary.iterdir())
        assert Path(path).read_bytes() == b"key"
