"""The web page of a cluster, over HTTP, on an API server where Roles decide."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CLUSTERS, CRDS, HYPERJOBS, NAMESPACES, QUEUES
from hyperjob_install.rbac import UI, rbac, ui_lease_rules, ui_rules
from hyperjob_install.settings import UI as PAGE
from hyperjob_install.settings import Settings
from hyperjob_page.world import LiveState
from hyperjob_sandbox.apiserver.server import ApiServer
from tests.support.charted import Audit
from tests.support.controlplane import cluster_bindings
from tests.support.embedded import crd_files
from tests.support.roles import token_of, visitor, with_token
from tests.support.uiscene import cluster, hyperjob, queue
from tests.support.uivisitors import served_to_visitors

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]

Object = dict[str, Any]
LEASES = "karmada-system"
LIMIT = 60.0
UI_USER = f"system:serviceaccount:{LEASES}:{UI}"
PAGES = ("/", "/hyperjobs", "/hyperjobs?phase=Running", "/queues")
SECRET = "/hyperjobs/team-b/classified"
VISITORS = {
    # name: (ClusterRole, namespaces; none is all)
    "ann": ("hyperjob-view", ["team-a"]),
    "eve": ("hyperjob-edit", ["team-a"]),
    "bob": (None, []),
    "root": ("cluster-admin", []),
}


@dataclass
class Site:
    """A page, the API server behind it, and the tokens of its visitors."""

    base: str
    kube: Kube
    world: LiveState
    audit: Audit
    tokens: dict[str, str]
    session: aiohttp.ClientSession

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    async def get(self, name: str, path: str) -> tuple[int, str]:
        async with self.session.get(self.base + path, headers=self.headers(name)) as answer:
            return answer.status, await answer.text()

    async def post(self, name: str, path: str, **form: str) -> tuple[int, str]:
        _, shown = await self.get(name, path)
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', shown)
        data = {"csrf": found[1] if found else "", **form}
        async with self.session.post(
            self.base + path, data=data, headers=self.headers(name), allow_redirects=False
        ) as answer:
            return answer.status, await answer.text()

    async def put(self, obj: Object) -> None:
        """Create a HyperJob with its status."""
        await put(self.kube, obj)

    async def until(self, name: str, path: str, words: str) -> str:
        async with asyncio.timeout(LIMIT):
            while words not in (text := (await self.get(name, path))[1]):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return text


async def put(kube: Kube, obj: Object) -> None:
    """Create a HyperJob with its status."""
    status = obj["status"]
    await kube.create(HYPERJOBS, obj)
    metadata = obj["metadata"]
    made = await kube.get(HYPERJOBS, metadata["name"], namespace=metadata["namespace"])
    await kube.replace(HYPERJOBS, {**made, "status": status}, subresource="status")


async def give_rights(kube: Kube) -> AsyncIterator[tuple[str, str]]:
    """Create what `hyperjob install` creates, and people with Roles; yield their tokens."""
    for item in rbac(Settings(service_accounts=True, parts=frozenset({PAGE})), namespace=LEASES):
        await kube.apply(item.resource, item.object, field_manager="test")
    for namespace in ("team-a", "team-b"):
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    for name, (role, namespaces) in VISITORS.items():
        yield name, await visitor(kube, "team-a", name, role, namespaces=namespaces)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Site]:
    audit = Audit()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(rbac=True, audit=audit))
        path = server.kubeconfig(folder / "admin")
        kube = await stack.enter_async_context(Kube.connect(kubeconfig=path))
        for file in (*crd_files(), cluster_bindings(folder)):
            await kube.apply(CRDS, yaml.safe_load(file.read_text()), field_manager="test")
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    await asyncio.gather(*(kube.list(one) for one in (HYPERJOBS, CLUSTERS, QUEUES)))
                    break
                except Exception:  # noqa: BLE001 - not served yet
                    await asyncio.sleep(0.05)
        tokens = {name: token async for name, token in give_rights(kube)}
        await put(kube, hyperjob("mine", namespace="team-a"))
        own_path = with_token(path, await token_of(kube, LEASES, UI), folder / "ui")
        world, address = await stack.enter_async_context(served_to_visitors(own_path))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        site = Site(address, kube, world, audit, tokens, session)
        await kube.create(CLUSTERS, {**cluster("elsewhere"), "spec": {"syncMode": "Push"}})
        await kube.create(QUEUES, queue("undisclosed-queue"))
        await site.put(
            hyperjob("classified", "Failed", namespace="team-b", message="undisclosed words")
        )
        async with asyncio.timeout(LIMIT):
            await world.synced()
        await site.until("root", "/hyperjobs", "classified")
        await site.until("ann", "/hyperjobs", "mine")
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with opened(tmp_path_factory.mktemp("ui")) as served:
        yield served


def plain(html: str) -> str:
    """Leave out what differs from one moment to the next."""
    return re.sub(r"<time[^>]*>[^<]*</time>|data-mark=\"\w+\"|data-marks=\"[^\"]*\"", "", html)


@pytest.mark.parametrize("path", PAGES)
async def test_nothing_of_another_namespace_is_seen_and_no_count_of_it(
    site: Site, path: str
) -> None:
    status, before = await site.get("ann", path)
    assert status == 200
    for word in ("team-b", "classified", "undisclosed", "elsewhere"):
        assert word not in before, word
    name = f"more{PAGES.index(path)}"
    await site.put(hyperjob(name, "Failed", namespace="team-b", message="undisclosed"))
    await site.put(hyperjob(f"{name}-q", "Queued", namespace="team-b", clusters=("",)))
    await site.until("root", "/hyperjobs", f"{name}-q")
    assert plain((await site.get("ann", path))[1]) == plain(before)


@pytest.mark.parametrize("part", ["", "/why", "/events", "/logs", "/yaml", "/plan", "/suspend"])
async def test_a_hyperjob_of_another_namespace_is_not_there(site: Site, part: str) -> None:
    for name in ("ann", "bob"):
        status, text = await site.get(name, SECRET + part)
        assert status == 404
        assert "undisclosed" not in text


async def test_who_may_list_nothing_sees_nothing(site: Site) -> None:
    for path in PAGES:
        status, text = await site.get("bob", path)
        assert status == 200
        assert not re.search("mine|classified|team-a/|team-b", text), path


async def test_an_action_is_the_visitors_own(site: Site) -> None:
    path = "/hyperjobs/team-a/mine/suspend"
    status, _ = await site.post("ann", path)
    assert status in (403, 404)
    found = await site.kube.get(HYPERJOBS, "mine", namespace="team-a")
    assert found["spec"].get("suspend", False) is False
    status, _ = await site.post("eve", path)
    assert status in (200, 303)
    found = await site.kube.get(HYPERJOBS, "mine", namespace="team-a")
    assert found["spec"]["suspend"] is True
    patched = {
        user
        for user, actions in site.audit.done.items()
        for action in actions
        if action.verb == "patch" and action.resource == "hyperjobs" and action.name == "mine"
    }
    assert patched == {"system:serviceaccount:team-a:eve"}


async def test_a_request_that_is_too_large_is_refused(site: Site) -> None:
    async with site.session.post(
        f"{site.base}/hyperjobs/team-a/mine/suspend",
        data=b"csrf=" + b"a" * 200_000,
        headers={
            **site.headers("eve"),
            "Content-Type": "application/x-www-form-urlencoded",
        },
    ) as answer:
        assert answer.status == 413
    long = {**site.headers("ann"), "X-Long": "a" * 100_000}
    async with site.session.get(f"{site.base}/", headers=long) as answer:
        assert answer.status == 400


async def test_the_account_of_the_page_has_the_rights_that_it_uses_and_no_other(site: Site) -> None:
    await site.get("root", "/")
    given = {
        (verb, group, resource)
        for rule in [*ui_rules(), *ui_lease_rules()]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    used = {
        (action.verb, action.group, action.resource)
        for action in site.audit.done[UI_USER]
        if action.resource
    }
    assert used == given
    assert [action for user, action in site.audit.refused if user == UI_USER] == []
    names = {a.name for a in site.audit.done[UI_USER] if a.resource == "leases"}
    assert names <= {"hyperjob-controller", ""}
