"""The chart's whole life by real Helm, on API servers that let nobody do more than Roles say.

Every process runs as its pod would: with the Secrets, the account and the arguments that the chart
gives it. A right that is missing ends in a refusal, one that nobody used is found at the end.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    PODS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    VCJOBS,
    Resource,
)
from hyperjob_install.rbac import UI
from hyperjob_install.settings import account_user
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME
from hyperjob_sandbox.apiserver.transport.authorization import Action
from tests.support.charted import Audit, World, deployment, world
from tests.support.controller import clusters, eventually
from tests.support.helm import MAJORS, NAMESPACE, RELEASE, one, unpack
from tests.support.hyperjobs import hyperjob, job_template
from tests.support.processes import free_port
from tests.support.roles import visitor

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(400)]

Object = dict[str, Any]
SETUP = account_user(NAMESPACE, f"{RELEASE}-setup")
RENEWAL = account_user(NAMESPACE, f"{RELEASE}-renewal")
CONTROLLER = account_user(NAMESPACE, "hyperjob-controller")
CERTS = account_user(NAMESPACE, "hyperjob-certs")
WEBHOOK = account_user(NAMESPACE, "hyperjob-webhook")
UI_USER = account_user(NAMESPACE, UI)
OWN_SECRETS = {
    f"{RELEASE}-{name}"
    for name in ("webhook-tls", "controller-karmada", "webhook-karmada", "certs-karmada")
}


@pytest.fixture(scope="session", params=MAJORS)
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(request.param, tmp_path_factory.mktemp("helm"))


# What Helm of both majors does alike is looked at once.
newest = pytest.mark.parametrize("helm", MAJORS[-1:], indirect=True)


@pytest.fixture
async def here(helm: Path, tmp_path: Path) -> AsyncIterator[World]:
    async with world(helm, tmp_path) as found:
        yield found


def needing(name: str) -> Object:
    """Return a HyperJob whose objects are absent: the webhook asks for each, admission warns."""
    volumes = [
        {"name": "settings", "configMap": {"name": "absent"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "absent"}},
    ]
    pod = {"serviceAccountName": "absent", "volumes": volumes}
    return hyperjob(name, job_template(pod=pod), replicas=2)


async def running(stack: AsyncExitStack, here: World) -> None:
    """Run a pod of each Deployment."""
    port = urlsplit(here.values["webhook"]["url"]).port
    flags = {
        "webhook": ("--bind-address=127.0.0.1", f"--secure-port={port}", "--shutdown-delay=0"),
        "controller": (),
    }
    for name, more in flags.items():
        deployed = await here.host_kube.get(DEPLOYMENTS, f"{RELEASE}-{name}", namespace=NAMESPACE)
        await stack.enter_async_context(deployment(here, deployed, *more))


async def jobs_of(kube: Kube) -> int:
    return len((await kube.list(VCJOBS, namespace="default")).items)


async def train(here: World, name: str) -> None:
    """Send a HyperJob through webhook and controller, and delete it with all its children."""
    kube = here.karmada_kube
    stored = await kube.create(HYPERJOBS, needing(name))
    assert stored["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["name"], "not named"

    async def split() -> bool:
        return await jobs_of(kube) == 2

    async def gone() -> bool:
        return await jobs_of(kube) == 0

    await eventually(split, what="two jobs")
    await kube.delete(HYPERJOBS, name, namespace="default")
    await eventually(gone, what="no jobs")


async def look(here: World) -> None:
    """Open the web page as its pod serves it: with a visitor's token, and without."""
    kube = here.karmada_kube
    await kube.create(HYPERJOBS, needing("shown"))
    token = await visitor(kube, "default", "visitor", "hyperjob-view")
    deployed = await here.host_kube.get(DEPLOYMENTS, f"{RELEASE}-ui", namespace=NAMESPACE)
    spec = deployed["spec"]["template"]["spec"]
    port, log = free_port(), here.directory / "ui.log"
    root = await here.kubelet.root(spec)
    listen = f"--listen=127.0.0.1:{port}"
    process = await here.kubelet.start(root, spec, spec["containers"][0], listen, log=log)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def ready() -> bool:
                assert process.returncode is None, log.read_text()
                with contextlib.suppress(aiohttp.ClientConnectionError):
                    return (await session.get("/healthz")).status == 200
                return False

            await eventually(ready, what="the web page")
            headers = {"Host": f"{RELEASE}-ui", "Authorization": f"Bearer {token}"}

            async def shown() -> bool:
                async with session.get("/hyperjobs", headers=headers) as answer:
                    assert answer.status == 200, log.read_text()
                    return "/hyperjobs/default/shown" in await answer.text()

            await eventually(shown, what="the HyperJob in the page")
            async with session.get("/hyperjobs", headers={"Host": f"{RELEASE}-ui"}) as answer:
                assert answer.status == 401
            async with session.get("/", headers={**headers, "Host": "elsewhere"}) as answer:
                assert answer.status == 403
    finally:
        process.terminate()
        await process.wait()
    assert process.returncode == 0, log.read_text()
    await kube.delete(HYPERJOBS, "shown", namespace="default")
    await eventually(lambda: _gone(kube), what="no HyperJob")
    await eventually(lambda: _none(kube), what="no jobs")
    await kube.delete(CLUSTER_ROLE_BINDINGS, "visitor")
    await kube.delete(SERVICE_ACCOUNTS, "visitor", namespace="default")


