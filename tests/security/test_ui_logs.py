"""The logs of members in the web page of a cluster: with the visitor's rights, and no other."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CLUSTER_ROLES
from tests.support.cliworld import NAMESPACE, CliWorld, open_world
from tests.support.roles import visitor, with_token
from tests.support.uivisitors import served_to_visitors
from tests.support.uiworld import Ui

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]

LOGS = f"/hyperjobs/{NAMESPACE}/llm/logs"
POD = "east/llm-trainer-0-worker-0"
OWN = "page"
READER = {
    "apiGroups": ["training.volcano.sh"],
    "resources": ["hyperjobs"],
    "verbs": ["get", "list"],
}
PROXY = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["get"]}
REVIEWS = {
    "apiGroups": ["authentication.k8s.io", "authorization.k8s.io"],
    "resources": ["tokenreviews", "subjectaccessreviews"],
    "verbs": ["create"],
}
LISTS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
RULES: dict[str, list[dict[str, Any]]] = {
    OWN: [REVIEWS, LISTS],
    "with-rights": [{**READER, "verbs": ["get", "list", "watch"]}, PROXY],
    "without-rights": [{**READER, "verbs": ["get", "list", "watch"]}],
}


async def account(kube: Kube, name: str) -> str:
    """Make a service account with a role of its own, and give a token of it."""
    await kube.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": RULES[name]})
    return await visitor(kube, NAMESPACE, name, name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CliWorld]:
    async with AsyncExitStack() as stack:
        yield await open_world(stack, tmp_path_factory.mktemp("logs"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def visitors(
    world: CliWorld, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Ui]]:
    """Serve the page with an account of its own, to a visitor with each set of rights."""
    async with AsyncExitStack() as stack:
        folder: Path = tmp_path_factory.mktemp("own")
        own_path = with_token(
            world.kubeconfig, await account(world.kube, OWN), folder / "kubeconfig"
        )
        shown, address = await stack.enter_async_context(served_to_visitors(own_path))
        await shown.synced()
        found = {}
        for name in ("with-rights", "without-rights"):
            token = await account(world.kube, name)
            session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"})
            await stack.enter_async_context(session)
            found[name] = Ui(shown, address, session)
        yield found


def user(name: str) -> str:
    return f"system:serviceaccount:{NAMESPACE}:{name}"


def proxied(world: CliWorld) -> set[str]:
    return {who.name for who, action in world.heard if action.subresource == "proxy"}


async def test_a_visitor_with_rights_reads_logs(world: CliWorld, visitors: dict[str, Ui]) -> None:
    ui = visitors["with-rights"]
    world.heard.clear()
    page = await ui.get(LOGS)
    assert page.status == 200
    assert POD in page.text
    assert proxied(world) == {user("with-rights")}


async def test_a_visitor_without_rights_reads_no_line_of_a_log(
    world: CliWorld, visitors: dict[str, Ui]
) -> None:
    ui = visitors["without-rights"]
    world.heard.clear()
    page = await ui.get(LOGS)
    assert page.status == 200
    assert POD not in page.text
    assert "forbidden" in page.text
    assert user("without-rights") in page.text
    assert proxied(world) == {user("without-rights")}, "no other user asked for it"
