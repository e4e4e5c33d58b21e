"""The HTTPS shell: what it refuses, what it bounds, how it ends. Real sockets, real TLS."""

import asyncio
import contextlib
import json
import queue
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from hyperjob_certs.source import FileSource
from hyperjob_certs.x509 import issue_ca, issue_serving
from hyperjob_rules.configuration import (
    MUTATE_HYPERJOB,
    MUTATE_RESOURCEBINDING,
    VALIDATE_HYPERJOB,
    VALIDATE_TRAINJOB,
)
from hyperjob_webhook import server as server_module
from hyperjob_webhook.admission import admit
from hyperjob_webhook.review import MAX_BODY_BYTES
from hyperjob_webhook.server import LARGE_BODY_BYTES, Limits, WebhookServer

REVIEW = next(
    line
    for line in (Path(__file__).parent / "data/admission-reviews.jsonl").read_bytes().splitlines()
    if b'"kind":"ResourceBinding"' in line
)
HEADERS = {"Content-Type": "application/json"}


class Witness:
    """Remembers what it was told."""

    def __init__(self):
        self.begun = asyncio.Queue()
        self.ended = asyncio.Queue()

    def started(self, webhook):
        self.begun.put_nowait(webhook)

    def done(self, webhook, reply, seconds):
        self.ended.put_nowait((webhook, reply.status, seconds))


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    now = datetime.now(UTC)
    directory = tmp_path_factory.mktemp("tls")
    ca = issue_ca(common_name="ca", lifetime=timedelta(days=2), now=now)
    pair = issue_serving(ca, names=["127.0.0.1"], lifetime=timedelta(days=1), now=now)
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    source = FileSource(directory / "tls.crt", directory / "tls.key")
    source.load()
    return source, ssl.create_default_context(cadata=ca.certificate.decode())


class Running:
    def __init__(self, server, port, witness, client_tls):
        self.server, self.port, self.witness, self.client_tls = server, port, witness, client_tls

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}{MUTATE_RESOURCEBINDING}"

    def session(self):
        connector = aiohttp.TCPConnector(ssl=self.client_tls)
        return aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(30), headers=HEADERS
        )

    async def raw(self):
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client_tls)

    async def unfinished(self):
        """Send all but the last byte of a review, and return the connection."""
        reader, writer = await self.raw()
        writer.write(head(len(REVIEW)) + REVIEW[:-1])
        await self.witness.begun.get()
        return reader, writer


@contextlib.asynccontextmanager
async def serving(tls, *, missing=None, judge=None, **limits):
    source, client_tls = tls
    witness = Witness()
    server = WebhookServer(reporter=witness, limits=Limits(**limits), missing=missing, judge=judge)
    port = await server.start(host="127.0.0.1", port=0, tls=source.server_context())
    try:
        yield Running(server, port, witness, client_tls)
    finally:
        await server.stop(grace=5)


def head(length, *more):
    lines = [f"POST {MUTATE_RESOURCEBINDING} HTTP/1.1", "Host: x", "Content-Type: application/json"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join([*lines, *more]) + "\r\n\r\n").encode()


