"""On one's own machine: the printed address lets in, and nothing else does."""

import asyncio
import contextlib
import logging
import re

import pytest
from aiohttp.test_utils import unused_port

from hyperjob_core.kube.errors import unreachable
from hyperjob_page.access.local import LocalAccess, is_loopback
from hyperjob_page.visitor import EVERYTHING
from tests.support.uisite import DONE, visited

TOKEN = "s3cret-token"
PAGE = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}


class Kube:
    """Answers SelfSubjectAccessReviews."""

    def __init__(self) -> None:
        self.allowed = True
        self.error = None
        self.asked = []

    async def create(self, resource, body):
        assert resource.kind == "SelfSubjectAccessReview"
        self.asked.append(body["spec"]["resourceAttributes"])
        if self.error:
            raise self.error
        return {"status": {"allowed": self.allowed}}


@pytest.fixture
def kube():
    return Kube()


@pytest.fixture
async def client(kube):
    async with serving(kube) as client:
        yield client


@contextlib.asynccontextmanager
async def serving(kube, **options):
    port = unused_port()
    async with LocalAccess(kube, token=TOKEN, **options) as access:
        access.listens_on("127.0.0.1", port)
        async with visited(access, port=port) as client:
            yield client


async def enter(client):
    """Exchange the token as a browser does; give the headers of a session."""
    answer = await client.get(f"/?token={TOKEN}", headers=PAGE, allow_redirects=False)
    assert answer.status == 303
    name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
    return {**PAGE, "Cookie": f"{name}={value}"}


async def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(client):
    answer = await client.get(
        f"/hyperjobs?queue=a&token={TOKEN}&phase=Running", headers=PAGE, allow_redirects=False
    )
    assert answer.status == 303
    assert answer.headers["Location"] == "/hyperjobs?queue=a&phase=Running"
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert f"hyperjob-ui-{client.port}=" in cookie  # several pages on one machine


async def test_the_session_sees_everything_that_the_kubeconfig_does(client):
    answer = await client.get("/who", headers=await enter(client))
    seen = await answer.json()
    assert seen["scope"] == repr(EVERYTHING)
    assert seen["name"] == ""


async def test_a_command_may_send_the_token_as_a_header(client):
    answer = await client.get("/who", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "hyperjob-ui=x"},
        {"Cookie": "hyperjob-ui-{port}="},
        {"Cookie": "hyperjob-ui-{port}=" + TOKEN},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer " + TOKEN[:-1]},
        {"Authorization": "Basic " + TOKEN},
    ],
)
async def test_nothing_is_shown_without_token(client, headers):
    headers = {name: value.replace("{port}", str(client.port)) for name, value in headers.items()}
    answer = await client.get("/who", headers=headers)
    assert answer.status == 403
    assert "hyperjob ui" in await answer.text()


@pytest.mark.parametrize("given", ["wrong", TOKEN + "x", TOKEN[:-1], "ü"])
async def test_a_wrong_token_in_the_address_is_refused(client, given):
    answer = await client.get("/", params={"token": given}, headers=PAGE, allow_redirects=False)
    assert answer.status == 403
    assert "Set-Cookie" not in answer.headers


async def test_a_page_of_another_site_that_leads_here_opens_once_more_with_the_cookie(client):
    linked = {**PAGE, "Sec-Fetch-Site": "cross-site"}
    answer = await client.get("/hyperjobs?search=<b>", headers=linked)
    assert answer.status == 200
    text = await answer.text()
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]*)"', text)
    assert found[1].startswith("/hyperjobs?search=")
    assert "<b>" not in text
    again = await client.get("/hyperjobs", headers={**linked, "Sec-Fetch-Site": "same-origin"})
    assert again.status == 403


