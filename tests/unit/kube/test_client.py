"""What each verb sends, what it makes of the answer, and when it tries again."""

import asyncio
import gc
import socket
import ssl
import warnings
from collections import Counter
from contextlib import aclosing, suppress
from typing import Any

import pytest
from aiohttp import web

import hyperjob_core.kube.metrics  # noqa: F401 - shows the counts
from hyperjob_core.kube import errors
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.http import why_no_connection, why_not_trusted
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, NODES, PODS
from hyperjob_core.kube.transport import REQUESTS
from tests.support.rawlog import raw_lines

JOBS = "/apis/training.volcano.sh/v1alpha1/namespaces/default/hyperjobs"
JOB = f"{JOBS}/llm"
LLM = {
    "apiVersion": "training.volcano.sh/v1alpha1",
    "kind": "HyperJob",
    "metadata": {"name": "llm", "namespace": "default", "resourceVersion": "7"},
    "spec": {"unknown": {"kept": 1}},
}


BARE = {"metadata": {"name": "llm", "namespace": "default"}, "spec": {}}
REMOVE = {"op": "remove", "path": "/spec"}
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


def patch(body: Any, kind: PatchType, **how: Any) -> Any:
    return lambda k: k.patch(HYPERJOBS, "llm", body, kind=kind, namespace="default", **how)


def delete(**how: Any) -> Any:
    return lambda k: k.delete(HYPERJOBS, "llm", namespace="default", **how)


SENT = {
    "get": (lambda k: k.get(HYPERJOBS, "llm", namespace="default"), ("GET", JOB, {}, None, None)),
    "get of something cluster-wide": (
        lambda k: k.get(CLUSTERS, "member1"),
        ("GET", "/apis/cluster.karmada.io/v1alpha1/clusters/member1", {}, None, None),
    ),
    "get in the core group": (
        lambda k: k.get(PODS, "p", namespace="n"),
        ("GET", "/api/v1/namespaces/n/pods/p", {}, None, None),
    ),
    "create goes to the object's own namespace": (
        lambda k: k.create(HYPERJOBS, LLM),
        ("POST", JOBS, {}, "application/json", LLM),
    ),
    "create as a dry run": (
        lambda k: k.create(HYPERJOBS, LLM, dry_run=True),
        ("POST", JOBS, {"dryRun": "All"}, "application/json", LLM),
    ),
    "replace of the status": (
        lambda k: k.replace(HYPERJOBS, LLM, subresource="status"),
        ("PUT", f"{JOB}/status", {}, "application/json", LLM),
    ),
    "apply says its manager and fills in the kind": (
        lambda k: k.apply(HYPERJOBS, BARE, field_manager="me"),
        (
            "PATCH",
            JOB,
            {"fieldManager": "me", "force": "true"},
            "application/apply-patch+yaml",
            {"apiVersion": LLM["apiVersion"], "kind": "HyperJob", **BARE},
        ),
    ),
    "merge patch": (
        patch({"spec": None}, PatchType.MERGE),
        ("PATCH", JOB, {}, "application/merge-patch+json", {"spec": None}),
    ),
    "an empty merge patch still has a body": (
        patch({}, PatchType.MERGE),
        ("PATCH", JOB, {}, "application/merge-patch+json", {}),
    ),
    "json patch": (
        patch([REMOVE], PatchType.JSON, subresource="status", field_manager="me"),
        ("PATCH", f"{JOB}/status", {"fieldManager": "me"}, "application/json-patch+json", [REMOVE]),
    ),
    "delete of one very object": (
        delete(uid="u1", propagation="Foreground"),
        (
            "DELETE",
            JOB,
            {},
            "application/json",
            OPTIONS | {"preconditions": {"uid": "u1"}, "propagationPolicy": "Foreground"},
        ),
    ),
    "delete as a dry run": (
        delete(dry_run=True),
        ("DELETE", JOB, {}, "application/json", OPTIONS | {"dryRun": ["All"]}),
    ),
}


