"""When a call is made again, what an error says, and what is logged of warnings."""

import asyncio
import logging
import ssl
from collections import Counter
from typing import Any

import pytest

from hyperjob_core.api.field import make_status
from hyperjob_core.kube import errors, http
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.errors import ConfigError, KubeError, Unavailable, from_response
from hyperjob_core.kube.http import HttpTransport, _wait_before_retry
from hyperjob_core.kube.transport import REQUESTS, Response, log_warning
from hyperjob_core.virtualtime import run
from tests.support.virtually import virtually


def failed(code: int, after: float | None) -> KubeError:
    return errors.from_status(make_status(code, "no"), "GET /x", retry_after=after)


LOST = errors.unreachable("GET /x", "no")
ANSWERED = Unavailable(make_status(503, "no"), "GET /x")

# error, method, attempt -> the shortest and the longest wait, None for no other try
RETRIES: list[tuple[KubeError, str, int, tuple[float, float] | None]] = [
    *((failed(code, 4.0), method, attempt, (4.0, 5.25))
      for code in (429, 500, 503, 504) for method in ("GET", "POST") for attempt in (1, 2)),
    *((failed(code, 0.0), "PUT", 1, (0.0, 0.25)) for code in (429, 500)),
    *((failed(code, 4.0), "GET", 3, None) for code in (429, 500)),
    *((failed(code, 4.0), "GET", 1, None) for code in (400, 409, 428, 499)),
    *((failed(code, None), "GET", 1, None) for code in (429, 500, 503)),
    (LOST, "GET", 1, (0.05, 0.1)),
    (LOST, "GET", 2, (0.1, 0.2)),
    (LOST, "HEAD", 1, (0.05, 0.1)),
    (LOST, "GET", 3, None),
    (LOST, "POST", 1, None),
    (LOST, "DELETE", 1, None),
    (ANSWERED, "GET", 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("error", "method", "attempt", "waits"), RETRIES)
def test_a_call_is_made_again_after(error, method, attempt, waits, monkeypatch):
    drawn = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(
            http.random, "uniform", lambda low, high, share=share: low + share * (high - low)
        )
        drawn.append(_wait_before_retry(error, method, attempt))
    assert drawn == ([None, None] if waits is None else [pytest.approx(each) for each in waits])


class Scripted(HttpTransport):
    """Answers each try with the next of its answers, without connections; notes the moments."""

    def __init__(self, *answers: Any, authorize: Any = None) -> None:
        # Not the constructor of the transport: a session needs an event loop.
        options = {} if authorize is None else {"authorize": authorize}
        self._connection = Connection(server="https://api.example:6443", **options)
        self._base, self._host = self._connection.server, self._connection.host
        self._report, self._warned = log_warning, set()
        self.before = Counter(REQUESTS)
        self.answers = list(answers)
        self.moments: list[float] = []
        self.sent: list[dict[str, str]] = []

    def counted(self) -> dict[tuple[str, str, str], int]:
        """Return the requests by code, method and host that this process has sent since."""
        return dict(REQUESTS - self.before)

    async def _once(self, method, path, params, body, own):
        headers = await self._headers(own, f"{method} {path}")
        self.moments.append(asyncio.get_running_loop().time())
        self.sent.append(dict(headers))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, KubeError):
            raise answer
        if answer is None:
            await asyncio.sleep(1e6)
        return self._answer(method, path, answer, ())


def status(code: int, after: str | None = None) -> Response:
    return Response(code, {} if after is None else {"Retry-After": after}, b"")


OK = Response(200, {}, b"{}")


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr(http.random, "uniform", lambda low, high: high)


