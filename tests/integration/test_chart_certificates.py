"""Certificates that others make: by cert-manager, or given; served, trusted by Karmada, rotated."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from hyperjob_core.kube.client import EventType, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CRDS,
    DEPLOYMENTS,
    HYPERJOBS,
    SECRETS,
    Resource,
)
from tests.support.charted import World, deployment, world
from tests.support.controller import eventually
from tests.support.helm import MAJORS, NAMESPACE, RELEASE, unpack
from tests.support.webhooks import trusted_by

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(400)]

Object = dict[str, Any]
GROUP = "cert-manager.io"
CERTIFICATES = Resource(GROUP, "v1", "certificates", "Certificate")
ISSUERS = Resource(GROUP, "v1", "issuers", "Issuer")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(unpack(MAJORS[-1], tmp_path), tmp_path) as found:
        yield found


def definition(resource: Resource) -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "metadata": {"name": resource.group_resource},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [version | {"schema": {"openAPIV3Schema": anything}}],
        },
    }


class CertManager:
    """Makes the Secrets of Certificates as cert-manager does, of authorities of its own."""

    def __init__(self, here: World) -> None:
        self._here = here
        self.authorities: dict[str, trustme.CA] = {}

    async def follow(self) -> None:
        """Issue what is asked for, until cancelled."""
        kube = self._here.host_kube
        version = (await kube.list(CERTIFICATES, namespace=NAMESPACE)).resource_version
        events = kube.watch(CERTIFICATES, namespace=NAMESPACE, resource_version=version)
        # Side by side: one may be signed by an authority that is asked for after it.
        async with asyncio.TaskGroup() as tasks, aclosing(events) as found:
            async for event in found:
                if event.type is EventType.ADDED:
                    tasks.create_task(self.issue(event.object))

    async def issue(self, certificate: Object) -> None:
        """Make a certificate, and write it into its Secret."""
        spec = certificate["spec"]
        if spec.get("isCA"):
            self.authorities[spec["secretName"]] = trustme.CA()
            return
        authority = await self._authority(spec["issuerRef"]["name"])
        names = [*spec.get("dnsNames", ()), *spec.get("ipAddresses", ())]
        await keep(self._here, spec["secretName"], authority, names)

    async def _authority(self, issuer: str) -> trustme.CA:
        """Wait for an Issuer and its authority, which may come after the Certificate."""
        found: list[trustme.CA] = []

        async def there() -> bool:
            with contextlib.suppress(NotFound, KeyError):
                live = await self._here.host_kube.get(ISSUERS, issuer, namespace=NAMESPACE)
                found.append(self.authorities[live["spec"]["ca"]["secretName"]])
            return bool(found)

        await eventually(there, what=f"Issuer {issuer}")
        return found[0]


async def keep(here: World, secret: str, authority: trustme.CA, names: list[str]) -> None:
    """Write a fresh certificate into a Secret."""
    leaf = authority.issue_cert(*names)
    data = {
        "tls.crt": b"".join(pem.bytes() for pem in leaf.cert_chain_pems),
        "tls.key": leaf.private_key_pem.bytes(),
        "ca.crt": authority.cert_pem.bytes(),
    }
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    try:
        await here.host_kube.patch(
            SECRETS, secret, {"data": encoded}, kind=PatchType.MERGE, namespace=NAMESPACE
        )
    except NotFound:
        metadata = {"name": secret, "namespace": NAMESPACE}
        made = {"metadata": metadata, "type": "kubernetes.io/tls", "data": encoded}
        await here.host_kube.create(SECRETS, made)


@asynccontextmanager
async def cert_manager(here: World) -> AsyncIterator[CertManager]:
    for resource in (CERTIFICATES, ISSUERS):
        await here.host_kube.create(CRDS, definition(resource))
    found = CertManager(here)
    task = asyncio.create_task(found.follow())
    try:
        yield found
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Pod:
    """A running pod of the webhook."""

    def __init__(self, here: World, spec: Object, root: Path) -> None:
        self._here, self._spec, self._root = here, spec, root

    async def sees_the_secret(self) -> None:
        """Write the volumes again, and wait until the certificate there is served."""
        await self._here.kubelet.mount(self._root, self._spec)
        pem = (self._root / "volumes/tls/tls.crt").read_text().partition("-----END")[0]
        wanted = ssl.PEM_cert_to_DER_cert(f"{pem}-----END CERTIFICATE-----\n")

        async def is_served() -> bool:
            return await asyncio.to_thread(served, port_of(self._here)) == wanted

        await eventually(is_served, what="the new certificate")


def served(port: int) -> bytes:
    """Give the certificate that is served on a port."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))