@pytest.mark.parametrize("case", SENT)
async def test_a_verb_sends_exactly(case, server, kube):
    call, (method, path, query, content_type, body) = SENT[case]
    server.on(path, server.reply(LLM))
    assert await call(kube) == LLM
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.query) == (method, path, query)
    assert seen.headers.get("content-type") == content_type
    assert (seen.json() if seen.body else None) == body
    assert seen.headers["accept"] == "application/json"
    assert seen.headers["user-agent"].startswith("hyperjob/")


@pytest.mark.parametrize(
    "call",
    [
        lambda k: k.get(HYPERJOBS, "llm"),
        lambda k: k.get(HYPERJOBS, "", namespace="default"),
        lambda k: k.create(HYPERJOBS, {"metadata": {"name": "llm"}}),
    ],
    ids=["get without namespace", "get without name", "create without namespace"],
)
async def test_a_call_that_would_reach_the_wrong_path_is_refused(call, server, kube):
    with pytest.raises(ValueError, match="needs a"):
        await call(kube)
    assert not server.seen


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.KubeError),
        (409, "AlreadyExists", errors.AlreadyExists),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
    ],
)
async def test_a_refusal_becomes_its_error(code, reason, kind, server, kube):
    server.on(JOBS, server.failure(code, reason, "because"))
    with pytest.raises(errors.KubeError) as raised:
        await kube.create(HYPERJOBS, LLM)
    assert type(raised.value) is kind
    assert (raised.value.http_code, raised.value.reason) == (code, reason)
    assert str(raised.value) == f"POST {JOBS}: because"


async def test_an_answer_that_is_no_object_is_an_error(server, kube):
    server.on(JOB, server.reply([1]))
    with pytest.raises(errors.Unavailable, match="no JSON object"):
        await kube.get(HYPERJOBS, "llm", namespace="default")


def page(*names, token="", version="5"):
    return {
        "kind": "NodeList",
        "metadata": {"resourceVersion": version, "continue": token},
        "items": [{"metadata": {"name": name}} for name in names],
    }


async def test_a_list_follows_its_pages_and_says_what_the_items_are(server, kube):
    server.on(
        "/api/v1/nodes",
        server.reply(page("a", "b", token="t1")),
        server.reply(page("c", token="t2")),
        server.reply(page("d")),
    )
    listed = await kube.list(NODES, limit=2, label_selector="x in (y)", field_selector="a=b")
    assert [item["metadata"]["name"] for item in listed.items] == ["a", "b", "c", "d"]
    assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("v1", "Node")}
    assert listed.resource_version == "5"
    both = {"labelSelector": "x in (y)", "fieldSelector": "a=b", "limit": "2"}
    assert [seen.query for seen in server.seen] == [
        both,
        {**both, "continue": "t1"},
        {**both, "continue": "t2"},
    ]


async def test_a_list_whose_page_token_expired_starts_over_once(server, kube):
    server.on(
        "/api/v1/nodes",
        server.reply(page("a", token="t1")),
        server.failure(410, "Expired"),
        server.reply(page("a", version="9", token="t2")),
        server.reply(page("b", version="9")),
        server.failure(410, "Expired"),
    )
    listed = await kube.list(NODES, limit=1)
    assert [item["metadata"]["name"] for item in listed.items] == ["a", "b"]
    assert listed.resource_version == "9"
    assert [seen.query.get("continue") for seen in server.seen] == [None, "t1", None, "t2"]
    with pytest.raises(errors.Gone):
        await kube.list(NODES, limit=1)
    assert len(server.seen) == 6


@pytest.mark.parametrize("code", [429, 503])
async def test_a_write_is_repeated_when_the_server_says_when(code, server, kube):
    server.on(JOBS, server.failure(code, "Busy", Retry_After="0"), server.reply(LLM, status=201))
    assert await kube.create(HYPERJOBS, LLM) == LLM
    assert [seen.json() for seen in server.seen] == [LLM, LLM]