# answers, time limit -> the moments of the tries, the end (an error's class, its text), its moment
CALLS: dict[str, tuple[list[Any], float, list[float], Any, float]] = {
    "the first try": ([OK], 30.0, [0.0], None, 0.0),
    "the third and last try": (
        [status(503, "4"), status(429, "1"), OK], 30.0, [0.0, 5.25, 6.75], None, 6.75,
    ),
    "three failures": (
        [status(503, "4")] * 3, 30.0, [0.0, 5.25, 10.5],
        (Unavailable, "GET /x: Service Unavailable"), 10.5,
    ),
    "a wait that ends with the time limit": (
        [status(503, "4")], 5.25, [0.0], (Unavailable, "GET /x: Service Unavailable"), 0.0,
    ),
    "a wait that ends just before the time limit": (
        [status(503, "4"), OK], 5.5, [0.0, 5.25], None, 5.25,
    ),
    "a wait of half a minute": (
        [status(503, "24")], 600.0, [0.0], (Unavailable, "GET /x: Service Unavailable"), 0.0,
    ),
    "a wait of just less": (
        [status(503, "23"), OK], 600.0, [0.0, 29.0], None, 29.0,
    ),
    "no answer": ([], 7.5, [0.0], (Unavailable, "GET /x: no answer within 7.5s"), 7.5),
    "no answer to the second try": (
        [status(503, "4")], 10.0, [0.0, 5.25],
        (Unavailable, "GET /x: no answer within 10s"), 10.0,
    ),
    "a lost connection twice": (
        [LOST, LOST, OK], 30.0, [0.0, 0.1, 0.3], None, 0.3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_tries_waits_and_the_time_limit_of_a_call(case):
    answers, limit, moments, failure, end = CALLS[case]
    network = Scripted(*answers)

    async def scene() -> Any:
        result: Any = None
        try:
            result = await network.request("GET", "/x", time_limit=limit)
        except KubeError as error:
            result = error
        return result, asyncio.get_running_loop().time()

    result, ended = run(scene())
    assert network.moments == pytest.approx(moments)
    assert ended == pytest.approx(end)
    if failure is None:
        assert result is OK
    else:
        assert (type(result), str(result)) == failure
        late = "no answer" in str(result)
        assert (result.reason == "Timeout") is late
        assert (("<error>", "GET", "api.example:6443") in network.counted()) is late


@virtually
async def test_a_call_sends_what_it_accepts_and_the_type_of_its_body():
    network = Scripted(OK, OK)
    await network.request("GET", "/x")
    await network.request("POST", "/x", body=b"", content_type="text/plain", accept="a/b")
    assert network.sent == [
        {"Accept": "application/json"},
        {"Accept": "a/b", "Content-Type": "text/plain"},
    ]


def test_the_default_time_limit_of_a_call_is_half_a_minute():
    async def scene() -> float:
        with pytest.raises(Unavailable, match="no answer within 30s"):
            await Scripted().request("GET", "/x")
        return asyncio.get_running_loop().time()

    assert run(scene()) == pytest.approx(30.0)


async def no_plugin() -> str:
    raise ConfigError("the plugin is gone")


async def slow_plugin() -> str:
    await asyncio.sleep(1e6)
    return "never"


async def empty_token() -> str:
    return ""


@pytest.mark.parametrize(
    ("authorize", "said", "moment"),
    [
        (no_plugin, "POST /x: no credentials: the plugin is gone", 0.0),
        (slow_plugin, "POST /x: no credentials: ", 30.0),
    ],
)
def test_without_credentials_the_server_is_not_asked(authorize, said, moment):
    network = Scripted(OK, authorize=authorize)

    async def scene() -> float:
        with pytest.raises(Unavailable) as raised:
            await network.request("POST", "/x", time_limit=100.0)
        assert str(raised.value) == said
        assert raised.value.answered is False
        return asyncio.get_running_loop().time()

    assert run(scene()) == pytest.approx(moment)
    assert network.moments == []


def test_an_empty_token_is_not_sent():
    network = Scripted(OK, authorize=empty_token)
    run(network.request("GET", "/x"))
    assert network.sent == [{"Accept": "application/json"}]


@pytest.mark.parametrize(("code", "taken"), [(199, False), (200, True), (299, True), (300, False)])
def test_answers_from_200_to_299_are_answers(code, taken):
    network = Scripted(Response(code, {}, b"x"))

    async def scene() -> int:
        try:
            return (await network.request("GET", "/x")).status
        except KubeError as error:
            return -error.http_code

    assert run(scene()) == (code if taken else -code)
    assert network.counted() == {(f"{code}", "GET", "api.example:6443"): 1}


def test_each_warning_is_logged_once_and_256_in_all(caplog):
    caplog.set_level(logging.WARNING)
    network = Scripted()
    network._warn("GET /x", ["a", "b", "a"])
    network._warn("GET /y", ["b"])
    said = [(record.request, record.warning) for record in caplog.records]
    assert said == [("GET /x", "a"), ("GET /x", "b")]
    network._warn("GET /x", [str(number) for number in range(300)])
    assert len(caplog.records) == 256


def test_an_error_of_trust_names_the_server_and_its_authorities():
    network = Scripted()
    trust = ssl.SSLCertVerificationError(1, "x")
    trust.verify_code, trust.verify_message = 20, "unable to get local issuer certificate"
    error = Exception("why")
    error.certificate_error = trust  # as aiohttp's
    said = str(network._broken("GET /x", error))
    assert said == (
        "GET /x: could not talk to https://api.example:6443: the certificate of api.example:6443"
        " is not signed by the authorities of this machine (unable to get local issuer"
        " certificate): put the API server's authority there"
    )
    assert str(network._broken("GET /x", Exception("why"))) == (
        "GET /x: could not talk to https://api.example:6443: why"
    )


STATUS = b'{"kind": "Status", "message": "m", "reason": "R"%s}'
# code, headers, body -> the error's class, code, reason, message, retry_after
BODIES: list[tuple[int, dict[str, str], bytes, tuple[Any, ...]]] = [
    (404, {}, STATUS % b"", (errors.NotFound, 404, "R", "m", None)),
    (404, {}, STATUS % b', "code": 409', (errors.Conflict, 409, "R", "m", None)),
    (404, {}, STATUS % b', "code": 0', (errors.NotFound, 404, "R", "m", None)),
    (404, {}, b'{"kind": "Other"}', (errors.NotFound, 404, "NotFound", '{"kind": "Other"}', None)),
    (404, {}, b"[]", (errors.NotFound, 404, "NotFound", "[]", None)),
    (404, {}, b" \n", (errors.NotFound, 404, "NotFound", "Not Found", None)),
    (404, {}, b"\xff", (errors.NotFound, 404, "NotFound", "\ufffd", None)),
    (500, {}, b"y" * 513, (errors.InternalError, 500, "InternalError", "y" * 512, None)),
    (500, {}, b"y" * 512, (errors.InternalError, 500, "InternalError", "y" * 512, None)),
    (299, {}, b"", (KubeError, 299, "Unknown", "Unknown", None)),
    (429, {"Retry-After": "7"}, b"", (
        errors.TooManyRequests, 429, "TooManyRequests", "Too Many Requests", 7.0)),
    *((503, {"Retry-After": after}, b"", (
        Unavailable, 503, "ServiceUnavailable", "Service Unavailable", 30.0))
      for after in ("30", "31", "3600", "9" * 400)),
    *((502 + n, {"Retry-After": after}, b"", (Unavailable, 502 + n, reason, said, None))
      for n, after, reason, said in (
          (0, "-1", "InternalError", "Bad Gateway"),
          (1, "1.5", "ServiceUnavailable", "Service Unavailable"),
          (2, "٣", "Timeout", "Gateway Timeout"))),
    (505, {"Retry-After": ""}, b"", (
        KubeError, 505, "InternalError", "HTTP Version Not Supported", None)),
]  # fmt: skip


@pytest.mark.parametrize(("code", "headers", "body", "expected"), BODIES)
def test_an_answer_becomes_an_error_whatever_its_body(code, headers, body, expected):
    error = from_response(code, headers, body, "GET /x")
    found = (type(error), error.http_code, error.reason, error.message, error.retry_after)
    assert found == expected
    assert str(error) == f"GET /x: {error.message}"
    assert error.causes == []


# code -> the reason and the class of an error without words of its own
REASONS: dict[int, tuple[str, type[KubeError]]] = {
    400: ("BadRequest", errors.BadRequest),
    401: ("Unauthorized", errors.Unauthorized),
    403: ("Forbidden", errors.Forbidden),
    404: ("NotFound", errors.NotFound),
    405: ("MethodNotAllowed", KubeError),
    409: ("Conflict", errors.Conflict),
    410: ("Gone", errors.Gone),
    413: ("RequestEntityTooLarge", KubeError),
    415: ("UnsupportedMediaType", KubeError),
    418: ("Unknown", KubeError),
    422: ("Invalid", errors.Invalid),
    429: ("TooManyRequests", errors.TooManyRequests),
    500: ("InternalError", errors.InternalError),
    502: ("InternalError", errors.Unavailable),
    503: ("ServiceUnavailable", errors.Unavailable),
    504: ("Timeout", errors.Unavailable),
}


@pytest.mark.parametrize("code", REASONS)
def test_a_response_without_a_status_has_the_reason_that_kubernetes_gives_its_code(
    code: int,
) -> None:
    reason, kind = REASONS[code]
    error = from_response(code, {}, b"<html>", "GET /x")
    assert (error.reason, type(error)) == (reason, kind)
    assert make_status(code, "no")["reason"] == reason
    assert make_status(code, "no", reason="Expired")["reason"] == "Expired"


def test_an_error_with_no_words_still_says_something():
    error = KubeError({})
    assert (error.http_code, error.reason, error.message) == (0, "", "HTTP 0")
    assert str(error) == "HTTP 0"
    assert str(KubeError({"reason": "Odd"}, "GET /x")) == "GET /x: Odd"
    causes = [{"reason": "R", "message": "m", "field": "f"}]
    assert KubeError({"details": {"causes": causes}}).causes == causes
    assert KubeError({"details": {"causes": None}}).causes == []
    assert KubeError({"details": None}).causes == []
