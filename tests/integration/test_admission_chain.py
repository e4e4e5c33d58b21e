"""The admission chain against real webhooks over TLS: order, patches, refusals, failures, reuse."""

import asyncio

import pytest
import trustme
from aiohttp import web

from hyperjob_sandbox.apiserver.admission.chain import AdmissionChain
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
)
from hyperjob_sandbox.apiserver.errors import ApiError
from tests.support.webhooks import answered, review, running

GVR = GroupVersionResource("conf.example.dev", "v1", "gadgets")
GVK = GroupVersionKind("conf.example.dev", "v1", "Gadget")
USER = {"username": "system:admin", "groups": ["system:masters"]}


@pytest.fixture
async def hooks():
    async with running() as found:
        yield found


@pytest.fixture
async def chain(hooks):
    def resolve(namespace, name, port):
        if (namespace, name, port) == ("system", "hooks", 443):
            return "127.0.0.1", hooks.port
        raise LookupError(f'service "{name}" not found')

    namespaces = {"conf": {"metadata": {"name": "conf", "labels": {"team": "a"}}}}
    found = AdmissionChain(namespaces=namespaces.get, resolve_service=resolve)
    try:
        yield found
    finally:
        await found.close()


def create(**fields):
    obj = {
        "apiVersion": "conf.example.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": "g", "namespace": "conf"},
        "spec": {"size": 3},
    }
    given = {
        "operation": "CREATE",
        "gvr": GVR,
        "gvk": GVK,
        "namespace": "conf",
        "name": "g",
        "object": obj,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        "user": USER,
    }
    return AdmissionRequest(**{**given, **fields})


def add(path, value):
    return [{"op": "add", "path": path, "value": value}]


async def refused(call):
    with pytest.raises(ApiError) as caught:
        await call
    return caught.value.status


