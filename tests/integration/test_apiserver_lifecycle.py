"""The embedded API server as a process would see it: ports, restarts, identity, clean ends."""

import asyncio
import ssl
import stat
from pathlib import Path

import aiohttp
import pytest
import yaml

from hyperjob_sandbox.apiserver.server import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, client_context, connected, gadget

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def test_it_comes_back_on_its_port_with_all_it_knew(tmp_path: Path) -> None:
    async with ApiServer(crds=[GADGET_CRD]) as server, connected(server, tmp_path) as api:
        url = server.url
        created = await api.post(GADGETS, gadget("a"))
        await server.stop_listening()
        with pytest.raises(aiohttp.ClientConnectorError):
            await api.get(GADGETS)
        await server.start_listening()
        assert server.url == url
        again = await api.get(f"{GADGETS}/a")
        assert again.body == created.body
        async with api.watch(f"{GADGETS}?resourceVersion={created.version}") as events:
            await api.post(GADGETS, gadget("b"))
            assert await events.names(1) == [("ADDED", "b")]


async def test_a_taken_port_says_which_and_what_to_do() -> None:
    async with ApiServer() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port}: .*choose another port"):
            async with ApiServer(port=port):
                pass


async def test_no_task_is_left_behind(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with (
        ApiServer(crds=[GADGET_CRD]) as server,
        connected(server, tmp_path) as api,
        api.watch(GADGETS),
    ):
        await api.post(GADGETS, gadget("a"))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_kubeconfig_is_private_and_names_its_user(tmp_path: Path) -> None:
    async with ApiServer(name="karmada") as server:
        path = server.kubeconfig(tmp_path / "sub" / "config", user="ann", groups=("dev", "ops"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert yaml.safe_load(path.read_text())["current-context"] == "karmada"
        connector = aiohttp.TCPConnector(ssl=client_context(path))
        async with aiohttp.ClientSession(connector=connector) as session:
            answer = await RawApi(session, server.url).post(WHO_AM_I, REVIEW)
        assert answer.body["status"]["userInfo"] == {
            "username": "ann",
            "groups": ["dev", "ops", "system:authenticated"],
        }


async def test_a_stranger_may_ask_for_health_only(tmp_path: Path) -> None:
    async with ApiServer() as server, connected(server, tmp_path) as api:
        anonymous = ssl.create_default_context(cadata=server.ca_pem.decode())
        connector = aiohttp.TCPConnector(ssl=anonymous)
        async with aiohttp.ClientSession(connector=connector) as session:
            stranger = RawApi(session, api.url)
            for path in ("/readyz", "/livez", "/healthz", "/version"):
                assert (await stranger.get(path)).code == 200
            refused = await stranger.get("/api/v1/namespaces/default/secrets")
            assert refused.code == 403
            assert refused.body["message"] == (
                'secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in'
                ' API group "" in the namespace "default"'
            )


async def test_a_request_that_acts_as_another_user_is_refused(tmp_path: Path) -> None:
    async with ApiServer() as server, connected(server, tmp_path) as api:
        answer = await api.get("/api/v1/nodes", headers={"Impersonate-User": "ann"})
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
