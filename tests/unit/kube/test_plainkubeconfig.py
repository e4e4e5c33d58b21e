"""Which kubeconfigs are plain: all others, and all that are wrong, are left to the full loader."""

import ssl

import pytest
import yaml

from hyperjob_core.kube import plainkubeconfig

CERTIFICATE = {"client-certificate": "client.pem", "client-key": "client.key"}


def written(at, /, *, user=CERTIFICATE, context=None, **cluster):
    content = yaml.safe_load(at.kubeconfig.read_text())
    content["users"][0]["user"] = dict(user)
    content["contexts"][0]["context"] |= context or {}
    content["clusters"][0]["cluster"] |= cluster
    at.kubeconfig.write_text(yaml.safe_dump(content))
    return at.kubeconfig


PLAIN = {
    "a certificate": {},
    "a token": {"user": {"token": "t"}},
    "both": {"user": {"token": "t", **CERTIFICATE}},
    "no credentials at all": {"user": {}},
    "a namespace": {"context": {"namespace": "ml"}},
    "a server that is not checked": {"insecure-skip-tls-verify": True},
    "another name of the server": {"tls-server-name": "localhost"},
    "a proxy": {"proxy-url": "http://proxy:3128"},
    "notes of another tool": {"extensions": [{"name": "tool", "extension": {"a": 1}}]},
}


@pytest.mark.parametrize("case", PLAIN)
async def test_it_reads(case, server):
    found = plainkubeconfig.read(written(server, **PLAIN[case]))
    assert found is not None
    assert found.server == server.url
    assert found.tls is not None


UNUSUAL = {
    "a plugin": {"user": {"exec": {"command": "login"}}},
    "a token in a file": {"user": {"tokenFile": "token"}},
    "a password": {"user": {"username": "u", "password": "p"}},
    "an identity provider": {"user": {"auth-provider": {"name": "oidc"}}},
    "impersonation": {"user": {"token": "t", "as": "someone"}},
    "a key that is not there": {"user": {**CERTIFICATE, "client-key": "none.key"}},
    "a certificate without its key": {"user": {"client-certificate": "client.pem"}},
    "an empty token": {"user": {"token": ""}},
    "a token that is no text": {"user": {"token": 7}},
    "an authority that is none": {"certificate-authority-data": "bm90IGEgY2VydGlmaWNhdGU="},
    "an authority that is no base64": {"certificate-authority-data": "%%%"},
    "a field from the future": {"new-field": "x"},
    "an address that is none": {"server": "ftp://x"},
    "a user that is not there": {"context": {"user": "other"}},
    "a cluster that is not there": {"context": {"cluster": "other"}},
}


@pytest.mark.parametrize("case", UNUSUAL)
async def test_it_leaves_to_the_full_loader(case, server):
    assert plainkubeconfig.read(written(server, **UNUSUAL[case])) is None


@pytest.mark.parametrize("content", ["", "[]", "a: [", "{}", "contexts: 3", "\0"])
def test_it_leaves_what_is_no_kubeconfig_to_the_full_loader(content, tmp_path):
    path = tmp_path / "config"
    path.write_text(content)
    assert plainkubeconfig.read(path) is None
    assert plainkubeconfig.read(tmp_path / "none") is None


async def test_a_server_is_checked_unless_the_kubeconfig_says_otherwise(server):
    checked = plainkubeconfig.read(server.kubeconfig)
    unchecked = plainkubeconfig.read(written(server, **{"insecure-skip-tls-verify": True}))
    assert checked is not None
    assert checked.tls is not None
    assert checked.tls.verify_mode is ssl.CERT_REQUIRED
    assert checked.tls.check_hostname
    assert unchecked is not None
    assert unchecked.tls is not None
    assert unchecked.tls.verify_mode is ssl.CERT_NONE