async def test_a_read_survives_broken_connections(server, kube):
    server.on(JOB, server.reset(), server.reset(), server.reply(LLM))
    assert await kube.get(HYPERJOBS, "llm", namespace="default") == LLM


async def test_a_write_after_an_answer_that_ends_the_connection_opens_another_one(server, kube):
    async def last(request: web.Request) -> web.StreamResponse:
        response = web.json_response(LLM)
        response.force_close()
        return response

    server.on(JOBS, last, server.reply(LLM))
    for _ in range(2):
        assert await kube.create(HYPERJOBS, LLM) == LLM
    assert len(server.seen) == 2


async def test_a_write_on_a_broken_connection_is_not_repeated(server, kube):
    server.on(JOBS, server.reset(), server.reply(LLM))
    with pytest.raises(errors.Unavailable) as raised:
        await kube.create(HYPERJOBS, LLM)
    assert not raised.value.answered
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "words of a library"), "Connection refused"),
        (OSError("words without a number"), "words without a number"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_why_there_is_no_connection_is_said_even_where_the_error_has_no_words(
    error: OSError, said: str
) -> None:
    assert why_no_connection(error) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (10, "has expired: renew it"),
        (9, "is not valid yet: compare the clocks"),
        (62, "why: use a name that is in it"),
        (64, "why: use a name that is in it"),
        (19, "is not signed by its authority (why.)"),
    ],
)
def test_why_a_certificate_is_not_trusted_is_said_with_the_remedy(code: int, said: str) -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, "why."
    assert said in why_not_trusted(error, "10.0.0.1", "its authority")


async def test_nobody_listening_is_unavailable_and_names_the_server(server):
    server.url = "https://127.0.0.1:1"
    nobody = server.write_kubeconfig({}, name="nobody")
    async with Kube.connect(kubeconfig=nobody) as lonely:
        with pytest.raises(errors.Unavailable, match=r"https://127\.0\.0\.1:1"):
            await lonely.create(HYPERJOBS, LLM)


async def test_a_cancelled_call_ends_and_leaves_the_client_usable(server, kube):
    server.on(JOB, server.stream(then="hang"), server.reply(LLM))
    task = asyncio.create_task(kube.get(HYPERJOBS, "llm", namespace="default"))
    await server.until(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kube.get(HYPERJOBS, "llm", namespace="default") == LLM


async def test_a_closed_client_leaves_no_connection_at_whatever_moment_a_call_was_cancelled(server):
    server.on(JOB, server.stream(then="hang"))

    async def cancelled_at(moment: float) -> None:
        async with Kube.connect(kubeconfig=server.kubeconfig) as hurried:
            task = asyncio.create_task(hurried.get(HYPERJOBS, "llm", namespace="default"))
            await asyncio.wait({task}, timeout=moment)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    gc.collect()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        for number in range(60):
            await asyncio.to_thread(asyncio.run, cancelled_at(number * 0.0003))
        gc.collect()
    assert [str(warning.message) for warning in left] == []


async def test_calls_share_a_connection(server, kube):
    server.on(JOB, server.reply(LLM))
    for _ in range(5):
        await kube.get(HYPERJOBS, "llm", namespace="default")
    assert len(server.peers) == 1


async def test_every_call_is_counted(server):
    broken = [server.reset()] * 2  # aiohttp repeats a read on a reused connection by itself
    server.on(JOB, server.reply(LLM), *broken, server.failure(404, "NotFound"))
    async with Kube.connect(kubeconfig=server.kubeconfig) as kube:
        host, before = kube.host, Counter(REQUESTS)
        await kube.get(HYPERJOBS, "llm", namespace="default")
        with pytest.raises(errors.NotFound):
            await kube.get(HYPERJOBS, "llm", namespace="default")
    counted = REQUESTS - before
    assert counted["200", "GET", host] == 1
    assert counted["404", "GET", host] == 1
    assert counted["<error>", "GET", host] >= 1


def event(kind, name, version):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


async def collect(kube, **options):
    async with aclosing(kube.watch(NODES, resource_version="5", **options)) as events:
        return [(one.type, one.object["metadata"]["resourceVersion"]) async for one in events]


async def test_a_watch_gives_events_and_bookmarks_until_the_server_ends_it(server, kube):
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
    server.on(
        "/api/v1/nodes",
        server.stream(event("ADDED", "a", "6"), event("DELETED", "a", "7"), bookmark),
    )
    assert await collect(kube, label_selector="a", timeout_seconds=60) == [
        (EventType.ADDED, "6"),
        (EventType.DELETED, "7"),
        (EventType.BOOKMARK, "9"),
    ]
    assert server.seen[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "60",
        "labelSelector": "a",
    }


LOG = "/api/v1/namespaces/n/pods/p/log"


async def test_the_lines_of_a_log_come_as_they_are_empty_ones_too(server, kube):
    server.on(LOG, server.stream(b"one", b"", b" two "))
    async with aclosing(raw_lines(kube, LOG, params={"tailLines": "3"})) as lines:
        assert [line async for line in lines] == [b"one", b"", b" two "]
    assert server.seen[0].query == {"tailLines": "3"}


async def test_a_log_that_is_refused_or_breaks_off_says_so(server, kube):
    server.on(LOG, server.failure(400, "BadRequest", "waiting to start"))
    with pytest.raises(errors.BadRequest, match="waiting to start"):
        await anext(raw_lines(kube, LOG, params={}))
    other = LOG.replace("/p/", "/q/")
    server.on(other, server.stream(b"one", then="reset"))
    with pytest.raises(errors.Unavailable):
        async with aclosing(raw_lines(kube, other, params={})) as lines:
            assert [line async for line in lines]


async def test_a_watch_takes_an_object_of_many_megabytes(server, kube):
    large = event("ADDED", "a", "6")
    large["object"]["data"] = "x" * 5_000_000
    server.on("/api/v1/nodes", server.stream(large, event("MODIFIED", "a", "7")))
    assert [version for _, version in await collect(kube)] == ["6", "7"]


GONE = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"},
}


