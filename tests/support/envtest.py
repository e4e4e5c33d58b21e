"""A real etcd and kube-apiserver from KUBEBUILDER_ASSETS, as envtest starts them."""

import contextlib
import os
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.kubeconfigs import write_kubeconfig
from tests.support.processes import free_port, running, wait_for

ASSETS = Path(os.environ.get("KUBEBUILDER_ASSETS", "nowhere"))
NEEDS_KUBE_APISERVER = [
    pytest.mark.scenario,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        "KUBEBUILDER_ASSETS" not in os.environ, reason="KUBEBUILDER_ASSETS names no kube-apiserver"
    ),
]


def _service_account_key(directory: Path) -> tuple[Path, Path]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = directory / "sa.key", directory / "sa.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


@contextlib.contextmanager
def running_etcd(assets: Path, directory: Path) -> Iterator[str]:
    """Run etcd; yield the URL for its clients."""
    directory.mkdir(parents=True, exist_ok=True)
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = [
        assets / "etcd",
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    ]
    with running(command, log=directory / "etcd.log"):
        yield client


@contextlib.contextmanager
def kube_apiserver(
    assets: Path, directory: Path, *flags: str, etcd: str | None = None
) -> Iterator[Path]:
    """Run kube-apiserver, and etcd unless its URL is given; yield an administrator's kubeconfig."""
    directory.mkdir(parents=True, exist_ok=True)
    ca = trustme.CA()
    ca_file = directory / "ca.crt"
    ca.cert_pem.write_to_path(ca_file)
    serving = ca.issue_cert("127.0.0.1", "localhost")
    admin = ca.issue_cert("admin.invalid", common_name="admin", organization_name="system:masters")
    for name, cert in (("server", serving), ("admin", admin)):
        cert.private_key_pem.write_to_path(directory / f"{name}.key")
        cert.cert_chain_pems[0].write_to_path(directory / f"{name}.crt")
    private, public = _service_account_key(directory)
    port = free_port()
    apiserver = [
        assets / "kube-apiserver",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={directory / 'server.crt'}",
        f"--tls-private-key-file={directory / 'server.key'}",
        f"--client-ca-file={ca_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={public}",
        f"--service-account-signing-key-file={private}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        *flags,
    ]
    kubeconfig = write_kubeconfig(
        directory / "kubeconfig",
        f"https://127.0.0.1:{port}",
        user={
            "client-certificate": str(directory / "admin.crt"),
            "client-key": str(directory / "admin.key"),
        },
        certificate_authority=str(ca_file),
    )
    context = ssl.create_default_context(cafile=str(ca_file))
    context.load_cert_chain(directory / "admin.crt", directory / "admin.key")

    def ready() -> bool:
        try:
            url = f"https://127.0.0.1:{port}/readyz"
            with urllib.request.urlopen(url, context=context, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    log = directory / "kube-apiserver.log"
    with contextlib.ExitStack() as stack:
        store = etcd or stack.enter_context(running_etcd(assets, directory))
        command = [*apiserver, f"--etcd-servers={store}"]
        process = stack.enter_context(running(command, log=log))
        wait_for(ready, what="kube-apiserver", process=process, log=log, timeout=90)
        yield kubeconfig
