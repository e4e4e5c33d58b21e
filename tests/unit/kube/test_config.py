"""Where the API server is found, with which credentials, and what a wrong kubeconfig tells."""

import asyncio
import base64
import json
import ssl
import stat
import sys
import tempfile

import pytest
import trustme
import yaml

from hyperjob_core.kube import config, credentials
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError, Unavailable
from hyperjob_core.kube.http import HttpTransport

VERSION = "/version"
PAIR = {"certificate": "pem", "key": "key"}
EXEC = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def outside_of_any_cluster(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


async def call(server, connection):
    server.on(VERSION, server.reply({}))
    async with HttpTransport(connection, user_agent="test") as transport:
        await transport.request("GET", VERSION)
    return server.seen[-1]


def with_cluster(server, /, **fields):
    """Change fields of the cluster in the kubeconfig, `_` for `-`, and return its path."""
    content = yaml.safe_load(server.kubeconfig.read_text())
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    cluster = content["clusters"][0]["cluster"] | named
    content["clusters"][0]["cluster"] = {key: cluster[key] for key in cluster if cluster[key]}
    server.kubeconfig.write_text(yaml.safe_dump(content))
    return server.kubeconfig


@pytest.fixture(params=["alone", "beside another"])
def named(request, tmp_path):
    """Name a kubeconfig alone, or before a second file."""
    second = tmp_path / "second"
    second.write_text("{current-context: other}")
    return (lambda path: path) if request.param == "alone" else (lambda path: f"{path}:{second}")


async def test_a_client_certificate_is_presented(server, named):
    seen = await call(server, await config.load(named(server.kubeconfig)))
    assert seen.user == "admin"
    assert "authorization" not in seen.headers


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """Give the directory of temporary files, empty."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


async def test_inline_certificates_are_never_in_a_temporary_file(server, named, temporary):

    def inline(name):
        return base64.b64encode((server.folder / name).read_bytes()).decode()

    user = {f"client-{each}-data": inline(f"client.{end}") for each, end in PAIR.items()}
    path = server.write_kubeconfig(user, name="inline")
    assert (await call(server, await config.load(named(path)))).user == "admin"
    assert not list(temporary.iterdir())


def json_web_token():
    """Return a token of an identity provider that is valid until 2100."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
             for part in ({"alg": "none"}, {"exp": 4102444800}))  # fmt: skip
    return ".".join([*parts, "x"])


IDENTITY = json_web_token()
SENT = {
    "a token": ({"token": "t0ken"}, "Bearer t0ken"),
    "a name and a password": ({"username": "u", "password": "p"}, "Basic dTpw"),
    "a token of an identity provider": (
        {"auth-provider": {"name": "oidc", "config": {"id-token": IDENTITY}}},
        f"Bearer {IDENTITY}",
    ),
    "nothing": ({}, None),
}


@pytest.mark.parametrize(("user", "authorization"), SENT.values(), ids=list(SENT))
async def test_the_credentials_of_a_user_are_sent(server, named, user, authorization):
    path = named(server.write_kubeconfig(user, name="other"))
    seen = await call(server, await config.load(path))
    assert (seen.user, seen.headers.get("authorization")) == ("", authorization)


async def test_a_token_file_beside_the_kubeconfig_is_read_again(server, monkeypatch):
    monkeypatch.setattr(credentials, "REFRESH_SECONDS", 0)
    (server.folder / "token").write_text("one\n")
    path = server.write_kubeconfig({"tokenFile": "token"}, name="with-file")
    connection = await config.load(path)
    assert (await call(server, connection)).headers["authorization"] == "Bearer one"
    (server.folder / "token").write_text("two\n")
    assert (await call(server, connection)).headers["authorization"] == "Bearer two"
    (server.folder / "token").write_bytes("drei\u00df".encode())
    assert (await call(server, connection)).headers["authorization"] == "Bearer two"
    (server.folder / "token").unlink()
    assert (await call(server, connection)).headers["authorization"] == "Bearer two"


