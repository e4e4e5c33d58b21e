"""Tokens that show that a form was part of our own page. Pure."""

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf"
"""Name of the form field."""
HEADER: Final = "X-CSRF-Token"
"""Name of the header that scripts may send in its place."""


class Csrf:
    """Makes one token a session, good for as long as this process lives."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def token(self, session: str) -> str:
        """Return the token of a session."""
        return hmac.new(
            self._secret, session.encode(errors="surrogatepass"), hashlib.sha256
        ).hexdigest()

    def accepts(self, session: str, given: str) -> bool:
        """Return whether a token is that of the session."""
        return same(self.token(session), given)


def same(one: str, other: str) -> bool:
    """Compare two secrets in a time that does not depend on how much of them is equal."""
    return hmac.compare_digest(*(text.encode(errors="surrogatepass") for text in (one, other)))
