"""The splitter server: what it reads of a request, its answers, and what it refuses."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob.cli.splitter import application
from hyperjob.cli.splitter.service import QuestionError, answer, read_question
from hyperjob_engine.splitting.protocol import VERSION
from tests.unit.cli.objects import GPU

Object = dict[str, Any]


def question(**more: Any) -> Object:
    return {
        "apiVersion": VERSION,
        "kind": "SplitRequest",
        "replicatedJob": "trainer",
        "accelerators": 16,
        "acceleratorType": GPU,
        "acceleratorsPerPod": 4,
        "pod": {GPU: "4", "cpu": "1"},
        "clusters": [
            {"name": "a", "free": {GPU: "8", "cpu": "64"}, "mostPods": 9, "region": "r"},
            {"name": "b", "free": {GPU: "12", "cpu": "64"}, "mostPods": 9, "zone": "z"},
        ],
        **more,
    }


def asked(**more: Any) -> Any:
    return read_question(json.dumps(question(**more)).encode())


def shares(**more: Any) -> dict[str, int]:
    found = json.loads(answer(asked(**more)))
    assert (found["apiVersion"], found["kind"]) == (VERSION, "SplitResponse")
    return {each["cluster"]: each["accelerators"] for each in found["shares"]}


def clusters(**most: int) -> list[Object]:
    free = {GPU: "16", "cpu": "64"}
    return [{"name": name, "free": free, "mostPods": pods} for name, pods in most.items()]


SHARES = {
    "the cluster that fits best": ({"accelerators": 8}, {"a": 8}),
    "the only cluster that has enough": ({"accelerators": 12}, {"b": 12}),
    "more than one cluster has": ({}, {"a": 8, "b": 8}),
    "the preferred cluster": ({"accelerators": 8, "clusterNames": ["b"]}, {"b": 8}),
    "at most so many pods in a cluster": (
        {"clusters": clusters(a=1, b=3), "clusterNames": ["a"]},
        {"a": 4, "b": 12},
    ),
    "accelerators of other pods count": (
        {
            "accelerators": 12,
            "fixedAccelerators": 4,
            "otherPods": [{"requests": {GPU: "4"}, "number": 1}],
        },
        {"b": 12},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("more", "expected"), SHARES.values(), ids=SHARES.keys())
def test_the_answer_has_the_accelerators_of_each_cluster(
    more: Object, expected: dict[str, int]
) -> None:
    found = shares(**more)
    assert sum(found.values()) == sum(expected.values())
    assert found == expected


def test_what_does_not_fit_has_a_reason_and_no_share() -> None:
    for more in ({"accelerators": 400}, {"maxDomains": 1}):
        found = json.loads(answer(asked(**more)))
        number = more.get("accelerators", 16)
        assert found["shares"] == []
        assert found["reason"] == f"{number} {GPU} do not fit on the clusters"
    assert "reason" not in json.loads(answer(asked()))


def test_a_request_is_read_field_by_field() -> None:
    found = asked(clusterPolicy="Required", clusterNames=["a"], maxDomains=2, clustersInUse=["b"])
    wish = found.wish
    assert (wish.group, wish.accelerators, wish.kind, wish.per_pod) == ("trainer", 16, GPU, 4)
    assert (wish.fixed, wish.preferred, wish.required, wish.others) == (0, ("a",), True, ())
    assert (found.max_domains, found.most) == (2, {"a": 9, "b": 9})
    assert not asked(clusterPolicy="Preferred").wish.required
    assert asked().max_domains is None
    assert replace(found.wish, required=False) == asked(clusterNames=["a"]).wish


REFUSED = {
    "no JSON": (b"{", "not JSON: "),
    "a list": (b"[]", "not a JSON object"),
    "another version": (json.dumps(question(apiVersion="v0")).encode(), "apiVersion must be"),
    **{
        f"without {name}": (
            json.dumps(question(**{name: value})).encode(),
            "accelerators, acceleratorsPerPod and pod must be set",
        )
        for name, value in (
            ("accelerators", 0),
            ("acceleratorsPerPod", None),
            ("pod", {}),
        )
    },
    "a pod of nothing": (
        json.dumps(question(pod={GPU: "0"})).encode(),
        "accelerators, acceleratorsPerPod and pod must be set",
    ),
}


@pytest.mark.parametrize(("body", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_request_without_an_answer_is_refused_with_the_reason(body: bytes, text: str) -> None:
    with pytest.raises(QuestionError, match=text):
        read_question(body)


@pytest.fixture
async def open_client() -> AsyncIterator[Any]:
    async with TestClient(TestServer(application())) as client:
        yield client


@pytest.fixture
async def closed_client() -> AsyncIterator[Any]:
    async with TestClient(TestServer(application("t\u00f6ken"))) as client:
        yield client


async def test_the_server_answers_posts_and_says_why_it_does_not(open_client: Any) -> None:
    found = await open_client.post("/", json=question())
    assert (found.status, found.content_type) == (200, "application/json")
    assert (await found.json())["kind"] == "SplitResponse"
    wrong = await open_client.post("/", data=b"[]")
    assert (wrong.status, await wrong.text()) == (400, "not a JSON object")
    assert (await open_client.get("/")).status == 405
    assert (await open_client.post("/other", json=question())).status == 404


@pytest.mark.parametrize("given", ["", "Bearer other", "t\u00f6ken", "bearer t\u00f6ken"])
async def test_a_request_without_the_token_is_not_read(closed_client: Any, given: str) -> None:
    headers = {"Authorization": given} if given else {}
    found = await closed_client.post("/", data=b"[", headers=headers)
    assert (found.status, await found.text()) == (401, "a bearer token is needed")


async def test_a_request_with_the_token_is_answered(closed_client: Any) -> None:
    headers = {"Authorization": "Bearer t\u00f6ken"}
    assert (await closed_client.post("/", json=question(), headers=headers)).status == 200


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--tls-cert", __file__], "give --tls-cert and --tls-key together"),
        (["--tls-key", __file__], "give --tls-cert and --tls-key together"),
        (["--tls-cert", __file__, "--tls-key", __file__], "error: "),
        (["--address", "nowhere"], "error: "),
    ],
)
def test_options_that_cannot_work_are_wrong_usage(words: list[str], text: str) -> None:
    found = CliRunner().invoke(main, ["splitter", *words])
    assert found.exit_code == 2
    assert text in found.stderr
