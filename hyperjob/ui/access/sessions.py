"""The token of each cookie: in memory, bounded, and lost when the process ends."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SESSIONS: Final = 2_000
PER_USER: Final = 16
IDLE_SECONDS: Final = 8 * 3600.0
LONGEST_SECONDS: Final = 24 * 3600.0


@dataclass(slots=True)
class _Session:
    token: str
    user: str
    begun: float
    used: float


class Sessions:
    """Sessions by the value of their cookie; the store evicts the least recently used session.

    Times are in seconds of `clock`.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        size: int = SESSIONS,
        per_user: int = PER_USER,
        idle: float = IDLE_SECONDS,
        longest: float = LONGEST_SECONDS,
    ) -> None:
        self._clock = clock
        self._size = size
        self._per_user = per_user
        self._idle = idle
        self._longest = longest
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, token: str, user: str) -> str:
        """Create a session and return the value of its cookie; may end older sessions."""
        self._drop_expired()
        own = [key for key, session in self._sessions.items() if session.user == user]
        for key in own[: max(0, len(own) - self._per_user + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= self._size:
            self._sessions.popitem(last=False)
        cookie = secrets.token_urlsafe(32)
        now = self._clock()
        self._sessions[cookie] = _Session(token, user, now, now)
        return cookie

    def token(self, cookie: str) -> str | None:
        """Return the token of a session; None when the session does not exist or has expired."""
        session = self._sessions.get(cookie)
        if session is None:
            return None
        if self._is_over(session):
            del self._sessions[cookie]
            return None
        session.used = self._clock()
        self._sessions.move_to_end(cookie)
        return session.token

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(cookie, None)

    def _is_over(self, session: _Session) -> bool:
        now = self._clock()
        return now - session.used >= self._idle or now - session.begun >= self._longest

    def _drop_expired(self) -> None:
        for key in [key for key, session in self._sessions.items() if self._is_over(session)]:
            del self._sessions[key]