FAILING = {
    "an expired version as an event": (lambda s: s.stream(GONE), errors.Gone),
    "an expired version as an answer": (lambda s: s.failure(410, "Expired"), errors.Gone),
    "no such resource": (lambda s: s.failure(404, "NotFound"), errors.NotFound),
    "garbage": (lambda s: s.stream(b"{not json"), errors.Unavailable),
    "an object without a name": (
        lambda s: s.stream({"type": "ADDED", "object": {"metadata": {}}}),
        errors.Unavailable,
    ),
    "an unknown type": (lambda s: s.stream({"type": "NEW", "object": {}}), errors.Unavailable),
    "an error without a status": (
        lambda s: s.stream({"type": "ERROR", "object": None}),
        errors.Unavailable,
    ),
    "a connection that breaks off": (
        lambda s: s.stream(event("ADDED", "a", "6"), then="reset"),
        errors.Unavailable,
    ),
    "a connection that breaks at once": (lambda s: s.reset(), errors.Unavailable),
}


@pytest.mark.parametrize(("script", "kind"), FAILING.values(), ids=FAILING)
async def test_a_watch_that_fails_says_how(script, kind, server, kube):
    server.on("/api/v1/nodes", script(server))
    with pytest.raises(kind):
        await collect(kube)


async def test_a_watch_that_falls_silent_is_given_up(server, kube):
    server.on("/api/v1/nodes", server.stream(event("ADDED", "a", "6"), then="hang"))
    with pytest.raises(errors.Unavailable, match=r"nothing came for 0\.2s"):
        await collect(kube, idle_limit=0.2)


async def test_a_stream_that_takes_too_long_is_not_called_silent(server, kube):
    server.on("/x", server.stream(event("ADDED", "a", "6"), then="hang"))
    with pytest.raises(errors.Unavailable, match=r"the stream took longer than 0\.2s"):
        async for _ in kube._transport.stream("/x", params={}, idle_limit=30, time_limit=0.2):
            pass
