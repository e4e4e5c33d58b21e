"""The API server's certificates and kubeconfigs: one authority, serving and client certificates.

Keys live in memory, and in kubeconfigs that their owner alone can read.
"""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.x509 import Pair, issue_ca, issue_serving
from hyperjob.memoryfile import in_memory

_LIFETIME = timedelta(days=365)
_SKEW = timedelta(minutes=5)


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
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        issuer = x509.load_pem_x509_certificate(self.ca.certificate)
        issuer_key = serialization.load_pem_private_key(self.ca.key, password=None)
        assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(names))
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(issuer_key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


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
