"""`hyperjob install | uninstall | preflight` against a whole API server, looked at by kubectl."""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner, Result

from hyperjob import __version__
from hyperjob.cli import main
from hyperjob_core.api.names import CONTROLLER_VERSION, LEASE_NAME
from tests.support.controlplane import ROOT, ControlPlane
from tests.support.embedded import volcano_file
from tests.support.envtest import kube_apiserver
from tests.support.processes import free_port, running, wait_for

Object = dict[str, Any]
KARMADA = sorted((ROOT / "sandbox/hyperjob_sandbox/crds").glob("*.karmada.io_*.yaml"))
VOLCANO = [volcano_file("jobs.batch.volcano.sh")]
KINDS = (
    *("customresourcedefinitions", "clusterroles", "clusterrolebindings", "roles"),
    *("rolebindings", "resourceinterpretercustomizations", "clusterpropagationpolicies"),
    *("mutatingwebhookconfigurations", "validatingwebhookconfigurations", "namespaces"),
    "configmaps",
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
)


@pytest.fixture(scope="module")
def karmada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server with Karmada's definitions and nothing else."""
    directory = tmp_path_factory.mktemp("karmada")
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    with ExitStack() as stack:
        if assets:
            kubeconfig = stack.enter_context(kube_apiserver(Path(assets), directory))
        else:
            kubeconfig, log = directory / "kubeconfig", directory / "apiserver.log"
            process = stack.enter_context(
                running([sys.executable, "-m", "tests.support.embedded", directory], log=log)
            )
            wait_for(kubeconfig.exists, what="embedded API server", process=process, log=log)
        plane = ControlPlane(kubeconfig, real=bool(assets))
        files = [word for path in KARMADA for word in ("-f", str(path))]
        plane.kubectl("apply", "--server-side", *files)
        plane.kubectl("wait", "--for=condition=Established", *files, "--timeout=30s")
        # A real server without controllers would never finish deleting it.
        plane.kubectl("create", "namespace", "karmada-system")
        yield plane


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


Run = Callable[..., Result]


@pytest.fixture
def run(karmada: ControlPlane, authority: trustme.CA, tmp_path: Path) -> Iterator[Run]:
    """Run a command of the installer; what it installed is taken away at the end."""
    ca_file = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(ca_file)
    address = ["--webhook-url", "https://127.0.0.1:1", "--ca-file", str(ca_file)]

    def invoke(command: str, *arguments: str, code: int = 0) -> Result:
        server = ["--kubeconfig", str(karmada.kubeconfig)]
        given = address if command == "install" and "--webhook-url" not in arguments else []
        if command == "install":
            given = [*given, "--allow", "unreachable-webhook"]
        result = CliRunner().invoke(main, [command, *server, *given, *arguments])
        assert result.exit_code == code, result.output
        return result

    yield invoke
    invoke("uninstall", "--force", "--delete-crds")


def ours(plane: ControlPlane) -> dict[str, str]:
    """Give the resourceVersions of all our objects by kind and name.

    A namespace that is deleted stays on its way out where nothing but an API server runs.
    """
    listed = plane.kubectl(
        *("get", ",".join(KINDS), "-A", "-l", "app.kubernetes.io/part-of=hyperjob", "-o", "json")
    )
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in json.loads(listed.stdout)["items"]
        if "deletionTimestamp" not in item["metadata"]
    }


def changes(result: Result) -> dict[str, str]:
    """Read what became of each object from JSON."""
    found = json.loads(result.stdout)
    return {f"{each['kind']}/{each['name']}": each["action"] for each in found["changes"]}


def test_a_dry_run_tells_everything_and_writes_nothing(karmada: ControlPlane, run: Run) -> None:
    told = changes(run("install", "--dry-run", "-o", "json"))
    assert set(told.values()) == {"created", "kept"}
    assert ours(karmada) == {}
    assert changes(run("install", "-o", "json")) == told


def test_uninstalling_leaves_nothing_of_ours(karmada: ControlPlane, run: Run) -> None:
    run("install")
    kept = run("uninstall")
    assert "customresourcedefinition" not in kept.stdout
    left = ours(karmada)
    assert {name.partition("/")[0] for name in left} == {"CustomResourceDefinition"}
    run("uninstall", "--delete-crds")
    assert ours(karmada) == {}
    assert "hyperjob" not in karmada.kubectl("get", ",".join(KINDS), "-A", "-o", "name").stdout
    assert "Nothing to delete" in run("uninstall", "--delete-crds").stdout


def test_volcanos_own_definitions_are_left_alone(karmada: ControlPlane, run: Run) -> None:
    files = [word for path in VOLCANO for word in ("-f", str(path))]
    karmada.kubectl("apply", "--server-side", *files)
    try:
        told = changes(run("install", "-o", "json"))
        assert told["CustomResourceDefinition/jobs.batch.volcano.sh"] == "kept"
        assert told["CustomResourceDefinition/queues.scheduling.volcano.sh"] == "created"
        gone = run("uninstall", "--delete-crds")
        kept = [line for line in gone.stdout.splitlines() if line.startswith("kept")]
        assert any("jobs.batch.volcano.sh" in line for line in kept)
        karmada.kubectl("get", "crd", "jobs.batch.volcano.sh")
    finally:
        karmada.kubectl("delete", *files)


