"""The API server's certificates and kubeconfigs: one authority, serving and client certificates.

Keys live in memory, and in kubeconfigs that their owner alone can read.
"""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from hyperjob_certs.x509 import Pair, issue_ca, issue_client, issue_serving
from hyperjob_core.memoryfile import in_memory

_LIFETIME = timedelta(days=365)


class Authority:
    """A certificate authority with what it issued for one API server."""

    def __init__(self, name: str, *, hosts: tuple[str, ...]) -> None:
        now = datetime.now(UTC)
        self.ca: Pair = issue_ca(common_name=f"{name}-ca", lifetime=_LIFETIME, now=now)
        names = dict.fromkeys((*hosts, "localhost", "127.0.0.1", "kubernetes.default.svc"))
        self._serving = issue_serving(self.ca, names=list(names), lifetime=_LIFETIME, now=now)

    def server_context(self) -> ssl.SSLContext:
        """Build the TLS context of the server; client certificates are asked for, not required."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        load_pair(context, self._serving)
        context.load_verify_locations(cadata=self.ca.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_pair(self, user: str, groups: tuple[str, ...]) -> Pair:
        """Issue a client certificate: CN is the user, each O a group."""
        now = datetime.now(UTC)
        return issue_client(self.ca, name=user, groups=groups, lifetime=_LIFETIME, now=now)


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a certificate and its key, which OpenSSL takes from a file only."""
    with in_memory(pair.certificate + b"\n" + pair.key) as path:
        context.load_cert_chain(path)


def write_kubeconfig(
    path: Path, *, name: str, server: str, ca: bytes, user: str, pair: Pair
) -> Path:
    """Write a kubeconfig with inline certificates, readable by its owner only."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": _text(ca)}}
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _text(pair.certificate),
                    "client-key-data": _text(pair.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