async def test_a_review_is_what_the_api_server_sends(hooks, chain):
    hooks.answer("/v")
    chain.reload(validating=[hooks.config("c", "/v")])
    await chain.validate(create())
    (review,) = hooks.seen("/v")
    uid = review.pop("uid")
    assert len(uid) == 36
    assert list(review.items()) == [
        ("kind", {"group": "conf.example.dev", "version": "v1", "kind": "Gadget"}),
        ("resource", {"group": "conf.example.dev", "version": "v1", "resource": "gadgets"}),
        ("requestKind", {"group": "conf.example.dev", "version": "v1", "kind": "Gadget"}),
        ("requestResource", {"group": "conf.example.dev", "version": "v1", "resource": "gadgets"}),
        ("name", "g"),
        ("namespace", "conf"),
        ("operation", "CREATE"),
        ("userInfo", USER),
        ("object", create().object),
        ("oldObject", None),
        ("dryRun", False),
        ("options", {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
    ]
    headers, query = hooks.headers[0]
    assert query == "timeout=5s"
    assert headers["User-Agent"] == "kube-apiserver-admission"
    assert headers["Accept"] == "application/json, */*"
    assert headers["Content-Type"] == "application/json"


async def test_mutating_webhooks_run_by_name_then_by_place_and_see_each_other(hooks, chain):
    hooks.patch("/first", lambda obj: add("/spec/a", 1))
    hooks.patch("/second", lambda obj: add("/spec/b", obj["spec"]["a"] + 1))
    hooks.patch("/third", lambda obj: add("/spec/c", obj["spec"]["b"] + 1))
    chain.reload(mutating=[hooks.config("zzz", "/third"), hooks.config("aaa", "/first", "/second")])
    request = create()
    assert (await chain.mutate(request))["spec"] == {"size": 3, "a": 1, "b": 2, "c": 3}
    assert request.object == create().object
    assert [path for path, _ in hooks.reviews] == ["/first", "/second", "/third"]


async def test_a_webhook_is_asked_again_where_a_later_one_changed_the_object(hooks, chain):
    def hold(obj):
        return [] if obj["spec"].get("held") else add("/spec/held", True)

    hooks.patch("/gate", hold)
    hooks.patch("/wipe", lambda obj: [{"op": "replace", "path": "/spec", "value": {"size": 1}}])
    hooks.patch("/other", lambda obj: [])
    chain.reload(
        mutating=[
            hooks.config("a-gate", "/gate", reinvocationPolicy="IfNeeded"),
            hooks.config("b-other", "/other"),
            hooks.config("c-wipe", "/wipe", reinvocationPolicy="IfNeeded"),
        ]
    )
    assert (await chain.mutate(create()))["spec"] == {"size": 1, "held": True}
    assert [path for path, _ in hooks.reviews] == ["/gate", "/other", "/wipe", "/gate"]


async def test_defaults_follow_each_patch(hooks, chain):
    hooks.patch("/m", lambda obj: [{"op": "remove", "path": "/spec/size"}])
    chain.reload(mutating=[hooks.config("c", "/m")])
    request = create(default=lambda obj: obj["spec"].setdefault("size", 9))
    assert (await chain.mutate(request))["spec"] == {"size": 9}


DENIALS = {
    "message and code": (
        {"status": {"message": "no", "code": 422, "reason": "Invalid", "details": {"causes": []}}},
        {
            "message": 'admission webhook "v.c.dev" denied the request: no',
            "reason": "Invalid",
            "details": {"causes": []},
            "code": 422,
        },
    ),
    "message alone": (
        {"status": {"message": "no"}},
        {"message": 'admission webhook "v.c.dev" denied the request: no', "code": 400},
    ),
    "reason alone": (
        {"status": {"reason": "Never", "code": 200}},
        {
            "message": 'admission webhook "v.c.dev" denied the request: Never',
            "reason": "Never",
            "code": 400,
        },
    ),
    "nothing": (
        {},
        {
            "message": 'admission webhook "v.c.dev" denied the request without explanation',
            "code": 400,
        },
    ),
}


@pytest.mark.parametrize(("response", "expected"), DENIALS.values(), ids=DENIALS)
async def test_a_refusal_is_told_with_its_webhook(hooks, chain, response, expected):
    hooks.answer("/v", allowed=False, **response)
    chain.reload(validating=[hooks.config("c", "/v")])
    status = await refused(chain.validate(create()))
    common = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    assert status == {**common, **expected}


async def test_warnings_are_collected(hooks, chain):
    hooks.answer("/m", warnings=["one"])
    hooks.answer("/v", warnings=["two"], allowed=False)
    chain.reload(mutating=[hooks.config("c", "/m")], validating=[hooks.config("c", "/v")])
    request = create()
    await chain.mutate(request)
    await refused(chain.validate(request))
    assert request.warnings == ["one", "two"]


async def test_validating_webhooks_run_side_by_side(hooks, chain):
    together = asyncio.Barrier(2)

    async def wait(request, uid):
        await together.wait()
        return answered(uid)

    hooks.raw("/a", wait)
    hooks.raw("/b", wait)
    chain.reload(validating=[hooks.config("c", "/a", "/b")])
    await chain.validate(create())
    assert len(hooks.reviews) == 2


def broken(text):
    return f'Internal error occurred: failed calling webhook "v.c.dev": {text}'


BAD_ANSWERS = {
    "no response": (
        lambda uid: review(),
        "received invalid webhook response: webhook response was absent",
    ),
    "other uid": (
        lambda uid: review(response={"uid": "x", "allowed": True}),
        "received invalid webhook response: expected response.uid=",
    ),
    "other kind": (
        lambda uid: {"kind": "Review", "apiVersion": "v1", "response": {"uid": uid}},
        (
            "received invalid webhook response: expected webhook response of "
            "admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Review"
        ),
    ),
    "a patch": (
        lambda uid: review(response={"uid": uid, "allowed": True, "patch": "W10="}),
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
}


@pytest.mark.parametrize(("make", "text"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_a_bad_answer_is_a_failed_call(hooks, chain, make, text):
    async def handler(request, uid):
        return web.json_response(make(uid))

    hooks.raw("/v", handler)
    chain.reload(validating=[hooks.config("c", "/v")])
    status = await refused(chain.validate(create()))
    assert status["message"].startswith(broken(text))
    assert (status["code"], status["reason"]) == (500, "InternalError")
    chain.reload(validating=[hooks.config("c", "/v", failurePolicy="Ignore")])
    await chain.validate(create())


async def test_an_unknown_authority_is_refused(hooks, chain):
    hooks.answer("/v")
    stranger = trustme.CA().cert_pem.bytes()
    chain.reload(validating=[hooks.config("c", "/v", ca=stranger)])
    status = await refused(chain.validate(create()))
    assert status["message"].startswith(
        broken(
            f'failed to call webhook: Post "{hooks.url}/v?timeout=5s": tls: failed to verify '
            "certificate: x509: "
        )
    )
    assert not hooks.reviews


async def test_nobody_there_is_a_failed_call(hooks, chain, unused_tcp_port):
    url = f"https://127.0.0.1:{unused_tcp_port}"
    chain.reload(validating=[hooks.config("c", "/v", url=url)])
    status = await refused(chain.validate(create()))
    assert status["message"] == broken(
        f'failed to call webhook: Post "{url}/v?timeout=5s": dial tcp '
        f"127.0.0.1:{unused_tcp_port}: connect: connection refused"
    )
    chain.reload(validating=[hooks.config("c", "/v", url=url, failurePolicy="Ignore")])
    await chain.validate(create())


async def test_a_webhook_that_does_not_answer_runs_out_of_time(hooks, chain):
    release = asyncio.Event()

    async def hang(request, uid):
        await release.wait()
        return web.Response()

    hooks.raw("/v", hang)
    chain.reload(validating=[hooks.config("c", "/v", timeoutSeconds=1)])
    status = await refused(chain.validate(create()))
    release.set()
    assert status["message"] == broken(
        f'failed to call webhook: Post "{hooks.url}/v?timeout=1s": context deadline exceeded'
    )


async def test_connections_are_used_again_across_reloads(hooks, chain):
    hooks.answer("/v")
    for _ in range(3):
        chain.reload(validating=[hooks.config("c", "/v")])
        await chain.validate(create())
    assert len(hooks.connections) == 1


async def test_a_service_is_resolved_and_verified_by_its_name(hooks, chain):
    hooks.answer("/v")
    config = hooks.config("c", "/v")
    bundle = config["webhooks"][0]["clientConfig"]["caBundle"]
    service = {"name": "hooks", "namespace": "system", "path": "/v"}
    config["webhooks"][0]["clientConfig"] = {"service": service, "caBundle": bundle}
    chain.reload(validating=[config])
    await chain.validate(create())
    assert len(hooks.seen("/v")) == 1
    service["name"] = "nope"
    chain.reload(validating=[config])
    status = await refused(chain.validate(create()))
    assert status["message"] == broken(
        'failed to call webhook: Post "https://nope.system.svc:443/v?timeout=5s": '
        'service "nope" not found'
    )


async def test_a_dry_run_needs_a_webhook_without_side_effects(hooks, chain):
    hooks.answer("/v")
    chain.reload(validating=[hooks.config("c", "/v")])
    await chain.validate(create(dry_run=True))
    assert hooks.seen("/v")[0]["dryRun"] is True
    chain.reload(validating=[hooks.config("c", "/v", sideEffects="Some")])
    status = await refused(chain.validate(create(dry_run=True)))
    assert status["message"] == 'admission webhook "v.c.dev" does not support dry run'
    assert (status["code"], status["reason"]) == (400, "BadRequest")


async def test_a_match_condition_that_fails_follows_the_failure_policy(hooks, chain):
    hooks.answer("/v")
    condition = {"name": "x", "expression": "object.spec.nope == 1"}
    chain.reload(validating=[hooks.config("c", "/v", matchConditions=[condition])])
    status = await refused(chain.validate(create()))
    assert status["message"] == (
        'gadgets.conf.example.dev "g" is forbidden: '
        "expression 'object.spec.nope == 1' resulted in error: no such key: nope"
    )
    assert status["code"] == 403
    ignoring = hooks.config("c", "/v", matchConditions=[condition], failurePolicy="Ignore")
    chain.reload(validating=[ignoring])
    await chain.validate(create())
    assert not hooks.reviews
