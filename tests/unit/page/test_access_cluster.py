"""In a cluster: visitors show a token, and see and do what its user may, as the API server says."""

import asyncio
import contextlib
import re
import secrets

import pytest
from yarl import URL

from hyperjob_core.api.field import make_status
from hyperjob_core.kube.accessreviews import SECONDS
from hyperjob_core.kube.errors import Unauthorized, unreachable
from hyperjob_page.access.cluster import ClusterAccess
from tests.support.counts import Counts
from tests.support.uisite import DONE, visited

KEY = bytes(range(32))
PAGE = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}
ORIGIN = {"Origin": "https://ui.example", "Host": "ui.example"}
HYPERJOBS = "hyperjobs.training.volcano.sh"
CLUSTERS = "clusters.cluster.karmada.io"
QUEUES = "queues.scheduling.volcano.sh"


class Kube:
    """Answers reviews: `tokens` are users by token, `allowed` what they may."""

    def __init__(self):
        self.tokens = {
            "ann-token": {"username": "ann", "groups": ["dev"], "extra": {"scopes": ["x"]}},
            "root-token": {"username": "root", "uid": "7"},
            "bob-token": {"username": "bob"},
        }
        self.allowed = {
            ("ann", "list", HYPERJOBS, "team"),
            ("ann", "patch", HYPERJOBS, "team"),
            ("root", "list", HYPERJOBS, ""),
            ("root", "list", CLUSTERS, ""),
            ("root", "list", QUEUES, ""),
        }
        self.error = None
        self.bodies = []

    async def create(self, resource, body):
        self.bodies.append((resource.kind, body))
        if self.error:
            raise self.error
        spec = body["spec"]
        if resource.kind == "TokenReview":
            user = self.tokens.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": user or {}}}
        asked = spec["resourceAttributes"]
        what = f"{asked['resource']}.{asked['group']}"
        key = (spec["user"], asked["verb"], what, asked.get("namespace", ""))
        return {"status": {"allowed": key in self.allowed}}

    def count(self, kind):
        return sum(one == kind for one, _ in self.bodies)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def kube():
    return Kube()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def client(kube, clock):
    async with serving(kube, clock) as client:
        yield client


@contextlib.asynccontextmanager
async def serving(kube, clock, *, key=KEY, **options):
    access = ClusterAccess(
        kube,
        acting=lambda token: token,
        key=key,
        hosts=["UI.example"],
        namespaces=lambda: {"team", "other"},
        clock=clock,
        now=clock,
        **options,
    )
    async with access, visited(access) as client:
        yield client


def bearer(token, **more):
    return {"Host": "ui.example", "Authorization": f"Bearer {token}", **more}


async def who(client, headers):
    return await (await client.get("/who", headers=headers)).json()


def cookie(answer, name):
    for one in answer.headers.getall("Set-Cookie", []):
        if one.startswith(f"{name}="):
            return one
    return ""


async def login(client, token, **more):
    """Fill in the form; give the answer."""
    shown = await client.get("/login?next=/hyperjobs", headers={**PAGE, "Host": "ui.example"})
    form = re.search(r'name="csrf" value="([0-9a-f]+)"', await shown.text())
    browser = cookie(shown, "__Host-hyperjob-ui-login").partition(";")[0]
    return await client.post(
        "/login",
        data={"csrf": form[1], "token": token, "next": "/hyperjobs", **more},
        headers={**ORIGIN, "Cookie": browser},
        allow_redirects=False,
    )


async def session(client, token="ann-token"):
    answer = await login(client, token)
    assert answer.status == 303
    return {
        "Host": "ui.example",
        "Cookie": cookie(answer, "__Host-hyperjob-ui").partition(";")[0],
    }


async def test_an_authenticating_proxy_sends_the_token_with_each_request(client):
    assert await who(client, bearer("root-token")) == {
        "name": "root",
        "csrf": (await who(client, bearer("root-token")))["csrf"],
        "scope": "Scope(namespaces=None, clusters=True, queues=True)",
        "namespaces": None,
        "may": False,
    }