def port_of(here: World) -> int:
    port = urlsplit(here.values["webhook"]["url"]).port
    assert port is not None
    return port


@asynccontextmanager
async def serving(here: World) -> AsyncIterator[Pod]:
    deployed = await here.host_kube.get(DEPLOYMENTS, f"{RELEASE}-webhook", namespace=NAMESPACE)
    flags = (
        "--bind-address=127.0.0.1",
        f"--secure-port={port_of(here)}",
        "--shutdown-delay=0",
    )
    async with deployment(here, deployed, *flags) as root:
        yield Pod(here, deployed["spec"]["template"]["spec"], root)


async def admit(here: World, name: str) -> None:
    """Send a HyperJob through the webhook."""
    pod = {"spec": {"containers": [{"name": "main", "image": "train:1"}]}}
    task = {"replicas": 1, "template": pod}
    group = {"name": "t", "replicas": 1, "templateSpec": {"tasks": [task]}}
    hyperjob = {
        **HYPERJOBS.head,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": [group]},
    }
    stored = await here.karmada_kube.create(HYPERJOBS, hyperjob)
    assert stored["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["name"], "not named"
    await here.karmada_kube.delete(HYPERJOBS, name, namespace="default")


async def test_what_cert_manager_makes_is_served_trusted_and_followed(here: World) -> None:
    async with cert_manager(here) as manager:
        before = here.contents()
        await here.release("install", certificates={"mode": "certManager"})
        name = f"{RELEASE}-webhook"
        first = manager.authorities[f"{name}-ca"]
        assert await trusted_by(here.karmada_kube) == {first.cert_pem.bytes()}
        certificate = await here.host_kube.get(CERTIFICATES, name, namespace=NAMESPACE)
        async with serving(here) as pod:
            await admit(here, "first")

            await manager.issue(certificate)
            await pod.sees_the_secret()
            await admit(here, "with-another-certificate")

            manager.authorities[f"{name}-ca"] = second = trustme.CA()
            await manager.issue(certificate)
            await pod.sees_the_secret()
            await here.renew()
            assert await trusted_by(here.karmada_kube) == {second.cert_pem.bytes()}
            await admit(here, "of-an-authority-that-is-known")
        await here.run_helm("uninstall", RELEASE)
        left = {key[1:] for key in here.contents()["host"] - before["host"]}
        # cert-manager keeps what it made, unless it is told otherwise.
        assert left == {("secrets", NAMESPACE, f"{name}-tls")}
    assert here.on_host.refused + here.on_karmada.refused == []


async def test_a_certificate_that_was_given_is_served_and_followed(here: World) -> None:
    first, second = trustme.CA(), trustme.CA()
    await keep(here, "mine", first, ["127.0.0.1"])
    await here.release("install", certificates={"mode": "secret", "secretName": "mine"})
    assert await trusted_by(here.karmada_kube) == {first.cert_pem.bytes()}
    async with serving(here) as pod:
        await admit(here, "first")
        await keep(here, "mine", second, ["127.0.0.1"])
        await pod.sees_the_secret()
        await here.renew()
        await admit(here, "second")
    await here.run_helm("uninstall", RELEASE)
    await here.host_kube.get(SECRETS, "mine", namespace=NAMESPACE)
    assert here.on_host.refused + here.on_karmada.refused == []