async def test_a_token_file_is_not_read_at_every_call(server):
    (server.folder / "token").write_text("one")
    path = server.write_kubeconfig({"tokenFile": "token"}, name="with-file")
    connection = await config.load(path)
    (server.folder / "token").write_text("two")
    assert (await call(server, connection)).headers["authorization"] == "Bearer one"


def with_plugin(server, **status):
    """Write a kubeconfig with a plugin, which counts its calls in the place of %d."""
    plugin = server.folder / "plugin"
    credential = {"apiVersion": EXEC, "kind": "ExecCredential", "status": status}
    plugin.write_text(
        f"#!{sys.executable}\n"
        "from pathlib import Path\n"
        f"calls = Path({str(server.folder / 'calls')!r})\n"
        "count = len(calls.read_text()) if calls.exists() else 0\n"
        "calls.write_text('x' * (count + 1))\n"
        f"print({json.dumps(credential)!r}.replace('%d', str(count)))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    entry = {"apiVersion": EXEC, "command": str(plugin), "interactiveMode": "Never"}
    return server.write_kubeconfig({"exec": entry}, name="exec")


@pytest.mark.parametrize(
    ("expires", "seconds", "tokens"),
    [
        ("2001-01-01T00:00:00Z", 0, ["Bearer t1", "Bearer t2"]),
        (None, 0, ["Bearer t1", "Bearer t2"]),
        ("2101-01-01T00:00:00Z", 0, ["Bearer t0", "Bearer t0"]),
        ("2001-01-01T00:00:00Z", 60, ["Bearer t0", "Bearer t0"]),
    ],
    ids=["expired", "without an expiry", "valid", "asked a moment ago"],
)
async def test_an_exec_plugin_gives_new_tokens_as_they_expire(
    server, expires, seconds, tokens, monkeypatch
):
    monkeypatch.setattr(credentials, "REFRESH_SECONDS", seconds)
    path = with_plugin(server, token="t%d", expirationTimestamp=expires)
    connection = await config.load(path)
    assert [(await call(server, connection)).headers["authorization"] for _ in range(2)] == tokens


async def test_a_plugin_that_fails_later_leaves_the_last_token(server, caplog, monkeypatch):
    monkeypatch.setattr(credentials, "REFRESH_SECONDS", 0)
    connection = await config.load(with_plugin(server, token="t%d"))
    (server.folder / "plugin").unlink()
    assert (await call(server, connection)).headers["authorization"] == "Bearer t0"
    assert "Cannot renew the token" in caplog.text


async def test_a_plugin_may_give_a_certificate(server, temporary):
    path = with_plugin(
        server,
        clientCertificateData=(server.folder / "client.pem").read_text(),
        clientKeyData=(server.folder / "client.key").read_text(),
    )
    seen = await call(server, await config.load(path))
    assert seen.user == "admin"
    assert "authorization" not in seen.headers
    assert not list(temporary.iterdir())


async def test_of_several_files_the_first_that_sets_a_key_counts(server):
    other = server.folder / "elsewhere"
    other.mkdir()
    (other / "token").write_text("elsewhere")
    content = yaml.safe_load(server.kubeconfig.read_text())
    content["users"] = [
        {"name": "test", "user": {"token": "second"}},
        {"name": "b", "user": {"tokenFile": "token"}},
    ]
    content["contexts"] = [{"name": "b", "context": {"cluster": "test", "user": "b"}}]
    content["current-context"] = "b"
    (other / "config").write_text(yaml.safe_dump(content))
    both = f"{server.kubeconfig}:{other / 'config'}"
    assert (await call(server, await config.load(both))).user == "admin"
    seen = await call(server, await config.load(both, context="b"))
    assert seen.headers["authorization"] == "Bearer elsewhere"


async def test_a_server_is_checked_unless_the_kubeconfig_says_otherwise(server):
    assert (await config.load(server.kubeconfig)).tls.verify_mode is ssl.CERT_REQUIRED
    fields = {"certificate_authority": None, "insecure_skip_tls_verify": True}
    connection = await config.load(with_cluster(server, **fields))
    assert connection.tls.verify_mode is ssl.CERT_NONE
    assert (await call(server, connection)).user == "admin"


async def test_a_plugin_that_gives_nothing_is_named(server):
    entry = {"apiVersion": EXEC, "command": "/bin/false"}
    path = server.write_kubeconfig({"exec": entry}, name="exec")
    with pytest.raises(ConfigError, match="/bin/false"):
        await config.load(path)


async def test_what_an_older_package_kubernetes_lacks_is_named(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes.aio", None)
    for module in [each for each in sys.modules if each.startswith("kubernetes.aio.")]:
        monkeypatch.delitem(sys.modules, module)
    path = server.write_kubeconfig({"auth-provider": {"name": "oidc"}}, name="old")
    needs = "the auth-provider 'oidc' needs .*kubernetes.aio.*kubernetes>=37"
    with pytest.raises(ConfigError, match=needs):
        await config.load(path)


async def test_a_plugin_beside_the_kubeconfig_is_told_of_the_cluster(server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (server.folder / "bin").mkdir()
    plugin = server.folder / "bin" / "log in"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "text = ' '.join([told['spec']['cluster'][key] for key in ('server', 'config')]"
        " + sys.argv[1:] + [os.environ['WHO'], str(told['spec']['interactive'])])\n"
        "print(json.dumps({**told, 'status': {'token': text}}))\n"
    )
    plugin.chmod(0o700)
    entry = {
        "apiVersion": EXEC,
        "command": "bin/log in",
        "args": ["--as"],
        "env": [{"name": "WHO", "value": "me"}],
        "provideClusterInfo": True,
    }
    path = server.write_kubeconfig({"exec": entry}, name="exec")
    content = yaml.safe_load(path.read_text())
    extension = {"name": "client.authentication.k8s.io/exec", "extension": "audience"}
    content["clusters"][0]["cluster"]["extensions"] = [extension]
    path.write_text(yaml.safe_dump(content))
    seen = await call(server, await config.load(path))
    assert seen.headers["authorization"] == f"Bearer {server.url} audience --as me False"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["echo", "{}"], "gave no credentials: 'apiVersion'"),
        (["echo", '{"apiVersion": "v2"}'], "it speaks v2, not v1"),
        (["echo", '{"apiVersion": "v1", "status": {}}'], "neither a token nor a certificate"),
        (["sh", "-c", "echo no session >&2; exit 3"], "exit code 3: no session"),
        (["not-there"], "No such file.*; get it from the platform"),
    ],
)
async def test_a_plugin_without_credentials_is_named_with_its_words(server, command, reason):
    entry = {"apiVersion": "v1", "command": command[0], "args": command[1:]}
    entry["installHint"] = "get it from the platform"
    path = server.write_kubeconfig({"exec": entry}, name="exec")
    with pytest.raises(ConfigError, match=reason):
        await config.load(path)