async def test_a_visitor_sees_the_namespaces_in_which_they_may_list_hyperjobs(client):
    seen = await who(client, bearer("ann-token"))
    assert seen["namespaces"] == ["team"]
    assert "clusters=False, queues=False" in seen["scope"]
    assert seen["may"] is True
    assert (await who(client, bearer("bob-token")))["namespaces"] == []


async def test_logins_are_counted_by_what_the_api_server_said(client):
    counted = Counts()
    for token in ("ann-token", "wrong", "bob-token"):
        await login(client, token)
    for result, number in (("accepted", 2), ("refused", 1)):
        assert counted("hyperjob_page_logins_total", result=result) == number


async def test_without_token_a_browser_is_led_to_the_login_and_a_command_told(client):
    page = await client.get(
        "/hyperjobs?q=a&b=c", headers={**PAGE, "Host": "ui.example"}, allow_redirects=False
    )
    assert page.status == 303
    where = URL(page.headers["Location"])
    assert (where.path, where.query["next"]) == ("/login", "/hyperjobs?q=a&b=c")
    told = await client.get("/who", headers={"Host": "ui.example"})
    assert told.status == 401
    assert told.headers["WWW-Authenticate"] == "Bearer"


async def test_a_login_gives_a_cookie_that_no_script_and_no_other_site_can_use(client):
    answer = await login(client, "ann-token")
    assert (answer.status, answer.headers["Location"]) == (303, "/hyperjobs")
    given = cookie(answer, "__Host-hyperjob-ui")
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(given.split("; "))
    assert "Domain" not in given
    assert "ann-token" not in given
    own = {"Host": "ui.example", "Cookie": given.partition(";")[0]}
    assert (await who(client, own))["name"] == "ann"


async def test_a_wrong_token_gets_no_session(client):
    answer = await login(client, "wrong")
    assert answer.status == 403
    assert not cookie(answer, "__Host-hyperjob-ui")
    assert "wrong" not in await answer.text()


async def test_a_login_form_of_another_site_is_refused(client):
    form = {"token": "ann-token", "csrf": "0" * 64}
    for headers in (
        ORIGIN,
        {**ORIGIN, "Cookie": "__Host-hyperjob-ui-login=planted"},
        {"Host": "ui.example", "Origin": "https://evil.example"},
    ):
        answer = await client.post("/login", data=form, headers=headers)
        assert answer.status == 403
        assert not cookie(answer, "__Host-hyperjob-ui")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/x-www-form-urlencoded; charset=foo", 400),
        ("multipart/form-data", 403),
    ],
)
async def test_a_login_form_that_cannot_be_read_is_refused(client, kind, status):
    answer = await client.post("/login", data=b"token=x", headers={**ORIGIN, "Content-Type": kind})
    assert answer.status == status
    assert not cookie(answer, "__Host-hyperjob-ui")


async def test_logout_lets_the_browser_forget_the_session(client):
    own = await session(client)
    csrf = (await who(client, own))["csrf"]
    refused = await client.post("/logout", headers={**own, **ORIGIN}, allow_redirects=False)
    assert refused.status == 403
    done = await client.post(
        "/logout", data={"csrf": csrf}, headers={**own, **ORIGIN}, allow_redirects=False
    )
    assert (done.status, done.headers["Location"]) == (303, "/login")
    assert cookie(done, "__Host-hyperjob-ui").startswith('__Host-hyperjob-ui=""; ')
    assert "Max-Age=0" in cookie(done, "__Host-hyperjob-ui")


async def test_two_replicas_with_the_same_key_share_sessions_and_forms(kube, clock):
    async with serving(kube, clock) as one, serving(kube, clock) as other:
        own = await session(one)
        seen = await who(other, own)
        assert seen["name"] == "ann"
        form = {"data": {"csrf": seen["csrf"]}, "headers": {**own, **ORIGIN}}
        assert (await one.post("/do", **form)).status == 200
    async with serving(kube, clock, key=bytes(32)) as stranger:
        assert (await stranger.get("/who", headers=own)).status == 401


