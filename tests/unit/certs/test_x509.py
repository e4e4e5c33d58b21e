"""Certificates as values: what is issued, and what is told apart."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509 as cx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hyperjob_certs.x509 import (
    InvalidPair,
    Pair,
    check_pair,
    facts,
    is_signed_by,
    issue_ca,
    issue_client,
    issue_serving,
    served_name,
)

NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def ca():
    return issue_ca(common_name="ca", lifetime=100 * DAY, now=NOW)


@pytest.fixture(scope="module")
def leaf(ca):
    return issue_serving(ca, names=["hooks.example", "127.0.0.1", "::1"], lifetime=DAY, now=NOW)


def test_a_serving_certificate_names_hosts_and_addresses(leaf):
    found = facts(leaf.certificate)
    assert found.names == {"hooks.example", "127.0.0.1", "::1"}
    assert found.not_after - NOW == DAY
    assert found.not_before < NOW, "API servers with a slow clock accept it too"


def test_the_extensions_are_those_of_a_server_and_of_an_authority(ca, leaf):
    server = cx.load_pem_x509_certificate(leaf.certificate)
    authority = cx.load_pem_x509_certificate(ca.certificate)
    assert not server.extensions.get_extension_for_class(cx.BasicConstraints).value.ca
    constraints = authority.extensions.get_extension_for_class(cx.BasicConstraints)
    assert constraints.critical
    assert constraints.value.path_length == 0
    usage = server.extensions.get_extension_for_class(cx.ExtendedKeyUsage).value
    assert list(usage) == [cx.ExtendedKeyUsageOID.SERVER_AUTH]
    issued = server.extensions.get_extension_for_class(cx.AuthorityKeyIdentifier).value
    own = authority.extensions.get_extension_for_class(cx.SubjectKeyIdentifier).value
    assert issued.key_identifier == own.digest


def key_usage(certificate):
    usage = certificate.extensions.get_extension_for_class(cx.KeyUsage)
    assert usage.critical
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    others = ("key_agreement", "key_cert_sign", "crl_sign")
    return {name for name in (*names, *others) if getattr(usage.value, name)}


def test_an_authority_signs_certificates_and_a_server_signs_handshakes(ca, leaf):
    assert key_usage(cx.load_pem_x509_certificate(leaf.certificate)) == {"digital_signature"}
    authority = cx.load_pem_x509_certificate(ca.certificate)
    assert key_usage(authority) == {"key_cert_sign", "crl_sign"}
    own = authority.extensions.get_extension_for_class(cx.SubjectKeyIdentifier).value.digest
    above = authority.extensions.get_extension_for_class(cx.AuthorityKeyIdentifier).value
    assert above.key_identifier == own, "an authority names itself as its issuer"
    assert facts(ca.certificate).names == frozenset()
    assert facts(ca.certificate).subject == "CN=ca"


def test_a_client_certificate_names_a_user_and_the_users_groups(ca):
    pair = issue_client(ca, name="jane", groups=("system:masters", "b"), lifetime=DAY, now=NOW)
    client = cx.load_pem_x509_certificate(pair.certificate)
    named = [(part.oid._name, part.value) for part in client.subject]
    assert named == [
        ("organizationName", "system:masters"),
        ("organizationName", "b"),
        ("commonName", "jane"),
    ]
    usage = client.extensions.get_extension_for_class(cx.ExtendedKeyUsage).value
    assert list(usage) == [cx.ExtendedKeyUsageOID.CLIENT_AUTH]
    assert check_pair(pair, now=NOW).names == frozenset()
    alone = issue_client(ca, name="jane", lifetime=DAY, now=NOW)
    assert facts(alone.certificate).subject == "CN=jane"


def test_only_an_ecdsa_authority_issues(ca):
    authority = Pair(ca.certificate, rsa_key())
    with pytest.raises(InvalidPair, match="not an ECDSA key"):
        issue_serving(authority, names=["x"], lifetime=DAY, now=NOW)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("Hooks.Example", "hooks.example"),
        ("*.hooks.example", "*.hooks.example"),
        ("my_host", "my_host"),
        ("fe80::1%eth0", None),
        ("a.*.example", None),
        ("-a", None),
        ("", None),
    ],
)
def test_names_have_the_form_that_a_certificate_shows(text, name):
    if name is None:
        with pytest.raises(ValueError, match="neither a DNS name nor an IP address"):
            served_name(text)
    else:
        assert served_name(text) == name


def test_a_certificate_is_valid_from_its_first_moment_until_before_its_last(leaf):
    found = facts(leaf.certificate)
    second = timedelta(seconds=1)
    assert found.not_before == NOW - timedelta(minutes=5)
    check_pair(leaf, now=found.not_before)
    check_pair(leaf, now=found.not_after - second)
    with pytest.raises(InvalidPair, match="expired at"):
        check_pair(leaf, now=found.not_after)
    with pytest.raises(InvalidPair, match="not valid before"):
        check_pair(leaf, now=found.not_before - second)


def test_openssl_accepts_the_pair_and_its_authority(ca, leaf, tmp_path):
    (tmp_path / "pair.pem").write_bytes(leaf.key + leaf.certificate)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "pair.pem")
    ssl.create_default_context(cadata=ca.certificate.decode())


def test_a_serving_certificate_never_outlives_its_authority(ca):
    pair = issue_serving(ca, names=["x"], lifetime=1000 * DAY, now=NOW)
    assert facts(pair.certificate).not_after == facts(ca.certificate).not_after


def test_signed_by_tells_authorities_of_the_same_name_apart(ca, leaf):
    namesake = issue_ca(common_name="ca", lifetime=DAY, now=NOW)
    assert is_signed_by(leaf.certificate, ca.certificate)
    assert not is_signed_by(leaf.certificate, namesake.certificate)


def test_a_private_key_is_never_printed(leaf):
    assert "PRIVATE" not in repr(leaf)


def rsa_key(*, password=None):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


def test_what_cannot_be_served_is_named(ca, leaf):
    other = issue_serving(ca, names=["x"], lifetime=DAY, now=NOW)
    cases = {
        "does not belong to the certificate": (Pair(leaf.certificate, other.key), NOW),
        "does not belong": (Pair(leaf.certificate, rsa_key()), NOW),
        "expired at 2027-01-02": (leaf, NOW + 2 * DAY),
        "not valid before": (leaf, NOW - DAY),
        "no PEM certificate": (Pair(b"hello", leaf.key), NOW),
        "no PEM private key": (Pair(leaf.certificate, b"hello"), NOW),
        "is encrypted": (Pair(leaf.certificate, rsa_key(password=b"secret")), NOW),
        "no PEM certificate could": (Pair(leaf.certificate[:-60], leaf.key), NOW),
    }
    for text, (pair, now) in cases.items():
        with pytest.raises(InvalidPair, match=text):
            check_pair(pair, now=now)
    assert check_pair(leaf, now=NOW).names == facts(leaf.certificate).names
