"""CSRF tokens, which prove that a form is part of this page. Pure."""

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf"
"""Name of the form field."""
HEADER: Final = "X-CSRF-Token"
"""Name of the header that scripts may send in place of the field."""


class Csrf:
    """Makes a token for each session, which processes with the same secret accept."""

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
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(*(text.encode(errors="surrogatepass") for text in (one, other)))
