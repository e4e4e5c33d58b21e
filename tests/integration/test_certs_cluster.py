"""Certificates in a Secret and trust in the webhook configurations, on an API server."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from hyperjob_certs.__main__ import NothingToInject, inject, main
from hyperjob_certs.store import Bundle, RotationPolicy, SecretStore, advance, with_authority
from hyperjob_certs.x509 import facts, is_signed_by
from hyperjob_core.kube.errors import AlreadyExists, Conflict
from hyperjob_core.kube.resources import SECRETS
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME, configurations
from tests.support.webhooks import trusted_by

pytestmark = pytest.mark.scenario

POLICY = RotationPolicy(names=("hooks.example", "127.0.0.1"))


@pytest.fixture
def hooks(control_plane):
    """Have both configurations without a bundle; their rules select nothing meanwhile."""
    documents = configurations(url="https://127.0.0.1:1")
    for document in documents:
        document["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "hyperjob-install"}
        for hook in document["webhooks"]:
            hook["failurePolicy"] = "Ignore"
    control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(documents))
    yield
    control_plane.kubectl("delete", "mutatingwebhookconfiguration", MUTATING_NAME)
    control_plane.kubectl("delete", "validatingwebhookconfiguration", VALIDATING_NAME)


def fresh(now=None):
    return advance(Bundle(), policy=POLICY, now=now or datetime.now(UTC))[0]


async def test_a_bundle_comes_back_from_its_secret(kube, namespace):
    store = SecretStore(kube, namespace=namespace, name="tls")
    empty = await store.load()
    assert empty.bundle == Bundle()
    bundle = fresh()
    await store.save(bundle, over=empty)
    assert (await store.load()).bundle == bundle
    secret = await kube.get(SECRETS, "tls", namespace=namespace)
    assert secret["type"] == "kubernetes.io/tls"
    assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}


async def test_of_two_rotators_only_one_writes(kube, namespace):
    store = SecretStore(kube, namespace=namespace, name="tls")
    first, second = await store.load(), await store.load()
    await store.save(fresh(), over=first)
    with pytest.raises(AlreadyExists):
        await store.save(fresh(), over=second)
    first, second = await store.load(), await store.load()
    await store.save(fresh(), over=first)
    with pytest.raises(Conflict):
        await store.save(fresh(), over=second)


async def test_what_others_keep_in_the_secret_stays(kube, namespace):
    store = SecretStore(kube, namespace=namespace, name="tls")
    await kube.create(
        SECRETS,
        {
            **SECRETS.head,
            "metadata": {
                "name": "tls",
                "namespace": namespace,
                "labels": {"a": "b", "app.kubernetes.io/managed-by": "hyperjob-certs"},
            },
            "type": "Opaque",
            "data": {"other": "eA==", "tls.crt": "bm90aGluZw=="},
        },
    )
    stored = await store.load()
    bundle, steps = advance(stored.bundle, policy=POLICY, now=datetime.now(UTC))
    assert len(steps) == 2, "what cannot be read is made anew"
    await store.save(bundle, over=stored)
    secret = await kube.get(SECRETS, "tls", namespace=namespace)
    assert secret["data"]["other"] == "eA=="
    assert secret["metadata"]["labels"]["a"] == "b"


async def test_injecting_twice_writes_once(kube, control_plane, hooks):
    before = control_plane.writes()
    assert await inject(kube, ca_bundle=b"one") == [MUTATING_NAME, VALIDATING_NAME]
    assert await trusted_by(kube) == {b"one"}
    assert await inject(kube, ca_bundle=b"one") == []
    written = control_plane.writes() - before
    assert sum(number for key, number in written.items() if "webhook" in key[1]) == 2
    assert await inject(kube, ca_bundle=b"two") == [MUTATING_NAME, VALIDATING_NAME]
    assert await trusted_by(kube) == {b"two"}


async def test_injecting_without_configurations_says_what_to_do(kube):
    with pytest.raises(NothingToInject, match="apply the configurations first"):
        await inject(kube, ca_bundle=b"x")


def read(control_plane, namespace):
    text = control_plane.kubectl("get", "secret", "tls", "-n", namespace, "-o", "json").stdout
    return {key: base64.b64decode(value) for key, value in json.loads(text)["data"].items()}


def test_the_command_issues_rotates_and_injects(control_plane, namespace, hooks, capsys):
    place = [f"--secret={namespace}/tls", f"--kubeconfig={control_plane.kubeconfig}"]
    names = ["--name=hooks.example", "--name=127.0.0.1"]
    assert main(["issue", *place, *names, "--inject"]) == 0
    issued = read(control_plane, namespace)
    assert facts(issued["tls.crt"]).names == {"hooks.example", "127.0.0.1"}
    text = control_plane.kubectl(
        "get", "mutatingwebhookconfiguration", MUTATING_NAME, "-o", "json"
    ).stdout
    hook = json.loads(text)["webhooks"][0]
    assert base64.b64decode(hook["clientConfig"]["caBundle"]) == issued["ca.crt"]

    assert main(["issue", *place, *names, "--inject"]) == 0
    assert main(["rotate", *place, *names, "--inject"]) == 0
    assert read(control_plane, namespace) == issued, "nothing was due"
    assert main(["rotate", *place, "--name=other.example"]) == 0
    renamed = read(control_plane, namespace)
    assert facts(renamed["tls.crt"]).names == {"other.example"}
    assert is_signed_by(renamed["tls.crt"], issued["ca.crt"])
    assert main(["inject", *place]) == 0
    said = capsys.readouterr()
    assert "nothing is due" in said.out
    assert "reissue-leaf: the names to serve have changed" in said.out
    assert "caBundle is up to date" in said.out
    assert "PRIVATE KEY" not in said.out + said.err


def test_the_context_chooses_the_api_server_of_the_webhooks(control_plane, hooks, tmp_path):
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    (context,) = config["contexts"]
    away = {"name": "away", "context": {**context["context"], "user": "nobody"}}
    config = {**config, "contexts": [context, away], "current-context": "away"}
    (tmp_path / "both").write_text(yaml.safe_dump(config))
    authority = fresh(datetime.now(UTC)).ca.certificate
    (tmp_path / "ca.crt").write_bytes(authority)
    place = [f"--kubeconfig={tmp_path / 'both'}", f"--ca-file={tmp_path / 'ca.crt'}"]
    assert main(["inject", *place]) != 0
    assert main(["inject", *place, f"--karmada-context={context['name']}"]) == 0
    text = control_plane.kubectl(
        "get", "mutatingwebhookconfiguration", MUTATING_NAME, "-o", "json"
    ).stdout
    hook = json.loads(text)["webhooks"][0]
    assert base64.b64decode(hook["clientConfig"]["caBundle"]) == authority


async def test_a_staged_authority_is_injected_before_it_signs(
    kube, control_plane, namespace, hooks, capsys
):
    """The run that staged it died before it told the API server; the next one tells it first."""
    store = SecretStore(kube, namespace=namespace, name="tls")
    then = datetime.now(UTC) - timedelta(hours=2)
    old = fresh(then)
    staged = with_authority(old, policy=POLICY, now=then)
    await store.save(staged, over=await store.load())
    assert await trusted_by(kube) == {b""}
    arguments = [
        *("rotate", f"--secret={namespace}/tls", f"--kubeconfig={control_plane.kubeconfig}"),
        *("--name=hooks.example", "--name=127.0.0.1", "--inject"),
    ]
    assert await asyncio.to_thread(main, arguments) == 0
    now = (await store.load()).bundle
    assert is_signed_by(now.serving.certificate, staged.ca.certificate)
    (injected,) = await trusted_by(kube)
    assert old.ca.certificate in injected
    assert staged.ca.certificate in injected
    lines = capsys.readouterr().out.splitlines()
    order = [line.partition(":")[0] for line in lines]
    assert order.index("caBundle set in hyperjob-mutating, hyperjob-validating") < order.index(
        "reissue-leaf"
    )
    assert replace(now, serving=None) == replace(staged, serving=None)


def test_a_cluster_that_cannot_be_reached_is_one_line(tmp_path, capsys):
    place = ["--secret=a/b", f"--kubeconfig={tmp_path / 'none'}"]
    assert main(["rotate", *place, "--name=x"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert str(tmp_path / "none") in line
