"""Certificates as values: the issue of authorities, serving and client certificates, and parsing.

Pure, except for the random numbers of key generation; the caller passes the time.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hyperjob_core.api.formats import dns1123_subdomain

CLOCK_SKEW: Final = timedelta(minutes=5)
"""Certificates are valid from this time before their issue, for API servers with a late clock."""
MAX_COMMON_NAME: Final = 64


class InvalidPair(Exception):  # noqa: N818 - a verdict on what was read, not a fault of the reader
    """A certificate or key is unusable, for the reason in the text, which has no secret."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate chain, leaf first, with the private key of the leaf, both as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"Pair(certificate={len(self.certificate)} bytes, key=…)"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts in a certificate."""

    subject: str
    serial: int
    names: frozenset[str]
    not_before: datetime
    not_after: datetime


def issue_ca(*, common_name: str, lifetime: timedelta, now: datetime) -> Pair:
    """Return a self-signed authority, which may sign certificates but no further authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = _key_usage(signs_certificates=True)
    certificate = (
        _builder(key, now=now, lifetime=lifetime)
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(identifier.digest, None, None), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def issue_serving(ca: Pair, *, names: Sequence[str], lifetime: timedelta, now: datetime) -> Pair:
    """Return a server certificate for names as `served_name` returns them.

    Its authority outlives it.
    """
    if not names:
        raise ValueError("a serving certificate needs at least one DNS name or IP address")
    return _issue(
        ca,
        name=names[0][:MAX_COMMON_NAME],  # clients read the alternative names
        usage=ExtendedKeyUsageOID.SERVER_AUTH,
        names=x509.SubjectAlternativeName([_general_name(name) for name in names]),
        lifetime=lifetime,
        now=now,
    )


def issue_client(
    ca: Pair, *, name: str, groups: Sequence[str] = (), lifetime: timedelta, now: datetime
) -> Pair:
    """Return a client certificate of a user, by default of no group; its authority outlives it.

    `name` has at most MAX_COMMON_NAME characters.
    """
    return _issue(
        ca,
        name=name,
        groups=groups,
        usage=ExtendedKeyUsageOID.CLIENT_AUTH,
        names=None,
        lifetime=lifetime,
        now=now,
    )


def _issue(
    ca: Pair,
    *,
    name: str,
    groups: Sequence[str] = (),
    usage: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
    lifetime: timedelta,
    now: datetime,
) -> Pair:
    """Return a leaf certificate that ends before its authority; `names` None: without alternatives.

    Raises InvalidPair for an authority whose key is not ECDSA.
    """
    authority = load_certificates(ca.certificate)[0]
    signer = load_key(ca.key)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise InvalidPair("the authority's key is not an ECDSA key")
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_identifier = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    builder = (
        _builder(key, now=now, lifetime=min(lifetime, authority.not_valid_after_utc - now))
        .subject_name(subject)
        .issuer_name(authority.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_identifier),
            critical=False,
        )
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    return Pair(_pem(certificate), _key_pem(key))


def served_name(text: str) -> str:
    """Return a DNS name or IP address as a certificate shows it: `0:0:0:0:0:0:0:1` is `::1`.

    Raises ValueError for any other text.
    """
    with suppress(ValueError):
        address = ipaddress.ip_address(text)
        if "%" not in text:
            return str(address)
    name = text.lower()
    if dns1123_subdomain(name.removeprefix("*.").replace("_", "x")):
        raise ValueError(f"{text!r} is neither a DNS name nor an IP address")
    return name


def facts(certificate: bytes) -> Facts:
    """Return the facts of a PEM chain's first certificate; raise `InvalidPair` if there is none."""
    leaf = load_certificates(certificate)[0]
    try:
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = frozenset(str(name.value) for name in extension.value)
    except x509.ExtensionNotFound:
        names = frozenset()
    return Facts(
        subject=leaf.subject.rfc4514_string(),
        serial=leaf.serial_number,
        names=names,
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
    )


def check_pair(pair: Pair, *, now: datetime) -> Facts:
    """Return the facts of a pair that is valid now; else raise `InvalidPair` with the reason."""
    leaf = load_certificates(pair.certificate)[0]
    key = load_key(pair.key)
    if key.public_key() != leaf.public_key():
        raise InvalidPair("the private key does not belong to the certificate")
    found = facts(pair.certificate)
    if now >= found.not_after:
        raise InvalidPair(f"the certificate expired at {found.not_after.isoformat()}")
    if now < found.not_before:
        raise InvalidPair(f"the certificate is not valid before {found.not_before.isoformat()}")
    return found


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Return whether the first certificate was signed by the first one of `authority`."""
    leaf, issuer = load_certificates(certificate)[0], load_certificates(authority)[0]
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def split_bundle(bundle: bytes) -> list[bytes]:
    """Split a PEM bundle into single certificates, each once, in order."""
    if not bundle.strip():
        return []
    return list(dict.fromkeys(_pem(one) for one in load_certificates(bundle)))


def join_bundle(certificates: Iterable[bytes]) -> bytes:
    """Return certificates as one PEM bundle, each once, in order."""
    return b"".join(dict.fromkeys(one.strip() + b"\n" for one in certificates))


def load_certificates(pem: bytes) -> list[x509.Certificate]:
    """Parse a PEM chain; raise `InvalidPair` unless it has at least one certificate."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise InvalidPair(f"no PEM certificate could be read: {error}") from None


def load_key(pem: bytes) -> PrivateKeyTypes:
    """Parse an unencrypted PEM private key; raise `InvalidPair`, without any secret in it."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise InvalidPair("the private key is encrypted, which is not supported") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidPair("no PEM private key could be read") from None


def _builder(
    key: ec.EllipticCurvePrivateKey, *, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
