"""Which objects exist: asked by name, in parallel, within bounds."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from hyperjob_core.api.field import make_status
from hyperjob_core.kube import existing as module
from hyperjob_core.kube.errors import Forbidden, KubeError, Unavailable, from_status
from hyperjob_core.kube.existing import existing
from hyperjob_core.kube.resources import CONFIG_MAPS, SECRETS, Resource

ACCEPT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"


class Server:
    """Knows objects by path; `fails` are the codes of paths that are refused."""

    def __init__(self, *paths: str, fails: dict[str, int] | None = None) -> None:
        self.paths = paths
        self.fails = fails or {}
        self.asked: list[str] = []
        self.at_a_time = 0
        self.most_at_a_time = 0

    async def raw(self, method: str, path: str, *, accept: str) -> None:
        assert (method, accept) == ("GET", ACCEPT)
        short = path.removeprefix("/api/v1/namespaces/")
        self.asked.append(short)
        self.at_a_time += 1
        self.most_at_a_time = max(self.most_at_a_time, self.at_a_time)
        await asyncio.sleep(0)
        self.at_a_time -= 1
        code = self.fails.get(short, 0 if short in self.paths else 404)
        if code:
            raise from_status(make_status(code, "no"), path)

    async def get(self, resource: Resource, name: str, *, namespace: str) -> Any:
        """Answer a claim, which is read whole for the volume that it names."""
        await self.raw("GET", resource.path(namespace, name), accept=ACCEPT)
        return {"spec": {"volumeName": "pv"}}


class LeftOut:
    """Keeps what was left out."""

    def __init__(self) -> None:
        self.errors: list[tuple[Resource, KubeError | ValueError]] = []

    def __call__(self, resource: Resource, error: KubeError | ValueError) -> None:
        self.errors.append((resource, error))


async def look(server: Any, *wanted: tuple[str, str, str], **more: int) -> Any:
    left_out = LeftOut()
    found = await existing(server, wanted, left_out=left_out, **more)
    return found, left_out.errors


async def test_names_that_are_there_come_by_namespace_and_kind():
    server = Server("n/configmaps/a", "n/configmaps/b", "m/secrets/a")
    found, left_out = await look(
        server,
        ("n", "ConfigMap", "b"),
        ("n", "ConfigMap", "a"),
        ("n", "ConfigMap", "a"),
        ("n", "Secret", "a"),
        ("m", "Secret", "a"),
        ("n", "PersistentVolumeClaim", "c"),
        ("n", "ServiceAccount", "s"),
    )
    assert found == {
        ("n", "ConfigMap"): {"a": "", "b": ""},
        ("n", "Secret"): {},
        ("m", "Secret"): {"a": ""},
        ("n", "PersistentVolumeClaim"): {},
        ("n", "ServiceAccount"): {},
    }
    assert left_out == []
    assert Counter(server.asked) == Counter(
        [
            "m/secrets/a",
            "n/configmaps/a",
            "n/configmaps/b",
            "n/persistentvolumeclaims/c",
            "n/secrets/a",
            "n/serviceaccounts/s",
        ]
    )


async def test_a_claim_comes_with_the_volume_that_it_names():
    server = Server("n/persistentvolumeclaims/c")
    found, _ = await look(server, ("n", "PersistentVolumeClaim", "c"))
    assert found == {("n", "PersistentVolumeClaim"): {"c": "pv"}}


async def test_a_kind_that_may_not_be_read_is_unknown_in_that_namespace_and_told_once():
    fails = {"n/secrets/a": 403, "n/secrets/b": 503}
    server = Server("n/configmaps/a", "n/secrets/c", "m/secrets/a", fails=fails)
    names = [("n", "Secret", name) for name in "abc"]
    found, left_out = await look(server, *names, ("n", "ConfigMap", "a"), ("m", "Secret", "a"))
    assert found == {("n", "ConfigMap"): {"a": ""}, ("m", "Secret"): {"a": ""}}
    ((resource, error),) = left_out
    assert (resource, type(error)) == (SECRETS, Forbidden)


async def test_after_a_refusal_no_more_of_the_kind_is_asked_for():
    names = [f"{number:02}" for number in range(17)]
    server = Server(fails={f"n/secrets/{name}": 503 for name in names})
    found, left_out = await look(server, *(("n", "Secret", name) for name in names))
    assert found == {}
    assert [type(error) for _, error in left_out] == [Unavailable]
    assert len(server.asked) == 16


async def test_a_name_that_no_path_can_have_leaves_its_kind_out():
    found, left_out = await look(Server(), ("n", "ConfigMap", ""), ("n", "Secret", "a"))
    assert found == {("n", "Secret"): {}}
    ((resource, error),) = left_out
    assert (resource, str(error)) == (CONFIG_MAPS, "ConfigMap needs a name")


@pytest.mark.parametrize("count", [16, 17, 40])
async def test_sixteen_are_asked_for_at_a_time(count: int):
    server = Server()
    await look(server, *(("n", "Secret", f"{number:02}") for number in range(count)))
    assert (server.most_at_a_time, len(server.asked)) == (16, count)


async def test_kinds_of_names_beyond_the_most_are_unknown():
    server = Server("n/configmaps/a", "n/secrets/a", "n/secrets/b")
    wanted = [("n", "Secret", "b"), ("n", "ConfigMap", "a"), ("n", "Secret", "a")]
    found, left_out = await look(server, *wanted, most=3)
    assert found == {("n", "ConfigMap"): {"a": ""}, ("n", "Secret"): {"a": "", "b": ""}}
    found, _ = await look(server, *wanted, most=2)
    assert found == {("n", "ConfigMap"): {"a": ""}}
    assert server.asked[3:] == ["n/configmaps/a", "n/secrets/a"]
    assert left_out == []
    assert module._MOST == 200