async def test_a_user_who_acts_as_another_one_says_so_in_each_request(server):
    other = {"as": "bob", "as-groups": ["a", "b"], "as-user-extra": {"acme.io/team": ["x"]}}
    connection = await config.load(server.write_kubeconfig({"token": "t", **other}, name="as"))
    server.on(VERSION, server.reply({}))
    async with HttpTransport(connection, user_agent="test") as transport:
        await transport.request("GET", VERSION)
        await transport.with_bearer("their own").request("GET", VERSION)
    first, second = server.seen[-2:]
    assert [each for each in connection.headers if each[0] == "Impersonate-Group"] == [
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    ]
    sent = {name.lower(): value for name, value in first.headers.items()}
    assert sent["impersonate-user"] == "bob"
    assert sent["impersonate-extra-acme.io%2fteam"] == "x"
    assert not [name for name in second.headers if name.lower().startswith("impersonate")]


async def test_a_credential_that_vanishes_is_unavailable_not_a_crash(server):
    async def lost():
        raise ConfigError("Service token file does not exist.")

    good = await config.load(server.kubeconfig)
    connection = config.Connection(server=good.server, tls=good.tls, authorize=lost)
    with pytest.raises(Unavailable, match="token file does not exist"):
        await call(server, connection)


async def test_a_context_that_is_not_there_is_answered_with_those_that_are(server):
    with pytest.raises(ConfigError, match=r"no context 'b'; it has test$"):
        await config.load(server.kubeconfig, context="b")


