"""/metrics over HTTPS: which client may read it, by the word of the API server."""

import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from hyperjob_certs.metrics import ProtectionError, protection
from hyperjob_core.telemetry.endpoints import Checks, serve
from tests.support.kubeconfigs import write_kubeconfig
from tests.support.stack import issue_certificates

USERS = {"scraper": "system:serviceaccount:monitoring:prometheus", "other": "someone"}
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"


class Authority:
    """An API server that knows two tokens, and lets one user get /metrics."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.down = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return web.json_response({"kind": "Status", "code": 503}, status=503)
        body = await request.json()
        self.asked.append(body["spec"])
        if request.path == TOKENS:
            name = USERS.get(body["spec"]["token"])
            user = {"username": name, "groups": ["g"]} if name else None
            return web.json_response({"status": {"authenticated": bool(name), "user": user}})
        wanted = {"verb": "get", "path": "/metrics"}
        may = body["spec"]["user"] == USERS["scraper"]
        return web.json_response(
            {"status": {"allowed": may and body["spec"]["nonResourceAttributes"] == wanted}}
        )


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return issue_certificates(tmp_path_factory.mktemp("metrics") / "tls").key.parent


@pytest.fixture
async def authority(tmp_path, monkeypatch, aiohttp_server):
    made = Authority()
    app = web.Application()
    app.router.add_post("/{path:.*}", made.answer)
    server = await aiohttp_server(app)
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", str(server.make_url("/")))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    return made


@pytest.fixture
async def get(certificates, authority):
    """Read a path of the protected address, as a client with a token."""
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    async with (
        protection(certificates, user_agent="test/1") as protected,
        serve(
            healthz=Checks("healthz"),
            readyz=Checks("readyz"),
            health_address="127.0.0.1:0",
            metrics_address="localhost:0",
            protection=protected,
        ) as addresses,
        aiohttp.ClientSession() as session,
    ):

        async def read(*headers, scheme="https", path="/metrics", address=addresses.metrics):
            url = f"{scheme}://localhost:{address.rpartition(':')[2]}{path}"
            async with session.get(url, headers=dict(headers), ssl=trusting) as response:
                return response.status, await response.text()

        read.addresses = addresses
        yield read


def with_token(token, scheme="Bearer"):
    return "Authorization", f"{scheme} {token}"


async def test_a_client_with_the_right_gets_the_metrics(get, authority):
    status, text = await get(with_token("scraper"))
    assert (status, "hyperjob_build_info" in text) == (200, True)
    token, rights = authority.asked
    assert token == {"token": "scraper"}
    assert rights["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}
    assert (rights["user"], rights["groups"]) == (USERS["scraper"], ["g"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([with_token("")], 401),
        ([with_token("scraper", scheme="Basic")], 401),
        ([with_token("unknown")], 401),
        ([with_token("x" * 20_000)], 400),
        ([with_token("x" * 7_000)], 401),
        ([with_token("other")], 403),
    ],
    ids=["none", "empty", "of another scheme", "unknown", "too long", "long", "without the right"],
)
async def test_every_other_client_gets_none(get, headers, status):
    found, text = await get(*headers)
    assert found == status
    assert "hyperjob_build_info" not in text


async def test_without_an_answer_of_the_api_server_the_metrics_are_closed(get, authority):
    authority.down = True
    status, text = await get(with_token("scraper"))
    assert status == 503
    assert "hyperjob_build_info" not in text


async def test_answers_are_asked_for_once_in_a_while(get, authority):
    for _ in range(5):
        assert (await get(with_token("scraper")))[0] == 200
    assert len(authority.asked) == 2


async def test_plain_http_is_refused_there_and_still_serves_the_probes(get):
    with pytest.raises(aiohttp.ClientError):
        await get(with_token("scraper"), scheme="http")
    health = get.addresses.health
    assert (await get(scheme="http", path="/healthz", address=health))[0] == 200


async def test_an_unusable_pair_and_an_unknown_api_server_are_named(
    certificates, tmp_path, monkeypatch
):
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises(ProtectionError, match=r"--metrics-cert-dir: kubeconfig /nowhere"):
        async with protection(certificates, user_agent="test/1"):
            pass
    (tmp_path / "tls.crt").write_bytes((certificates / "tls.crt").read_bytes())
    (tmp_path / "tls.key").write_text("none")
    with pytest.raises(ProtectionError, match=r"--metrics-cert-dir: "):
        async with protection(tmp_path, user_agent="test/1"):
            pass
