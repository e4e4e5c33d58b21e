"""Which requests are looked at: by Host, Origin and where a browser says they were made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_page.access.checks import Csrf, is_known, is_navigation, local_path, refused, same

HOSTS = frozenset({"127.0.0.1:8080", "localhost:8080", "[::1]:8080"})
HOME = {"Host": "127.0.0.1:8080"}

LET_IN = {
    "a command line client sends no Origin": ("GET", HOME),
    "a name in capitals is the same": ("GET", {"Host": "LocalHost:8080"}),
    "an IPv6 address has brackets": ("GET", {"Host": "[::1]:8080"}),
    "a typed address": ("GET", {**HOME, "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}),
    "a script of the page": ("GET", {**HOME, "Sec-Fetch-Site": "same-origin"}),
    "a link in another site": (
        "GET",
        {**HOME, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ),
    "a form of the page": (
        "POST",
        {**HOME, "Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"},
    ),
    "a form of the page in a browser that hides where it comes from": (
        "POST",
        {**HOME, "Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ),
    "a form of the page under another name of it": (
        "POST",
        {**HOME, "Origin": "http://localhost:8080"},
    ),
}

REFUSED = {
    "no Host": ("GET", {}),
    "the name of a site that leads to our address": ("GET", {"Host": "evil.example:8080"}),
    "a name that only begins like ours": ("GET", {"Host": "127.0.0.1:8080.evil.example"}),
    "a name that only ends like ours": ("GET", {"Host": "evil.localhost:8080"}),
    "another port": ("GET", {"Host": "127.0.0.1:9999"}),
    "user information before the name": ("GET", {"Host": "x@127.0.0.1:8080"}),
    "a picture in another site": (
        "GET",
        {**HOME, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ),
    "a script of another port of this machine": (
        "GET",
        {**HOME, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ),
    "a form of another site": ("POST", {**HOME, "Origin": "https://evil.example"}),
    "a form of another port": ("POST", {**HOME, "Origin": "http://127.0.0.1:9999"}),
    "a form of a sandboxed frame": ("POST", {**HOME, "Origin": "null"}),
    "a form of a sandboxed frame, in a browser that says so": (
        "POST",
        {**HOME, "Origin": "null", "Sec-Fetch-Site": "cross-site"},
    ),
    "a form whose Origin was removed": ("POST", {**HOME, "Sec-Fetch-Site": "cross-site"}),
    "an Origin that is no address": ("POST", {**HOME, "Origin": "http://[::1"}),
    "deleting from another site": ("DELETE", {**HOME, "Origin": "https://evil.example"}),
}


@pytest.mark.parametrize(("method", "headers"), LET_IN.values(), ids=LET_IN)
def test_what_is_looked_at(method, headers):
    assert refused(method, headers, HOSTS) == ""


@pytest.mark.parametrize(("method", "headers"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(method, headers):
    assert refused(method, headers, HOSTS)


def test_a_name_without_port_allows_every_port():
    assert is_known("hyperjob.example:443", {"hyperjob.example"})
    assert is_known("hyperjob.example", {"hyperjob.example"})
    assert is_known("[fd00::1]:8443", {"[fd00::1]"})
    assert not is_known("", {"hyperjob.example"})


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_other_host_is_ever_let_in(before, after):
    name = f"{before}127.0.0.1:8080{after}"
    assert (refused("GET", {"Host": name}, HOSTS) == "") == (name.lower() in HOSTS)


def test_a_browser_that_opens_a_page_is_told_from_a_script():
    assert is_navigation("GET", {"Sec-Fetch-Mode": "navigate"})
    assert not is_navigation("GET", {"Sec-Fetch-Mode": "cors", "Accept": "text/html"})
    assert is_navigation("GET", {"Accept": "text/html,*/*"})
    assert not is_navigation("GET", {"Accept": "*/*"})
    assert not is_navigation("POST", {"Sec-Fetch-Mode": "navigate"})


ELSEWHERE = (
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "",
    "/\r\nSet-Cookie: x=y",
    "/\tx",
    "evil.example/",
)


@pytest.mark.parametrize("given_path", ELSEWHERE)
def test_a_login_leads_to_no_other_site(given_path):
    assert local_path(given_path) == "/"


def test_a_login_leads_back_to_the_page_that_was_asked_for():
    assert local_path("/hyperjobs?queue=a&phase=Running") == "/hyperjobs?queue=a&phase=Running"


@given(st.text(), st.text())
def test_a_csrf_token_is_good_for_its_own_session_alone(one, other):
    csrf = Csrf()
    assert csrf.accepts(one, csrf.token(one))
    assert csrf.accepts(other, csrf.token(one)) == (one == other)
    assert not Csrf().accepts(one, csrf.token(one))


@given(st.text(alphabet=st.characters(), max_size=20), st.text(max_size=20))
def test_secrets_are_compared_whole(one, other):
    assert same(one, other) == (one == other)