@pytest.mark.parametrize(("name", "trusted"), [("localhost", True), ("other.dev", False)])
async def test_the_server_is_checked_under_the_name_that_is_given(name, trusted, server, named):
    connection = await config.load(named(with_cluster(server, tls_server_name=name)))
    if trusted:
        assert (await call(server, connection)).user == "admin"
        return
    with pytest.raises(Unavailable, match=r"other\.dev"):
        await call(server, connection)


PROXY = {"https_proxy": "http://proxy:3128"}
PROXY_BUT = PROXY | {"no_proxy": ".example.dev"}
PROXIES = {
    "none": ({}, {}, None),
    "of the environment": ({}, PROXY, "http://proxy:3128"),
    "not for this host": ({}, PROXY_BUT, None),
    "not for this machine": ({"server": "https://127.0.0.1:1"}, PROXY, None),
    "not for localhost": ({"server": "https://localhost:1"}, PROXY, None),
    "of the kubeconfig": ({"proxy_url": "http://own:1"}, PROXY_BUT, "http://own:1"),
}


@pytest.mark.parametrize(("cluster", "environment", "expected"), PROXIES.values(), ids=PROXIES)
async def test_a_proxy_is_found(cluster, environment, expected, server, named, monkeypatch):
    for variable in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    path = with_cluster(server, **{"server": "https://api.example.dev"} | cluster)
    assert (await config.load(named(path))).proxy == expected