async def test_a_token_that_no_cookie_can_hold_is_named(client, kube):
    long = secrets.token_urlsafe(4000)
    kube.tokens[long] = {"username": "ann"}
    answer = await login(client, long)
    assert answer.status == 400
    assert "put an authenticating proxy before the page" in await answer.text()
    assert (await who(client, bearer(long)))["name"] == "ann"


async def test_a_form_needs_the_token_of_its_own_session(client):
    ann, root = await session(client), await session(client, "root-token")
    of_root = (await who(client, root))["csrf"]
    of_ann = (await who(client, ann))["csrf"]
    for csrf, status in ((of_root, 403), ("", 403), (of_ann, 200)):
        answer = await client.post("/do", data={"csrf": csrf}, headers={**ann, **ORIGIN})
        assert answer.status == status
    assert client.app[DONE] == ["ann"]


async def test_a_form_behind_a_proxy_needs_its_token_too(client):
    headers = bearer("ann-token", **ORIGIN)
    assert (await client.post("/do", headers=headers)).status == 403
    csrf = (await who(client, bearer("ann-token")))["csrf"]
    assert (await client.post("/do", data={"csrf": csrf}, headers=headers)).status == 200


async def test_a_token_that_is_revoked_opens_nothing(client, kube, clock):
    own = await session(client)
    assert (await who(client, own))["name"] == "ann"
    del kube.tokens["ann-token"]
    clock.now += SECONDS
    assert (await client.get("/who", headers=own)).status == 401


async def test_a_right_that_is_taken_away_ends_here(client, kube, clock):
    own = await session(client)
    kube.allowed.clear()
    clock.now += SECONDS
    seen = await who(client, own)
    assert (seen["namespaces"], seen["may"]) == ([], False)


async def test_reviews_are_remembered_for_a_while(client, kube):
    own = await session(client)
    await asyncio.gather(*(who(client, own) for _ in range(30)))
    assert kube.count("TokenReview") == 1
    # everywhere, two namespaces, clusters, queues, and the one action
    assert kube.count("SubjectAccessReview") == 6


async def test_without_an_answer_of_the_api_server_nothing_is_shown(client, kube, clock):
    own = await session(client)
    await who(client, own)
    kube.error = unreachable("POST /reviews", "no answer")
    clock.now += SECONDS
    assert (await client.get("/who", headers=own)).status == 503
    kube.error = None
    assert (await who(client, own))["name"] == "ann"  # an outage ends no session


async def test_an_account_of_ours_that_is_not_let_in_is_no_fault_of_the_visitor(client, kube):
    kube.error = Unauthorized(make_status(401, "no"), "POST")
    answer = await client.get("/who", headers=bearer("ann-token"))
    assert answer.status == 503
    assert (await login(client, "ann-token")).status == 503


async def test_a_read_only_page_lets_visitors_log_out_and_nothing_else(kube, clock):
    async with serving(kube, clock, read_only=True) as client:
        own = await session(client)
        seen = await who(client, own)
        assert seen["may"] is False
        form = {"data": {"csrf": seen["csrf"]}, "headers": {**own, **ORIGIN}}
        assert (await client.post("/do", **form)).status == 403
        assert (await client.post("/logout", **form, allow_redirects=False)).status == 303
        assert client.app[DONE] == []


async def test_a_page_of_another_site_that_leads_here_keeps_the_session(client):
    linked = {**PAGE, "Host": "ui.example", "Sec-Fetch-Site": "cross-site"}
    answer = await client.get("/hyperjobs", headers=linked, allow_redirects=False)
    assert answer.status == 200
    assert 'http-equiv="refresh"' in await answer.text()
    again = {**linked, "Sec-Fetch-Site": "same-origin"}
    answer = await client.get("/hyperjobs", headers=again, allow_redirects=False)
    assert answer.status == 303


async def test_no_token_gets_into_a_log(client, caplog):
    caplog.set_level("DEBUG")
    await session(client)
    await login(client, "wrong-token")
    await client.get("/who", headers=bearer("other-token"))
    assert not re.search("(ann|wrong|other)-token", caplog.text)
