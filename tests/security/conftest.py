"""An API server on which Roles decide, the controller's account, and people with few rights.

mallory and bob have `hyperjob-edit` in their namespace and nothing else; kdev has what Kubernetes'
`edit` gives a developer who works with vcjobs and policies of Karmada.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hyperjob_core.kube.client import Kube
from tests.support.controlplane import ControlPlane
from tests.support.controlplane import control_plane as start_control_plane
from tests.support.roles import cluster_role, controller_account, person

KDEV = cluster_role(
    "kdev",
    batch_volcano_sh="jobs jobs/status",
    policy_karmada_io="propagationpolicies",
)


@dataclass(frozen=True, slots=True)
class People:
    """A client for each of them; `root` may do anything, and stands for Karmada too."""

    root: Kube
    mallory: Kube
    kdev: Kube


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide."""
    with start_control_plane(tmp_path_factory.mktemp("roles"), rbac=True) as plane:
        yield plane


@pytest.fixture
def controller(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """Give the kubeconfig of the controller's account."""
    control_plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(KDEV)
    )
    return controller_account(control_plane, namespace, tmp_path)


@pytest.fixture
async def people(
    control_plane: ControlPlane, namespace: str, controller: Path, tmp_path: Path
) -> AsyncIterator[People]:
    """Give the clients of all people in one namespace."""
    async with AsyncExitStack() as stack:

        async def client(kubeconfig: Path) -> Kube:
            return await stack.enter_async_context(
                Kube.connect(kubeconfig=kubeconfig, user_agent="test")
            )

        mallory = person(control_plane, namespace, "mallory", tmp_path, role="hyperjob-edit")
        kdev = person(control_plane, namespace, "kdev", tmp_path, role="kdev")
        yield People(
            root=await client(control_plane.kubeconfig),
            mallory=await client(mallory),
            kdev=await client(kdev),
        )