# preflight


def findings(result: Result) -> dict[str, Object]:
    return {each["check"]: each for each in json.loads(result.stdout)["checks"]}


def add_member(plane: ControlPlane, name: str) -> None:
    cluster = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push"},
    }
    vcjobs = {
        "groupVersion": "batch.volcano.sh/v1alpha1",
        "resources": [{"kind": "Job", "name": "jobs"}],
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "ClusterReady",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "conditions": [ready],
        "apiEnablements": [vcjobs],
        "resourceSummary": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "8"}},
    }
    plane.kubectl("create", "-f", "-", stdin=json.dumps(cluster))
    patch_status(plane, "cluster", name, status)


def patch_status(plane: ControlPlane, kind: str, name: str, status: Object) -> None:
    patch = json.dumps({"status": status})
    plane.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)


def test_preflight_leads_from_nothing_to_ready(
    karmada: ControlPlane, run: Run, authority: trustme.CA, tmp_path: Path
) -> None:
    bare = findings(run("preflight", "-o", "json", code=1))
    assert bare["karmada"]["status"] == "ok"
    assert bare["hyperjob-definition"]["status"] == "failed"
    assert bare["hyperjob-definition"]["remedy"].startswith(
        f"hyperjob install --kubeconfig {karmada.kubeconfig} "
    )
    assert bare["members-ready"]["status"] == "failed"

    port = free_port()
    run("install", "--webhook-url", f"https://127.0.0.1:{port}", "--ca-file", ca(tmp_path))
    add_member(karmada, "east")
    try:
        silent = findings(run("preflight", "-o", "json", code=1))
        assert silent["webhook-answers"]["status"] == "failed"
        assert "failed calling webhook" in silent["webhook-answers"]["message"]
        assert silent["default-queue"]["status"] == "warning"
        assert silent["controller-leads"]["status"] == "failed"

        karmada.kubectl("create", "-f", "-", stdin=json.dumps(leading()))
        patch_status(karmada, "queue", "default", {"state": "Open"})
        with webhook(authority, port, tmp_path):
            result = run("preflight")
        lines = result.stdout.splitlines()
        assert [line.split()[1] for line in lines if line.split()[0] != "ok"] == [
            "members-reader",
            "members-agree",
        ]
        assert any("cannot be asked through Karmada's proxy: east" in line for line in lines)
        assert any("the vcjobs of east cannot be compared" in line for line in lines)
    finally:
        karmada.kubectl("delete", "cluster", "east")
        karmada.kubectl("delete", "lease", LEASE_NAME, "-n", "karmada-system", "--ignore-not-found")


def leading() -> dict[str, Any]:
    """Return the Lease of a controller of this release that renewed it just now."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": LEASE_NAME,
            "namespace": "karmada-system",
            "labels": {"app.kubernetes.io/managed-by": "hyperjob-controller"},
            "annotations": {CONTROLLER_VERSION: __version__},
        },
        "spec": {
            "holderIdentity": "controller-0",
            "leaseDurationSeconds": 3600,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }


def ca(directory: Path) -> str:
    return str(directory / "ca.crt")


def webhook(authority: trustme.CA, port: int, directory: Path) -> Any:
    """Run the webhook with a certificate of an authority; it answers when this enters."""
    serving = authority.issue_cert("127.0.0.1")
    serving.private_key_pem.write_to_path(directory / "tls.key")
    serving.cert_chain_pems[0].write_to_path(directory / "tls.crt")
    return serving_webhook(port, directory)


def serving_webhook(port: int, directory: Path) -> Any:
    """Run the webhook with the certificate of a folder."""
    stack = ExitStack()
    log = directory / "webhook.log"
    process = stack.enter_context(
        running(
            [
                *(sys.executable, "-m", "hyperjob_webhook", "--bind-address", "127.0.0.1"),
                *("--secure-port", str(port), "--health-probe-bind-address", "127.0.0.1:0"),
                *("--tls-cert-file", directory / "tls.crt"),
                *("--tls-private-key-file", directory / "tls.key"),
            ],
            log=log,
        )
    )
    wait_for(lambda: listens(port), what="webhook", process=process, log=log)
    return stack


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_remedies_name_the_context_that_preflight_checked(
    karmada: ControlPlane, tmp_path: Path
) -> None:
    config = yaml.safe_load(karmada.kubeconfig.read_text())
    (context,) = config["contexts"]
    away = {"name": "away", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}
    config["clusters"].append(away)
    config["contexts"].append(
        {"name": "away", "context": {**context["context"], "cluster": "away"}}
    )
    config["current-context"] = "away"
    (both := tmp_path / "both").write_text(json.dumps(config))
    server = ["--kubeconfig", str(both), "--context", context["name"]]
    result = CliRunner().invoke(main, ["preflight", *server, "-o", "json"])
    missing = findings(result)["hyperjob-definition"]
    assert missing["remedy"].startswith(f"hyperjob install {' '.join(server)} --"), missing
