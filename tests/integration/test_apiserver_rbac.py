"""An API server on which Roles decide, asked by kubectl and by bare requests."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, Unauthorized
from hyperjob_core.kube.resources import NAMESPACES, SECRETS
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.authorization import Action
from tests.support.controlplane import KUBECTL

pytestmark = pytest.mark.scenario

Object = dict[str, Any]
REFUSED = 'User "ann" cannot {} resource "{}" in API group "{}" {}'
HERE = 'in the namespace "default"'


class Server:
    """An authorizing server and kubectl as an administrator or as ann."""

    def __init__(
        self, api: ApiServer, directory: Path, heard: list[tuple[User, Action, bool]]
    ) -> None:
        self.api = api
        self.heard = heard
        self._directory = directory
        self.admin = api.kubeconfig(directory / "admin")
        self.ann = api.kubeconfig(directory / "ann", user="ann", groups=("dev",))

    async def kubectl(self, config: Path, *words: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(KUBECTL, f"--kubeconfig={config}", f"--cache-dir={self._directory}/cache", *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        return process.returncode or 0, (out + err).decode().strip()

    async def may(self, *words: str) -> bool:
        code, said = await self.kubectl(self.ann, "auth", "can-i", *words)
        assert ("no" if code else "yes") in said.splitlines(), said
        return code == 0

    async def allow(self, *documents: Object) -> None:
        code, said = await self.kubectl(
            self.admin, "apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(documents)
        )
        assert code == 0, said


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    heard: list[tuple[User, Action, bool]] = []
    async with ApiServer(rbac=True, audit=lambda *said: heard.append(said)) as api:
        yield Server(api, tmp_path, heard)


def role(name: str, *rules: Object, kind: str = "Role", **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": "default"} if kind == "Role" else {})}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {**metadata, **more.pop("metadata", {})},
        "rules": list(rules),
        **more,
    }


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Object:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": [group], **more}


def binding(of: Object, subject: Object, *, everywhere: bool = False) -> Object:
    kind = "ClusterRoleBinding" if everywhere else "RoleBinding"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": of["metadata"]["name"],
            **({} if everywhere else {"namespace": "default"}),
        },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": of["kind"],
            "name": of["metadata"]["name"],
        },
        "subjects": [subject],
    }


ANN = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}
DEV = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "dev"}


async def test_nobody_may_anything_but_look_around_until_a_role_says_so(server: Server) -> None:
    code, said = await server.kubectl(server.ann, "get", "secrets")
    assert code
    assert REFUSED.format("list", "secrets", "", HERE) in said
    assert not await server.may("list", "secrets")
    assert await server.may("get", "/version")
    assert await server.may("create", "selfsubjectaccessreviews.authorization.k8s.io")
    assert not await server.may("get", "/metrics")
    code, _ = await server.kubectl(server.admin, "get", "secrets", "-A")
    assert code == 0


async def test_roles_reach_as_far_as_their_binding(server: Server) -> None:
    reader = role("reader", rule("get list", "secrets pods/log"))
    everywhere = role("nodes", rule("list", "nodes"), kind="ClusterRole")
    named = role("named", rule("get", "configmaps", resourceNames=["a"]), kind="ClusterRole")
    await server.allow(
        *(reader, binding(reader, ANN), everywhere, binding(everywhere, DEV, everywhere=True)),
        *(named, binding(named, DEV)),
    )
    for words, allowed in (
        ("list secrets", True),
        ("get pods --subresource=log", True),
        ("get pods", False),
        ("delete secrets", False),
        ("list secrets -n kube-system", False),
        ("list secrets -A", False),
        ("list nodes", True),
        ("get configmap/a", True),
        ("get configmap/b", False),
        ("list configmaps", False),
    ):
        assert await server.may(*words.split()) is allowed, words
    # A collection that is narrowed to one name is asked for by that name.
    code, _ = await server.kubectl(
        server.ann, "get", "configmaps", "--field-selector=metadata.name=a"
    )
    assert code != 0, "the rule allows get alone"


async def test_an_apply_that_creates_needs_both_verbs(server: Server) -> None:
    patcher = role("patcher", rule("patch get", "configmaps"))
    await server.allow(patcher, binding(patcher, ANN))
    config = yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    )
    words = ("apply", "--server-side", "-n", "default", "-f", "-")
    code, said = await server.kubectl(server.ann, *words, stdin=config)
    assert code
    assert REFUSED.format("create", "configmaps", "", HERE) in said
    code, _ = await server.kubectl(server.admin, *words, stdin=config)
    assert code == 0
    code, said = await server.kubectl(server.ann, *words, "--force-conflicts", stdin=config)
    assert code == 0, said


async def test_a_service_accounts_token_lives_as_long_as_the_account(server: Server) -> None:
    _, said = await server.kubectl(server.admin, "create", "token", "robot", "-n", "default")
    assert 'serviceaccounts "robot" not found' in said
    reader = role("reader", rule("list", "secrets"))
    await server.allow(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "robot", "namespace": "default"},
        },
        reader,
        binding(reader, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}),
    )
    _, token = await server.kubectl(server.admin, "create", "token", "robot", "-n", "default")
    config = yaml.safe_load(server.admin.read_text())
    config["users"][0]["user"] = {"token": token}
    path = server.admin.with_name("robot")
    path.write_text(yaml.safe_dump(config))
    async with Kube.connect(kubeconfig=path) as robot:
        assert (await robot.list(SECRETS, namespace="default")).items == []
        with pytest.raises(Forbidden, match="system:serviceaccount:default:robot"):
            await robot.list(NAMESPACES)
        await server.kubectl(server.admin, "delete", "serviceaccount", "robot", "-n", "default")
        with pytest.raises(Unauthorized):
            await robot.list(SECRETS, namespace="default")


async def test_the_audit_hears_what_was_tried_and_not_what_was_asked(server: Server) -> None:
    async def listed() -> list[tuple[str, bool]]:
        return [(u.name, allowed) for u, act, allowed in server.heard if act.resource == "secrets"]

    await server.may("list", "secrets")
    assert await listed() == []
    await server.kubectl(server.ann, "get", "secrets", "-n", "default")
    await server.kubectl(server.admin, "get", "secrets", "-n", "default")
    assert await listed() == [("ann", False), ("kubernetes-admin", True)]
    said = [act for _, act, _ in server.heard if act.resource == "secrets"]
    assert set(said) == {Action("list", "", "secrets", namespace="default")}