async def spoil_bundles(kube: Kube) -> None:
    """Let the API server trust nobody."""
    for resource, name in (
        (MUTATING_WEBHOOKS, MUTATING_NAME),
        (VALIDATING_WEBHOOKS, VALIDATING_NAME),
    ):
        live = await kube.get(resource, name)
        operations = [
            {"op": "replace", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": "eA=="}
            for index in range(len(live["webhooks"]))
        ]
        await kube.patch(resource, name, operations, kind=PatchType.JSON)


async def lose_certificate(kube: Kube) -> None:
    """Take the serving certificate away, so that one is due."""
    lost = {"data": {"tls.crt": ""}}
    name = f"{RELEASE}-webhook-tls"
    await kube.patch(SECRETS, name, lost, kind=PatchType.MERGE, namespace=NAMESPACE)


async def tokens(here: World) -> dict[str, bytes]:
    """Read the tokens that are kept in the host cluster."""
    found = {}
    for name in ("controller-karmada", "webhook-karmada", "certs-karmada"):
        secret = await here.host_kube.get(SECRETS, f"{RELEASE}-{name}", namespace=NAMESPACE)
        found[name] = base64.b64decode(secret["data"]["token"])
    return found


def granted(rules: Iterable[Object]) -> set[tuple[str, str, str]]:
    """List what rules give: verb, resource with subresource, and the name where one is told."""
    return {
        (verb, resource, name)
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def used(audit: Audit, user: str, given: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """List which of those a user has used."""
    return {
        (action.verb, resource, name)
        for action in audit.done[user]
        for resource in (_plural(action),)
        for name in ("", action.name)
        if (action.verb, resource, name) in given
    }


def _plural(action: Action) -> str:
    return f"{action.resource}/{action.subresource}" if action.subresource else action.resource


async def test_a_release_lives_and_leaves_nothing_behind(here: World) -> None:
    before = here.contents()
    await here.release("install")
    assert here.kubelet.order == ["hyperjob-prepare", "hyperjob-register"]
    setup_rules = await hook_rules(here)

    first = await tokens(here)
    async with clusters(here.karmada_kube, one=100), AsyncExitStack() as stack:
        await running(stack, here)
        await train(here, "before")
        await spoil_bundles(here.karmada_kube)
        await lose_certificate(here.host_kube)
        await here.renew()
        second = await tokens(here)
        assert all(second[name] != token for name, token in first.items())
        await train(here, "after-renewal")

        names = {"extraNames": ["hooks.example"]}
        await here.release("upgrade", certificates=names)
        assert here.kubelet.order[2:] == ["hyperjob-prepare", "hyperjob-register"]
        assert "hooks.example" in here.kubelet.output["hyperjob-register/certificates"]
        await here.renew()
        await train(here, "after-upgrade")
        await here.run_helm("rollback", RELEASE, "1")
        await train(here, "after-rollback")

        await here.run_helm("test", RELEASE, "--logs")
        assert "ok        webhook-answers" in here.kubelet.output["hyperjob-preflight/preflight"]

        renewal_rules = (
            await here.host_kube.get(ROLES, f"{RELEASE}-renewal", namespace=NAMESPACE)
        )["rules"]
        certs_rules = [
            *(await here.karmada_kube.get(CLUSTER_ROLES, "hyperjob-certs"))["rules"],
            *(await here.karmada_kube.get(ROLES, "hyperjob-certs", namespace=NAMESPACE))["rules"],
        ]
        webhook_rules = (await here.karmada_kube.get(CLUSTER_ROLES, "hyperjob-webhook"))["rules"]

        # While there are HyperJobs, nothing goes.
        await here.release("upgrade", setup={"uninstall": {"deleteCRDs": True}})
        await here.karmada_kube.create(HYPERJOBS, needing("held"))
        await here.run_helm("uninstall", RELEASE, check=False)
        assert "1 HyperJob exists: default/held" in here.kubelet.output["hyperjob-remove/uninstall"]
        await here.karmada_kube.get(MUTATING_WEBHOOKS, MUTATING_NAME)
        await here.karmada_kube.delete(HYPERJOBS, "held", namespace="default")
        await eventually(lambda: _none(here.karmada_kube), what="no jobs")
        refusals = list(here.on_host.refused + here.on_karmada.refused)
        await here.run_helm("uninstall", RELEASE)
    # Helm keeps the pod of a test for its log.
    await here.host_kube.delete(PODS, f"{RELEASE}-preflight", namespace=NAMESPACE)
    assert here.contents() == before
    assert refusals == []

    for audit, user, rules in (
        (here.on_host, SETUP, setup_rules),
        (here.on_host, RENEWAL, renewal_rules),
        (here.on_karmada, CERTS, certs_rules),
        (here.on_karmada, WEBHOOK, webhook_rules),
    ):
        given = granted(rules)
        assert given, user
        assert given - used(audit, user, given) == set(), user
    assert here.on_karmada.done[CONTROLLER], "the controller used its own account"


async def _gone(kube: Kube) -> bool:
    return not (await kube.list(HYPERJOBS)).items


async def _none(kube: Kube) -> bool:
    return await jobs_of(kube) == 0


async def hook_rules(here: World) -> list[Object]:
    """Read the rules of the hooks' role, which itself is gone by now."""
    with pytest.raises(NotFound):
        await here.host_kube.get(ROLES, f"{RELEASE}-setup", namespace=NAMESPACE)
    hooks = yaml.safe_load_all(await here.run_helm("get", "hooks", RELEASE))
    return list(one([hook for hook in hooks if hook], "Role", "-setup")["rules"])


@newest
async def test_definitions_and_hyperjobs_outlive_a_release_unless_told_otherwise(
    here: World,
) -> None:
    before = here.contents()
    await here.release("install", ui={"enabled": True})
    async with AsyncExitStack() as stack:
        await running(stack, here)
        await look(here)
    given = granted((await here.karmada_kube.get(CLUSTER_ROLES, UI))["rules"])
    assert given - used(here.on_karmada, UI_USER, given) == set()
    assert [refused for refused in here.on_karmada.refused if refused[0] == UI_USER] == []
    await here.run_helm("uninstall", RELEASE)
    left = {
        server: {key[1:] for key in now - before[server]} for server, now in here.contents().items()
    }
    assert left["host"] == set()
    assert {key[0] for key in left["karmada"]} == {"customresourcedefinitions", "queues"}
    assert len(left["karmada"]) == 5, "the queue default stays for jobs of others"


@newest
async def test_a_webhook_that_no_pod_answers_is_not_registered(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_pod(_: World) -> None: ...

    monkeypatch.setattr(World, "_run_webhook", no_pod)
    await here.release("install", check=False)
    said = here.kubelet.output["hyperjob-register/install"]
    assert "the API server does not reach the webhook at https://127.0.0.1:" in said
    for resource, name in (
        (MUTATING_WEBHOOKS, MUTATING_NAME),
        (VALIDATING_WEBHOOKS, VALIDATING_NAME),
    ):
        with pytest.raises(NotFound):
            await here.karmada_kube.get(resource, name)
    await here.karmada_kube.create(HYPERJOBS, needing("not-refused"))


@newest
async def test_deletion_without_a_pre_delete_hook_leaves_no_webhook_that_nobody_answers(
    here: World,
) -> None:
    await here.release("install")
    async with AsyncExitStack() as stack:
        await running(stack, here)
        await here.karmada_kube.create(HYPERJOBS, needing("kept"))
    hooks = yaml.safe_load_all(await here.run_helm("get", "hooks", RELEASE))
    # Argo CD before 3.3: first it deletes the objects, then it runs the post-delete hooks.
    for each in filter(None, yaml.safe_load_all(await here.run_helm("get", "manifest", RELEASE))):
        name = each["metadata"]["name"]
        await here.host_kube.delete(resource_of(each), name, namespace=NAMESPACE)
    await here.karmada_kube.get(MUTATING_WEBHOOKS, MUTATING_NAME)
    last = [hook for hook in filter(None, hooks) if "post-delete" in note(hook, "").split(",")]
    for each in sorted(last, key=lambda hook: int(note(hook, "-weight"))):
        await here.host_kube.create(resource_of(each), each)

    async def ended() -> bool:
        return "hyperjob-remove-rest/credentials" in here.kubelet.output

    await eventually(ended, what="the end of the Job")
    assert await _unregistered(here.karmada_kube)
    left = {secret["metadata"]["name"] for secret in (await here.host_kube.list(SECRETS)).items}
    assert not left & OWN_SECRETS
    await here.karmada_kube.get(HYPERJOBS, "kept", namespace="default")
    await here.karmada_kube.create(HYPERJOBS, needing("not-refused"))


def note(hook: Object, suffix: str) -> str:
    return str(hook["metadata"]["annotations"][f"helm.sh/hook{suffix}"])


def resource_of(document: Object) -> Resource:
    """Give the resource of an object in a namespace, whose plural is the usual one."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    plural = f"{kind.lower()}s".replace("ys", "ies")
    return Resource(group, version, plural, kind)


async def _unregistered(kube: Kube) -> bool:
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        if (await kube.list(resource)).items:
            return False
    return True


@newest
async def test_without_a_kubeconfig_of_karmada_the_installation_says_so(here: World) -> None:
    await here.host_kube.delete(SECRETS, "karmada-kubeconfig", namespace=NAMESPACE)
    before = here.contents()
    await here.release("install", check=False)
    said = here.kubelet.output["hyperjob-prepare/install"]
    assert "karmada-webhook-config.karmada.config: no such file" in said
    assert here.contents()["karmada"] == before["karmada"]
    secrets = {key for key in here.contents()["host"] - before["host"] if key[1] == "secrets"}
    assert {key[3].startswith("sh.helm.release") for key in secrets} == {True}

    # Mended, an upgrade goes on from there.
    text = here.karmada_config.read_text()
    secret = {"name": "karmada-kubeconfig", "namespace": NAMESPACE}
    await here.host_kube.create(SECRETS, {"metadata": secret, "stringData": {"kubeconfig": text}})
    await here.release("upgrade")
    await asyncio.gather(
        *(here.host_kube.get(SECRETS, n, namespace=NAMESPACE) for n in OWN_SECRETS)
    )


@newest
async def test_another_way_of_installing_karmada_is_found(here: World) -> None:
    secret = await here.host_kube.get(SECRETS, "karmada-kubeconfig", namespace=NAMESPACE)
    await here.host_kube.delete(SECRETS, "karmada-kubeconfig", namespace=NAMESPACE)
    await here.host_kube.create(
        SECRETS,
        {
            "metadata": {"name": "karmada-webhook-config", "namespace": NAMESPACE},
            "data": {"karmada.config": secret["data"]["kubeconfig"]},
        },
    )
    await here.release("install")
    await asyncio.gather(
        *(here.host_kube.get(SECRETS, n, namespace=NAMESPACE) for n in OWN_SECRETS)
    )