async def answer(reader):
    """Read one response and return its status, headers and body."""
    async with asyncio.timeout(30):
        text = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = text.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize(
    ("version", "header", "kept"),
    [
        ("1.1", "X: y", True),
        ("1.1", "Connection: close", False),
        ("1.0", "X: y", False),
        ("1.0", "Connection: keep-alive", True),
    ],
)
async def test_a_connection_is_kept_as_its_client_wishes(tls, version, header, kept):
    async with serving(tls) as running:
        reader, writer = await running.raw()
        writer.write(head(len(REVIEW), header).replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
        writer.write(REVIEW)
        status, headers, body = await answer(reader)
        assert status == 200
        assert headers["content-type"].startswith("application/json")
        assert headers["date"].endswith(" GMT")
        assert json.loads(body)["response"]["allowed"]
        if kept:
            writer.write(head(len(REVIEW)) + REVIEW)
            assert (await answer(reader))[0] == 200
        else:
            assert await reader.read() == b""
        writer.close()


REFUSED = {
    "a get": ("GET", MUTATE_RESOURCEBINDING, {}, None, 405),
    "an unknown path": ("POST", "/nothing", {}, REVIEW, 404),
    "no JSON": ("POST", MUTATE_RESOURCEBINDING, {"Content-Type": "text/plain"}, REVIEW, 415),
    "compression": ("POST", MUTATE_RESOURCEBINDING, {"Content-Encoding": "gzip"}, b"x", 415),
    "garbage": ("POST", MUTATE_RESOURCEBINDING, {}, b"{", 400),
    "nothing": ("POST", MUTATE_RESOURCEBINDING, {}, b"", 400),
}


@pytest.mark.parametrize(
    ("method", "path", "headers", "data", "code"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_what_is_no_review_is_refused_with_a_status(tls, method, path, headers, data, code):
    async with serving(tls) as running, running.session() as session:
        url = f"https://127.0.0.1:{running.port}{path}"
        async with session.request(method, url, headers=headers, data=data) as response:
            assert response.status == code
            status = await response.json()
        assert (status["kind"], status["code"]) == ("Status", code)
        webhook, reported, _ = running.witness.ended.get_nowait()
        assert reported == code
        assert webhook == (path if path == MUTATE_RESOURCEBINDING else "unknown")


async def test_a_declared_body_that_is_too_large_is_refused_unread(tls):
    async with serving(tls) as running:
        reader, writer = await running.raw()
        writer.write(head(MAX_BODY_BYTES + 1))
        assert (await answer(reader))[0] == 413
        writer.close()


async def test_an_undeclared_body_that_is_too_large_is_refused(tls):
    async def endless():
        while True:
            yield b" " * 65536

    async with serving(tls) as running, running.session() as session:
        with contextlib.suppress(aiohttp.ClientError):  # it may be cut off while it still sends
            async with session.post(running.url, data=endless()) as response:
                assert response.status == 413
        async with asyncio.timeout(30):
            assert (await running.witness.ended.get())[1] == 413


async def test_a_body_that_never_ends_is_given_up(tls):
    async with serving(tls, request_timeout=0.05) as running:
        reader, writer = await running.raw()
        writer.write(head(len(REVIEW)) + REVIEW[:-1])
        status, _, body = await answer(reader)
        assert status == 504
        assert "no answer within 0.05 s" in json.loads(body)["message"]
        writer.close()


LARGE = REVIEW + b" " * LARGE_BODY_BYTES


@pytest.fixture
def held(monkeypatch):
    """Hold each large review until it is released; give the sizes begun, and what releases one."""
    began, release = queue.Queue(), threading.Semaphore(0)

    def slow(path, body, *context):
        if len(body) > LARGE_BODY_BYTES:
            began.put(len(body))
            release.acquire(timeout=60)
        return admit(path, body, *context)

    monkeypatch.setattr(server_module, "admit", slow)
    yield began, release
    release.release(9)


async def test_a_review_that_takes_too_long_is_given_up_and_the_next_ones_are_served(tls, held):
    async with serving(tls, request_timeout=0.05) as running, running.session() as session:
        async with asyncio.TaskGroup() as group:
            posts = [group.create_task(session.post(running.url, data=LARGE)) for _ in range(5)]
        assert {(await post).status for post in posts} == {504}
        async with session.post(running.url, data=REVIEW) as response:
            assert response.status == 200
        _, release = held
        release.release(9)


async def test_a_client_that_goes_away_is_reported_and_harms_nobody(tls):
    async with serving(tls) as running:
        _, writer = await running.unfinished()
        writer.transport.abort()
        async with asyncio.timeout(30):
            _, code, _ = await running.witness.ended.get()
        assert code == 400
        async with running.session() as session, session.post(running.url, data=REVIEW) as response:
            assert response.status == 200


async def post_once(running):
    reader, writer = await running.raw()
    try:
        writer.write(head(len(REVIEW)) + REVIEW)
        await answer(reader)
    finally:
        writer.transport.abort()


async def test_a_review_that_is_being_judged_gives_way_to_no_connection(tls, held):
    began, release = held
    async with serving(tls, connections=1, request_timeout=60) as running:
        reader, writer = await running.raw()
        writer.write(head(len(LARGE)) + LARGE)
        await asyncio.to_thread(began.get, timeout=60)
        for _ in range(3):
            await post_once(running)
        release.release()
        assert (await answer(reader))[0] == 200
        writer.close()


async def test_a_body_that_arrives_with_its_header_does_not_count_as_header(tls):
    review = json.loads(REVIEW)
    review["request"]["object"]["metadata"]["annotations"] = {"large": "y" * 100_000}
    body = json.dumps(review).encode()
    async with serving(tls) as running:
        reader, writer = await running.raw()
        for _ in range(2):
            writer.write(head(len(body)) + body)
            assert (await answer(reader))[0] == 200
        writer.close()


async def test_requests_sent_without_waiting_for_answers_are_all_answered(tls):
    async with serving(tls) as running:
        reader, writer = await running.raw()
        writer.write((head(len(REVIEW)) + REVIEW) * 3 + head(len(REVIEW))[:-2])
        for _ in range(3):
            assert (await answer(reader))[0] == 200
        writer.write(b"\r\n" + REVIEW)
        assert (await answer(reader))[0] == 200
        writer.close()


async def test_a_connection_that_never_shook_hands_counts_and_goes_first(tls):
    async with serving(tls, connections=2) as running:
        silent = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(2)]
        await post_once(running)
        with contextlib.suppress(ConnectionError):
            assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_draining_ends_each_connection_with_its_next_answer(tls):
    async with serving(tls) as running:
        reader, writer = await running.raw()
        writer.write(head(len(REVIEW)) + REVIEW)
        assert (await answer(reader))[0] == 200
        running.server.drain()
        writer.write(head(len(REVIEW)) + REVIEW)
        status, headers, _ = await answer(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert await reader.read() == b""
        writer.close()


async def test_stop_lets_a_review_in_flight_finish(tls):
    async with serving(tls) as running:
        reader, writer = await running.unfinished()
        stopping = asyncio.create_task(running.server.stop(grace=30))
        await asyncio.sleep(0)
        writer.write(REVIEW[-1:])
        status, headers, _ = await answer(reader)
        assert (status, headers["connection"]) == (200, "close")
        await stopping
        with pytest.raises(OSError):
            await running.raw()
        writer.close()


async def test_stop_leaves_no_connection_without_a_handshake_and_no_thread_for_reviews(tls):
    async with serving(tls, header_seconds=3600) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        async with running.session() as session, session.post(running.url, data=REVIEW):
            pass  # the connection before this one was taken up too
        await running.server.stop(grace=0.05)
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        with pytest.raises(RuntimeError):
            running.server._threads.submit(print)


@pytest.mark.parametrize(
    ("replicas", "allowed"), [(1, True), (-1, False)], ids=["let through", "refused"]
)
async def test_a_hyperjob_that_is_let_through_is_warned_of_what_is_missing(tls, replicas, allowed):
    async def missing(request, hyperjob):
        assert hyperjob["metadata"]["name"] == request.name
        return [f"there is no Secret for {request.name}"]

    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    template = {"tasks": [{"name": "worker", "replicas": 1, "template": pod}]}
    group = {"name": "trainer", "replicas": replicas, "templateSpec": template}
    review = hyperjob_review({"metadata": {"name": "hj"}, "spec": {"replicatedJobs": [group]}})
    async with serving(tls, missing=missing) as running, running.session() as session:
        url = f"https://127.0.0.1:{running.port}"
        judged = await (await session.post(url + VALIDATE_HYPERJOB, data=review)).json()
        assert judged["response"]["allowed"] is allowed
        warned = "there is no Secret for hj" in judged["response"].get("warnings", [])
        assert warned is allowed
        changed = await (await session.post(url + MUTATE_HYPERJOB, data=review)).json()
        assert "warnings" not in changed["response"], "said once, by the webhook that validates"


async def test_a_review_of_another_kind_is_no_trainjob_to_judge(tls):
    async def judge(request):
        raise AssertionError(request)

    async with serving(tls, judge=judge) as running, running.session() as session:
        url = f"https://127.0.0.1:{running.port}{VALIDATE_TRAINJOB}"
        response = await session.post(url, data=hyperjob_review({"metadata": {"name": "hj"}}))
        assert response.status == 400
        assert (await response.json())["kind"] == "Status"


def hyperjob_review(hyperjob):
    kind = {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"}
    request = {
        "uid": "1",
        "operation": "CREATE",
        "namespace": "default",
        "name": "hj",
        "kind": kind,
        "userInfo": {"username": "someone"},
        "object": {"apiVersion": "training.volcano.sh/v1alpha1", "kind": "HyperJob"} | hyperjob,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()


async def test_what_the_server_stops_before_its_answer_is_reported_and_nothing_else(tls, caplog):
    async with serving(tls, request_timeout=600) as running:
        _, writer = await running.unfinished()
        async with asyncio.timeout(20):
            await running.server.stop(grace=0.01)
        webhook, code, seconds = running.witness.ended.get_nowait()
        assert (webhook, code) == (MUTATE_RESOURCEBINDING, 503)
        assert 0 < seconds < 600
        await running.server.stop(grace=0)
        writer.close()
    assert running.server.draining
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("pieces", [1, 2], ids=["at once", "in two pieces"])
@pytest.mark.parametrize(("over", "name"), [(0, "MainThread"), (1, "large-review_0")])
async def test_a_review_above_128_kibibytes_is_judged_in_a_thread(
    tls, monkeypatch, pieces, over, name
):
    names = []

    def watch(path, body, *context):
        names.append(threading.current_thread().name)
        return admit(path, body, *context)

    monkeypatch.setattr(server_module, "admit", watch)
    body = REVIEW + b" " * (128 * 1024 - len(REVIEW) + over)
    async with serving(tls, request_timeout=60) as running:
        reader, writer = await running.raw()
        if pieces == 2:
            writer.write(head(len(body)) + body[:10])
            await running.witness.begun.get()
            writer.write(body[10:])
        else:
            writer.write(head(len(body)) + body)
        assert (await answer(reader))[0] == 200
        writer.close()
    assert names == [name]


async def test_two_large_reviews_are_judged_at_a_time_and_the_others_wait_their_turn(
    tls, held, monkeypatch
):
    (began, release), read = held, asyncio.Queue()

    class Slots(asyncio.Semaphore):
        async def acquire(self):
            read.put_nowait(1)
            return await super().acquire()

    async with serving(tls, request_timeout=60) as running, running.session() as session:
        monkeypatch.setattr(running.server, "_large_slots", Slots(2))
        posts = [asyncio.create_task(session.post(running.url, data=LARGE)) for _ in range(3)]
        async with asyncio.timeout(60):
            for _ in range(3):
                await read.get()
        for _ in range(2):
            await asyncio.to_thread(began.get, timeout=60)
        assert running.server._large_slots.locked()
        assert began.empty()
        release.release(3)
        for post in posts:
            async with await post as response:
                assert response.status == 200
        assert not running.server._large_slots.locked()


async def test_a_review_that_no_thread_takes_is_a_500_and_leaves_its_place(tls):
    async with serving(tls, request_timeout=60) as running, running.session() as session:
        running.server._threads.shutdown()
        for _ in range(3):
            async with session.post(running.url, data=LARGE) as response:
                assert response.status == 500
                text = (await response.json())["message"]
                assert "RuntimeError" in text
        assert not running.server._large_slots.locked()