async def test_the_environment_names_the_kubeconfig(server, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", f"/nowhere:{server.kubeconfig}")
    assert (await config.load()).server == server.url


async def test_the_given_file_goes_before_the_environment(server, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert (await config.load(server.kubeconfig)).server == server.url


async def test_another_context_may_be_chosen(server, named):
    content = yaml.safe_load(server.kubeconfig.read_text())
    content["clusters"].append({"name": "b", "cluster": {"server": "http://127.0.0.1:7"}})
    content["contexts"].append({"name": "b", "context": {"cluster": "b", "user": "test"}})
    server.kubeconfig.write_text(yaml.safe_dump(content))
    connection = await config.load(named(server.kubeconfig), context="b")
    assert (connection.server, connection.tls) == ("http://127.0.0.1:7", None)


async def test_a_pod_uses_its_service_account(server, monkeypatch):
    (server.folder / "token").write_text("account")
    (server.folder / "ca.crt").write_bytes((server.folder / "ca.pem").read_bytes())
    host, port = server.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(config, "ACCOUNT", server.folder)
    seen = await call(server, await config.load())
    assert seen.headers["authorization"].lower() == "bearer account"


async def test_a_pod_without_its_token_is_told_what_to_do(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match=r"in-cluster .*automountServiceAccountToken"):
        await config.load()


def having(key, value):
    return lambda content: content | {key: value}


def of_cluster(fields):
    return having("clusters", [{"name": "test", "cluster": fields}])


def of_user(fields):
    return having("users", [{"name": "test", "user": fields}])


WRONG = {
    "no content": (lambda _: None, "lacks a cluster"),
    "a list": (lambda _: [], "lacks a cluster"),
    "no current context": (having("current-context", ""), "current-context|contexts"),
    "an unknown context": (having("current-context", "other"), "other"),
    "an unknown cluster": (having("clusters", []), "test"),
    "an unknown user": (having("users", []), "lacks a cluster, a user"),
    "an address that is none": (of_cluster({"server": "ftp://x"}), "no http"),
    "an authority that is none": (
        of_cluster({"server": "https://127.0.0.1:1", "certificate-authority-data": "bm9uZQ=="}),
        "certificate authority",
    ),
    "a key that is not there": (
        of_user({"client-certificate": "client.pem", "client-key": "none.key"}),
        "none.key",
    ),
    "a certificate without its key": (
        of_user({"client-certificate": "client.pem"}),
        "client certificate",
    ),
    "a token that is no text": (of_user({"token": 7}), "token is no text"),
    "a token file that is not there": (of_user({"tokenFile": "none"}), "none"),
    "a plugin without a command": (of_user({"exec": {"apiVersion": "v1"}}), "command"),
    "a plugin that is not there": (
        of_user({"exec": {"apiVersion": "v1", "command": "/none/plugin"}}),
        "/none/plugin",
    ),
}


@pytest.mark.parametrize(("changed", "reason"), WRONG.values(), ids=list(WRONG))
async def test_a_wrong_kubeconfig_is_named_with_the_reason(changed, reason, server):
    path = server.kubeconfig
    path.write_text(yaml.safe_dump(changed(yaml.safe_load(path.read_text()))))
    with pytest.raises(ConfigError, match=reason) as raised:
        await config.load(path)
    assert str(path) in str(raised.value)


async def test_several_kubeconfigs_are_checked_by_kubectls_variable(server):
    server.kubeconfig.write_text("[]")
    with pytest.raises(ConfigError, match=r"`KUBECONFIG=\S+:/none kubectl version`$"):
        await config.load(f"{server.kubeconfig}:/none")


async def test_a_missing_kubeconfig_says_how_to_give_one(tmp_path):
    with pytest.raises(ConfigError, match=r"none: no such file; .*--kubeconfig") as raised:
        async with Kube.connect(kubeconfig=tmp_path / "none"):
            pass
    assert str(tmp_path / "none") in str(raised.value)


@pytest.mark.parametrize(("given", "expected"), [({"namespace": "ml"}, "ml"), ({}, "default")])
async def test_the_namespace_is_the_contexts(server, named, given, expected):
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["contexts"][0]["context"] |= given
    path = server.folder / f"at-{expected}"
    path.write_text(yaml.safe_dump(document))
    assert (await config.load(named(path))).namespace == expected
    async with Kube.connect(kubeconfig=path) as kube:
        assert kube.namespace == expected


async def test_an_untrusted_certificate_names_the_file_that_lacks_its_authority(server, named):
    other = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    fields = {"certificate_authority": None, "certificate_authority_data": other}
    connection = await config.load(named(with_cluster(server, **fields)))
    with pytest.raises(Unavailable) as refused:
        await call(server, connection)
    message = refused.value.message
    assert f"the certificate of {connection.host} is not signed by" in message
    assert "certificate-authority of cluster 'test'" in message
    assert str(server.kubeconfig) in message
    assert message.endswith("put the API server's authority there")


async def test_without_credentials_no_certificate_and_no_token_of_ours_is_sent(server, named):
    server.write_kubeconfig({"token": "0urs"}, name="token-too")
    for path in (server.kubeconfig, server.folder / "token-too"):
        connection = await config.load(named(path), credentials=False)
        seen = await call(server, connection)
        assert seen.user != "admin"
        assert "authorization" not in seen.headers


async def test_calls_with_a_bearer_token_share_connections_and_nothing_else(server):
    server.on(VERSION, server.reply({}))
    connection = await config.load(server.kubeconfig, credentials=False)
    async with HttpTransport(connection, user_agent="test") as transport:
        for token in ("one", "other"):
            async with transport.with_bearer(token) as acting:
                await acting.request("GET", VERSION)
                assert server.seen[-1].headers["authorization"] == f"Bearer {token}"
                assert server.seen[-1].user != "admin"
        await transport.request("GET", VERSION)
        assert "authorization" not in server.seen[-1].headers


async def test_a_proxy_without_an_answer_is_named_beside_the_api_server(server, named):
    path = named(with_cluster(server, proxy_url="http://127.0.0.1:1"))
    with pytest.raises(Unavailable, match=r"the proxy 127\.0\.0\.1:1: Connection refused"):
        await call(server, await config.load(path))


async def test_a_proxy_is_used_where_one_is_named(server, named):
    asked = asyncio.Queue()

    async def proxy(reader, writer):
        asked.put_nowait(await reader.readline())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        path = named(with_cluster(server, proxy_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(Unavailable):
            await call(server, await config.load(path))
        assert (await asyncio.wait_for(asked.get(), 30)).startswith(b"CONNECT ")
    assert server.seen == []