URLENCODED = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("", {}, 403),
        ("csrf=" + "0" * 64, {}, 403),
        ("csrf={csrf}", {"Origin": "http://evil.example"}, 403),
        ("csrf={csrf}", {"Origin": "http://127.0.0.1:1"}, 403),
        ("csrf={csrf}", {}, 200),
        ("csrf={csrf}", {"Content-Type": f"{URLENCODED}; charset=utf-8"}, 200),
        ("", {"X-CSRF-Token": "{csrf}"}, 200),
        ("csrf={csrf}", {"X-CSRF-Token": "0"}, 403),
        ("csrf={csrf}", {"Content-Type": "text/plain"}, 403),
        ("csrf={csrf}", {"Content-Type": "multipart/form-data"}, 403),
        ("csrf={csrf}", {"Content-Type": "multipart/form-data; boundary=x"}, 403),
        ("csrf={csrf}", {"Content-Type": f"{URLENCODED}; charset=foo"}, 400),
        ("csrf={csrf}", {"Content-Type": f"{URLENCODED}; charset=hex"}, 400),
        (b"csrf=\xff", {}, 400),
        ("csrf=" + "0" * 99_999, {}, 413),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_form_needs_the_token_of_its_session(client, body, headers, status):
    session = await enter(client)
    csrf = (await (await client.get("/who", headers=session)).json())["csrf"]
    headers = {name: value.replace("{csrf}", csrf) for name, value in headers.items()}
    data = body.replace("{csrf}", csrf).encode() if isinstance(body, str) else body
    sent = {"Content-Type": URLENCODED, "Origin": f"http://127.0.0.1:{client.port}", **headers}
    answer = await client.post("/do", data=data, headers={**session, **sent})
    assert answer.status == status, await answer.text()
    assert client.app[DONE] == ([""] if status == 200 else [])


async def test_the_token_of_a_form_is_not_enough_without_session(client):
    csrf = (await (await client.get("/who", headers=await enter(client))).json())["csrf"]
    assert (await client.post("/do", data={"csrf": csrf})).status == 403
    assert client.app[DONE] == []


async def test_a_token_in_the_address_of_a_form_does_nothing(client):
    answer = await client.post(f"/do?token={TOKEN}", headers=await enter(client))
    assert answer.status == 403
    assert client.app[DONE] == []


async def test_a_read_only_page_changes_nothing(kube):
    async with serving(kube, read_only=True) as client:
        session = await enter(client)
        seen = await (await client.get("/who", headers=session)).json()
        assert seen["may"] is False
        answer = await client.post("/do", data={"csrf": seen["csrf"]}, headers=session)
        assert answer.status == 403
        assert "--read-only" in await answer.text()
        assert client.app[DONE] == []
    assert kube.asked == []


async def test_what_the_kubeconfig_may_not_do_is_not_offered(client, kube):
    kube.allowed = False
    seen = await (await client.get("/who", headers=await enter(client))).json()
    assert seen["may"] is False
    assert kube.asked == [
        {
            "verb": "patch",
            "group": "training.volcano.sh",
            "version": "v1alpha1",
            "resource": "hyperjobs",
            "namespace": "team",
            "name": "llm",
        }
    ]


async def test_without_an_answer_the_api_server_decides_when_it_is_done(client, kube):
    kube.error = unreachable("POST", "no answer")
    assert (await (await client.get("/who", headers=await enter(client))).json())["may"] is True


async def test_the_token_gets_into_no_log(client, caplog):
    caplog.set_level(logging.DEBUG)
    await enter(client)
    await client.get("/?token=wrong-secret", headers=PAGE)
    await client.get("/who", headers={"Authorization": f"Bearer {TOKEN}"})
    assert TOKEN not in caplog.text
    assert "wrong-secret" not in caplog.text


def test_only_addresses_of_this_machine_are_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")))
    others = ("0.0.0.0", "::", "10.0.0.1", "192.168.1.2", "example.org", "", "127.0.0.1.evil")
    assert not any(map(is_loopback, others))


async def test_two_host_headers_are_refused(client):
    session = await enter(client)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    own = f"Host: 127.0.0.1:{client.port}\r\n"
    lines = f"GET /who HTTP/1.1\r\n{own}Host: evil.example\r\nCookie: {session['Cookie']}\r\n"
    writer.write(f"{lines}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.split()[1] == b"400"
