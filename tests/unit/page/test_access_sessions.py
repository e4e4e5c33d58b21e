"""A session is a cookie that every process with its key can open, and no other."""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_page.access.cluster import LONGEST_COOKIE, SESSION_SECONDS, Sessions, derived

KEY = bytes(range(32))


def sessions(now: float = 0.0, *, key: bytes = KEY) -> Sessions:
    return Sessions(key, now=lambda: now)


def test_every_process_with_the_key_opens_a_cookie_until_its_end() -> None:
    cookie = sessions(100).begin("token")
    assert sessions(100 + SESSION_SECONDS - 1).token(cookie) == "token"
    assert sessions(101 + SESSION_SECONDS).token(cookie) is None
    assert sessions(100, key=bytes(32)).token(cookie) is None


def test_a_cookie_shows_nothing_of_its_token_and_no_two_are_equal() -> None:
    one, other = sessions().begin("secret-token"), sessions().begin("secret-token")
    assert one != other
    assert b"secret" not in urlsafe_b64decode(one)


@given(st.data())
def test_a_changed_cookie_is_no_session(data: st.DataObject) -> None:
    raw = bytearray(urlsafe_b64decode(sessions().begin("token")))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert sessions().token(urlsafe_b64encode(bytes(raw)).decode()) is None


@given(st.text() | st.binary(max_size=60).map(lambda raw: urlsafe_b64encode(raw).decode()))
def test_a_cookie_of_any_other_form_is_no_session(text: str) -> None:
    assert sessions().token(text) is None


def test_a_token_as_long_as_those_of_identity_providers_fits_and_a_longer_one_is_refused() -> None:
    usual = secrets.token_urlsafe(2600)
    cookie = sessions().begin(usual)
    assert len(cookie) <= LONGEST_COOKIE
    assert sessions().token(cookie) == usual
    with pytest.raises(ValueError, match="a cookie cannot hold this token"):
        sessions().begin(secrets.token_urlsafe(3000))


def test_each_purpose_has_a_key_of_its_own() -> None:
    assert len({KEY, derived(KEY, "session"), derived(KEY, "csrf")}) == 3
