"""The roles of users in the reference of the command line: enough for them, and no more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, QUEUE_ADMISSION
from hyperjob_core.kube.client import Kube
from tests.support.controller import clusters
from tests.support.controlplane import ROOT, ControlPlane
from tests.support.controlplane import control_plane as start_control_plane
from tests.support.hyperjobs import hyperjob, job_template
from tests.support.roles import account

Object = dict[str, Any]
USER, OTHER = "ann", "of-others"


LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": LEASE_NAME,
        "namespace": LEASE_NAMESPACE,
        "annotations": {QUEUE_ADMISSION: "none"},
    },
}


def page_roles() -> str:
    """Return the ClusterRoles of the page, as a reader copies them."""
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    rights = page.partition("\n## Rights\n")[2]
    return rights.partition("```yaml\n")[2].partition("```")[0]


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide."""
    with start_control_plane(tmp_path_factory.mktemp("roles"), rbac=True) as plane:
        plane.kubectl("apply", "-f", "-", stdin=page_roles())
        for name in (OTHER, LEASE_NAMESPACE):
            plane.kubectl("create", "namespace", name)
        plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump(LEASE))
        yield plane


@pytest.fixture
def user(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """Bind the roles as the page says; return the kubeconfig of the user."""
    subject = f"--serviceaccount={namespace}:{USER}"
    control_plane.kubectl("create", "serviceaccount", USER, f"--namespace={namespace}")
    control_plane.kubectl(
        *("create", "rolebinding", USER, "--clusterrole=hyperjob-user"),
        *(subject, f"--namespace={namespace}"),
    )
    control_plane.kubectl(
        *("create", "clusterrolebinding", f"{USER}-{namespace}"),
        *("--clusterrole=hyperjob-user-cluster", subject),
    )
    path = account(control_plane, namespace, USER, tmp_path)
    document = yaml.safe_load(path.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    path.write_text(yaml.safe_dump(document))
    return path


def reading(name: str) -> Object:
    """Return a HyperJob that reads a Secret, without a namespace."""
    container = {"envFrom": [{"secretRef": {"name": "token"}}]}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    made = hyperjob(name, job_template(resources=limits, container=container))
    del made["metadata"]["namespace"]
    return made


COMMANDS = {
    "get": (["get", "mine"], 0),
    "get of all": (["get"], 0),
    "tree": (["tree", "mine"], 0),
    "why": (["why", "mine"], 4),
    "top": (["top"], 0),
    "suspend": (["suspend", "mine"], 0),
    "resume": (["resume", "mine"], 0),
    "restart": (["restart", "mine", "--no-wait"], 0),
    "wait": (["wait", "mine", "--for=phase=Running", "--timeout=1s"], 3),
    "plan": (["plan", "-f", "mine.yaml"], 0),
}


async def test_the_roles_are_enough_to_submit_and_to_look(
    control_plane: ControlPlane, namespace: str, user: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(reading("mine")))

    def run(words: list[str]) -> Result:
        words = [word.replace("mine.yaml", str(tmp_path / "mine.yaml")) for word in words]
        return CliRunner().invoke(main, words, env={"KUBECONFIG": str(user)})

    of_user = ControlPlane(user, control_plane.real)
    of_user.kubectl("apply", "-f", str(tmp_path / "mine.yaml"))
    async with (
        Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as kube,
        clusters(kube, one=8),
    ):
        for name, (words, code) in COMMANDS.items():
            done = await asyncio.to_thread(run, words)
            assert done.exit_code == code, (name, done.output)
        said = " ".join(done.stderr.split())
        for left_out in ("hyperjobs.training.volcano.sh", "jobs.batch.volcano.sh", "secrets"):
            assert f"{left_out} left out: " in said, "the plan says what it does not know"
    of_user.kubectl("delete", "hyperjob", "mine", "--wait=false")


NOT_ALLOWED = [
    *(("get", "secrets", "here"), ("list", "secrets", "here"), ("create", "pods", "here")),
    *(("list", "configmaps", "here"), ("update", "configmaps", "here")),
    *(("create", "jobs.batch.volcano.sh", "here"), ("delete", "jobs.batch.volcano.sh", "here")),
    ("patch", "resourcebindings.work.karmada.io", "here"),
    ("list", "propagationpolicies.policy.karmada.io", "here"),
    *(("get", "hyperjobs", OTHER), ("list", "hyperjobs", OTHER), ("list", "hyperjobs", "all")),
    *(("get", "secrets", OTHER), ("get", "configmaps", OTHER), ("list", "events", OTHER)),
    *(("list", "jobs.batch.volcano.sh", OTHER), ("list", "deployments.apps", "all")),
    *(("list", "leases.coordination.k8s.io", "here"), ("get", "leases/another", OTHER)),
    *(("patch", "clusters.cluster.karmada.io", "all"), ("patch", "queues", "all")),
    ("create", "clusters.cluster.karmada.io/proxy", "all"),
]


def test_the_roles_give_no_right_beyond(
    control_plane: ControlPlane, namespace: str, user: Path
) -> None:
    plane = ControlPlane(user, control_plane.real)
    scopes = {"here": f"--namespace={namespace}", "all": "--all-namespaces"}
    given = []
    for verb, resource, where in NOT_ALLOWED:
        scope = scopes.get(where, f"--namespace={where}")
        asked = plane.kubectl("auth", "can-i", verb, resource, scope, check=False)
        if asked.stdout.strip() != "no":
            given.append((verb, resource, where, asked.stdout, asked.stderr))
    assert given == []
    for resource in ("hyperjobs", "secrets", "jobs.batch.volcano.sh"):
        done = plane.kubectl("get", resource, f"--namespace={OTHER}", check=False)
        assert "Forbidden" in done.stderr, "by the request itself, beside the review"
