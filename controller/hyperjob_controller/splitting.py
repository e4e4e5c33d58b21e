"""The HTTP client of an external splitter, with the last answer about each automatic split.

Time, size and number of concurrent calls are bounded, and failed calls have a back-off. The plan
checks the answers (`hyperjob_engine.splitting`).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import aiohttp

from hyperjob_controller.watchdog import Place
from hyperjob_core.kube.http import read_body
from hyperjob_engine.model.observed import Observed, SplitAnswer
from hyperjob_engine.model.planned import Plan, SplitQuestion
from hyperjob_engine.splitting import AnswerError, RawAnswer, read_answer

log = logging.getLogger(__name__)

_CALLS: Final = 4
_MAX_BYTES: Final = 1024 * 1024
_WORDS: Final = 200
_TOKEN_BYTES: Final = 64 * 1024
_FIRST: Final = timedelta(seconds=5)
_LONGEST: Final = timedelta(seconds=60)


@dataclass(slots=True)
class _Entry:
    """One split: the last answer, the waiting question, and the number of failed calls in a row."""

    answer: SplitAnswer | None = None
    occasion: str = ""
    times: int = 0
    next: SplitQuestion | None = None
    busy: bool = False


class Splitter:
    """A client of one splitter, used by all HyperJobs."""

    place: Final = Place.SPLITTER

    def __init__(
        self,
        url: str,
        *,
        time_limit: float,
        answered: Callable[[str], None],
        now: Callable[[], datetime],
        faulty: Callable[[BaseException], None],
        token_file: Path | None = None,
        ca_file: Path | None = None,
    ) -> None:
        """Call `answered` with a HyperJob's key for each answer; OSError for a bad CA file.

        `faulty` gets an unexpected exception; the question counts as a failed call.
        """
        self._url = url
        self._limit = aiohttp.ClientTimeout(total=time_limit)
        self._answered = answered
        self._now = now
        self._faulty = faulty
        self._token_file = token_file
        self._tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else True
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._waiting: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def answers(self, key: str) -> Mapping[str, SplitAnswer]:
        """Return the last answer about each split of a HyperJob, by replicatedJob."""
        entries = self._entries.get(key, {})
        return {name: entry.answer for name, entry in entries.items() if entry.answer is not None}

    def ask(self, key: str, questions: Sequence[SplitQuestion]) -> None:
        """Queue questions; a newer question replaces a waiting one, but not a running call."""
        for question in questions:
            entry = self._entries.setdefault(key, {}).setdefault(question.group, _Entry())
            if not entry.busy:
                self._waiting.put_nowait((key, question.group))
            if entry.next is not None or not entry.busy:
                entry.next, entry.busy = question, True

    def planned(self, observed: Observed, decided: Plan) -> None:
        """Ask the questions of a plan."""
        if decided.questions:
            self.ask(observed.hyperjob.key, decided.questions)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._entries.pop(key, None)

    async def run(self) -> None:
        """Make the calls until cancelled."""
        connector = aiohttp.TCPConnector(limit=_CALLS, ssl=self._tls)
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=self._limit, cookie_jar=aiohttp.DummyCookieJar()
            ) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(_CALLS):
                group.create_task(self._work(session))

    async def _work(self, session: aiohttp.ClientSession) -> None:
        """Ask one question after the other until cancelled; each has an answer or a trouble."""
        while True:
            key, group = await self._waiting.get()
            entry = self._entries.get(key, {}).get(group)
            if entry is None or entry.next is None:
                continue  # its HyperJob was deleted
            question, entry.next = entry.next, None
            answer = RawAnswer()
            try:
                answer = read_answer(await self._post(session, question.body))
            except AnswerError as error:
                trouble = str(error)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                trouble = _failure(error)  # a token that no header can carry is a ValueError
            except Exception as error:  # noqa: BLE001 - the wall
                self._faulty(error)
                trouble = f"it cannot be reached ({type(error).__name__})"
            else:
                trouble = "" if answer.shares else answer.reason or "it gave no reason"
            self._note(key, entry, question, answer.shares, trouble)

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> bytes:
        """Return the body of the splitter's answer.

        Raises AnswerError for a status other than 200 and for a body that is too large, and the
        errors of aiohttp.
        """
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token_file is not None:
            token = await asyncio.to_thread(_read_token, self._token_file)
            headers["Authorization"] = f"Bearer {token}"
        async with session.post(
            self._url, data=body, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                words = (response.reason or "")[:_WORDS]
                raise AnswerError(f"it answered {response.status} {words}".strip())
            content = await read_body(response, most=_MAX_BYTES)
            if content is None:
                raise AnswerError(f"its answer is larger than {_MAX_BYTES} bytes")
            return content

    def _note(
        self,
        key: str,
        entry: _Entry,
        question: SplitQuestion,
        shares: Sequence[tuple[str, int]],
        trouble: str,
    ) -> None:
        """Store an answer; the time until the next try grows with the calls of an occasion."""
        if self._entries.get(key, {}).get(question.group) is not entry:
            return  # its HyperJob was deleted
        entry.busy = False
        if entry.occasion != question.occasion:
            entry.occasion, entry.times = question.occasion, 0
        wait = min(_LONGEST, _FIRST * 2 ** min(entry.times, 8))
        entry.times += 1
        entry.answer = SplitAnswer(
            digest=question.digest,
            occasion=question.occasion,
            shares=shares,
            trouble=trouble,
            retry_at=self._now() + wait,
        )
        if trouble:
            namespace, _, name = key.partition("/")
            log.warning(
                "The answer of the splitter is unusable",
                extra={
                    "hyperjob": {"namespace": namespace, "name": name},
                    "trouble": trouble,
                },
            )
        self._answered(key)


def _read_token(path: Path) -> str:
    """Return the token, read for each call: the kubelet replaces projected tokens."""
    with path.open(encoding="ascii") as file:
        return file.read(_TOKEN_BYTES).strip()


def _failure(error: Exception) -> str:
    """Return why a call gave no answer."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return f"its answer could not be read ({type(error).__name__})"
    return f"it cannot be reached ({error})"
