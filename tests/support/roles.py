"""Users and processes with only the rights of their Roles, for tests of RBAC."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SERVICE_ACCOUNTS
from hyperjob_install.rbac import CONTROLLER, rbac
from hyperjob_install.settings import TRAINJOBS, Settings
from tests.support.controlplane import ControlPlane

Object = dict[str, Any]


def install_rights(plane: ControlPlane, namespace: str, *, trainjobs: bool = False) -> None:
    """Create the roles and service accounts of `hyperjob install`."""
    parts = frozenset({TRAINJOBS} if trainjobs else ())
    items = rbac(Settings(service_accounts=True, parts=parts), namespace=namespace)
    text = yaml.safe_dump_all([item.object for item in items])
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def account(plane: ControlPlane, namespace: str, name: str, directory: Path) -> Path:
    """Return a kubeconfig of an existing service account."""
    token = plane.kubectl("create", "token", name, f"--namespace={namespace}").stdout
    return with_token(plane.kubeconfig, token.strip(), directory / name)


def with_token(kubeconfig: Path, token: str, path: Path) -> Path:
    """Write a kubeconfig of the same server with a token as its only credentials."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path.write_text(yaml.safe_dump(document))
    return path


async def visitor(
    kube: Kube, namespace: str, name: str, role: str | None, *, namespaces: Iterable[str] = ()
) -> str:
    """Create an account with a ClusterRole, in `namespaces` or everywhere; return its token."""
    await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": name, "namespace": namespace}})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    if role and not namespaces:
        await kube.create(CLUSTER_ROLE_BINDINGS, binding)
    for each in namespaces:
        await kube.create(ROLE_BINDINGS, {**binding, "metadata": {"name": name, "namespace": each}})
    return await token_of(kube, namespace, name)


async def token_of(kube: Kube, namespace: str, name: str) -> str:
    """Return a token of an existing service account."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = SERVICE_ACCOUNTS.path(namespace, name, "token")
    answer = await kube.raw("POST", path, body=asked)
    return str(answer.json()["status"]["token"])


def controller_account(plane: ControlPlane, namespace: str, directory: Path) -> Path:
    """Return a kubeconfig with exactly the rights of the installed controller."""
    install_rights(plane, namespace)
    return account(plane, namespace, CONTROLLER, directory)


def person(plane: ControlPlane, namespace: str, name: str, directory: Path, *, role: str) -> Path:
    """Return a kubeconfig of a user with a ClusterRole in one namespace."""
    where = f"--namespace={namespace}"
    plane.kubectl("create", "serviceaccount", name, where)
    plane.kubectl(
        "create",
        "rolebinding",
        name,
        where,
        f"--clusterrole={role}",
        f"--serviceaccount={namespace}:{name}",
    )
    return account(plane, namespace, name, directory)


def cluster_role(name: str, **resources: str) -> Object:
    """Return a ClusterRole of all verbs; `resources` are plurals by group, dots as underscores."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [group.replace("_", ".")], "resources": plurals.split(), "verbs": ["*"]}
            for group, plurals in resources.items()
        ],
    }
