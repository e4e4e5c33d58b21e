"""Sessions in the cookies of visitors: a cookie is the visitor's token, sealed with a key.

The server stores nothing: each process with the same key opens a cookie, until the cookie's end or
the end of its token.
"""

import hmac
import secrets
import struct
import time
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
"""Least size of a key."""
SESSION_SECONDS: Final = 8 * 3600
LONGEST_COOKIE: Final = 3800
"""Browsers keep cookies of up to 4,096 bytes, their name and attributes included."""
_NONCE: Final = 12
_END: Final = struct.Struct(">Q")


class Sessions:
    """Makes and opens the values of session cookies; `now` is in seconds since 1970."""

    def __init__(self, key: bytes, *, now: Callable[[], float] = time.time) -> None:
        self._cipher = AESGCM(derived(key, "session"))
        self._now = now

    def begin(self, token: str) -> str:
        """Return the value of the cookie for a token; raise ValueError for a token too long."""
        end = _END.pack(int(self._now()) + SESSION_SECONDS)
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._cipher.encrypt(nonce, end + zlib.compress(token.encode()), None)
        cookie = urlsafe_b64encode(nonce + sealed).decode()
        if len(cookie) > LONGEST_COOKIE:
            raise ValueError("a cookie cannot hold this token")
        return cookie

    def token(self, cookie: str) -> str | None:
        """Return the token of a cookie; None for a cookie that has ended or has another key."""
        try:
            raw = urlsafe_b64decode(cookie)
            opened = self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], None)
        except (ValueError, InvalidTag):
            return None
        (end,) = _END.unpack_from(opened)
        return zlib.decompress(opened[_END.size :]).decode() if self._now() < end else None


def derived(key: bytes, purpose: str) -> bytes:
    """Return the key of one purpose."""
    return hmac.digest(key, purpose.encode(), "sha256")
