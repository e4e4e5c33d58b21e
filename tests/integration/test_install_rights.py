"""The controller uses every right that `hyperjob install` gives it, and no other."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.api.names import lease_name
from hyperjob_core.kube import config
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import Forbidden
from hyperjob_core.kube.http import HttpTransport
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    SERVICE_EXPORTS,
    VCJOBS,
)
from hyperjob_core.kube.transport import Params, Response
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_install.rbac import CONTROLLER, controller_rules, lease_rules
from tests.support.controller import TIME_LIMIT, clusters, eventually, queue, settled
from tests.support.controlplane import ControlPlane
from tests.support.controlplane import control_plane as start_control_plane
from tests.support.hyperjobs import hyperjob, job_template
from tests.support.roles import account as service_account
from tests.support.roles import install_rights

Object = dict[str, Any]
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

# A series of equal Events is patched; to make one here would take minutes of outages. Finalizers
# are asked for by an admission plugin: tests/security/test_owner_references.py.
NOT_TRIED = {
    ("patch", "events.k8s.io", "events"),
    # Works that Karmada forgets: e2e/test_interference.py.
    ("get", "work.karmada.io", "works"),
    ("delete", "work.karmada.io", "works"),
    ("get", "work.karmada.io", "resourcebindings"),
    ("patch", "scheduling.volcano.sh", "queues"),  # every five minutes, if queues remember
    ("update", "training.volcano.sh", "hyperjobs/finalizers"),
}


@dataclass(frozen=True)
class Use:
    """One call as RBAC sees it."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    @property
    def right(self) -> tuple[str, str, str]:
        return self.verb, self.group, self.resource


@dataclass
class Calls:
    """What was called, and what of it was refused."""

    uses: set[Use] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


class RecordingTransport(HttpTransport):
    """Notes what is called."""

    def __init__(self, connection: config.Connection, calls: Calls) -> None:
        super().__init__(connection, user_agent="hyperjob-controller/test")
        self._calls = calls

    async def request(
        self, method: str, path: str, *, params: Params | None = None, **rest: Any
    ) -> Response:
        self._calls.uses.add(use_of(VERBS.get(method), path))
        try:
            return await super().request(method, path, params=params, **rest)
        except Forbidden as error:
            self._calls.refused.append(error.message)
            raise

    async def stream(self, path: str, **rest: Any) -> AsyncGenerator[bytes, None]:
        self._calls.uses.add(use_of("watch", path))
        try:
            async with aclosing(super().stream(path, **rest)) as found:
                async for chunk in found:
                    yield chunk
        except Forbidden as error:
            self._calls.refused.append(error.message)
            raise


def use_of(verb: str | None, path: str) -> Use:
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if rest[0] == "namespaces":
        namespace = rest[1]
        rest = rest[2:] or rest
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    return Use(verb or ("get" if name else "list"), group, resource, namespace, name)


def rights(rules: list[Object]) -> set[tuple[str, str, str]]:
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide."""
    with start_control_plane(tmp_path_factory.mktemp("roles"), rbac=True) as plane:
        yield plane


@pytest.fixture
def account(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """Make the controller's account with its rights; give the kubeconfig that is its own."""
    install_rights(control_plane, namespace)
    # A controller of one namespace has a Lease of its own: docs/install.md.
    own = (
        "role",
        "own-lease",
        f"--namespace={namespace}",
        f"--resource-name={lease_name(namespace)}",
    )
    control_plane.kubectl("create", *own, "--verb=get,update", "--resource=leases")
    bound = (f"--serviceaccount={namespace}:{CONTROLLER}", f"--namespace={namespace}")
    control_plane.kubectl("create", "rolebinding", "own-lease", "--role=own-lease", *bound)
    return service_account(control_plane, namespace, CONTROLLER, tmp_path)


@asynccontextmanager
async def recorded_controller(
    account: Path,
    namespace: str,
    calls: Calls,
    *,
    admission: QueueAdmission = QueueAdmission.VOLCANO_GLOBAL,
) -> AsyncIterator[Manager]:
    """Run the controller as it runs in earnest, its Lease in the test's namespace."""
    options = Options(
        namespace=namespace,
        queue_admission=admission,
    )
    connection = await config.load(account)
    async with Kube(RecordingTransport(connection, calls)) as client:
        manager = Manager(client, options, tuning=Tuning(lease_namespace=namespace))
        task = asyncio.create_task(manager.run())
        working = asyncio.create_task(manager.working.wait())
        try:
            async with asyncio.timeout(TIME_LIMIT):
                await asyncio.wait({task, working}, return_when=asyncio.FIRST_COMPLETED)
            yield manager
        finally:
            for pending in (working, task):
                pending.cancel()
            await asyncio.gather(working, task, return_exceptions=True)


def template() -> Object:
    gpu = {"nvidia.com/gpu": "1"}
    return job_template(resources={"requests": gpu, "limits": gpu})


def two(namespace: str, name: str, **spec: Any) -> Object:
    return hyperjob(name, template(), namespace=namespace, replicas=2, group={"name": "t"}, **spec)


def binding(job: Object) -> Object:
    """Make the binding that Karmada would, admitted and placed."""
    metadata = job["metadata"]
    owner = {"apiVersion": VCJOBS.api_version, "kind": "Job", "controller": True}
    resource = {"apiVersion": VCJOBS.api_version, "kind": "Job"}
    where = {"namespace": metadata["namespace"], "name": metadata["name"]}
    return {
        **RESOURCE_BINDINGS.head,
        "metadata": {
            "name": f"{metadata['name']}-job",
            "namespace": metadata["namespace"],
            "annotations": {"training.volcano.sh/gate": "held"},
            "ownerReferences": [{**owner, "name": metadata["name"], "uid": metadata["uid"]}],
        },
        "spec": {
            "resource": {**resource, **where},
            "suspension": {"dispatching": True, "scheduling": False},
            "clusters": [{"name": "one"}],
        },
    }


async def names_of(kube: Kube, namespace: str, resource: Any, prefix: str) -> set[str]:
    found = (await kube.list(resource, namespace=namespace)).items
    names = {item["metadata"]["name"] for item in found}
    return {name for name in names if name.startswith(prefix)}


def until_are(
    kube: Kube, namespace: str, resource: Any, prefix: str, wanted: set[str]
) -> Callable[[], Any]:
    async def look() -> bool:
        return await names_of(kube, namespace, resource, prefix) == wanted

    return look


async def live(kube: Kube, namespace: str, manager: Manager) -> None:
    """Lead HyperJobs through all that makes the controller call the API server."""
    # As Volcano's controller does, which no test of an API server alone has.
    opened = {"status": {"state": "Open"}}
    await kube.patch(QUEUES, "default", opened, kind=PatchType.MERGE, subresource="status")
    # A gang that is admitted, then scaled down.
    await kube.create(HYPERJOBS, two(namespace, "hj"))
    both = {"hj-t-0", "hj-t-1"}
    await eventually(until_are(kube, namespace, VCJOBS, "hj-", both), what="children")
    for name in sorted(both):
        job = await kube.get(VCJOBS, name, namespace=namespace)
        await kube.create(RESOURCE_BINDINGS, binding(job))

    async def is_open() -> bool:
        held = (await kube.list(RESOURCE_BINDINGS, namespace=namespace)).items
        marks = [each["metadata"]["annotations"]["training.volcano.sh/gate"] for each in held]
        return marks == ["open", "open"]

    await eventually(is_open, what="an open gate")
    fewer = [{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": 1}]
    await kube.patch(HYPERJOBS, "hj", fewer, kind=PatchType.JSON, namespace=namespace)
    for resource in (VCJOBS, PROPAGATION_POLICIES):
        await eventually(
            lambda resource=resource: _has_one(kube, namespace, resource), what="one child"
        )

    # One that ends and is not kept.
    brief = two(namespace, "brief", minAvailable=1, ttlSecondsAfterFinished=0)
    brief["spec"]["replicatedJobs"][0]["replicas"] = 1
    await kube.create(HYPERJOBS, brief)
    await eventually(until_are(kube, namespace, VCJOBS, "brief-", {"brief-t-0"}), what="its child")
    done = {"status": {"state": {"phase": "Completed"}}}
    await kube.patch(
        VCJOBS, "brief-t-0", done, kind=PatchType.MERGE, namespace=namespace, subresource="status"
    )
    await eventually(until_are(kube, namespace, HYPERJOBS, "brief", set()), what="its deletion")

    # A sub-job whose Service was exported by hand goes with one that was exported for it.
    plugged = {"plugins": {"svc": []}}
    exported = SERVICE_EXPORTS.head
    await kube.create(
        SERVICE_EXPORTS, exported | {"metadata": {"name": "mesh-t-0", "namespace": namespace}}
    )
    await kube.create(HYPERJOBS, two(namespace, "mesh", **plugged))
    await eventually(
        until_are(kube, namespace, VCJOBS, "mesh-", {"mesh-t-0", "mesh-t-1"}), what="children"
    )
    await kube.patch(HYPERJOBS, "mesh", fewer, kind=PatchType.JSON, namespace=namespace)
    await eventually(
        until_are(kube, namespace, SERVICE_EXPORTS, "mesh-", {"mesh-t-0"}), what="one export"
    )

    # Children of the Go controller, and strangers' objects under children's names.
    labels = {"volcano.sh/hyperjob-name": "old", "volcano.sh/replicatedjob-name": "t"}
    for name, marks in (("old-t-0", labels), ("old-t-1", {})):
        metadata = {"name": name, "namespace": namespace, "labels": marks}
        await kube.create(VCJOBS, {"metadata": metadata, "spec": template()} | _KIND)
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}
    await kube.create(
        PROPAGATION_POLICIES,
        {
            **PROPAGATION_POLICIES.head,
            "metadata": {"name": "old-t-0", "namespace": namespace},
            "spec": {"resourceSelectors": [selector]},
        },
    )
    await kube.create(HYPERJOBS, two(namespace, "old", minAvailable=1))
    await settled(manager, kube, namespace)


_CLASSES = (PRIORITY_CLASSES.group, PRIORITY_CLASSES.plural)
_KIND = {"apiVersion": VCJOBS.api_version, "kind": "Job"}


async def _has_one(kube: Kube, namespace: str, resource: Any) -> bool:
    return len(await names_of(kube, namespace, resource, "hj-")) == 1


async def test_the_controller_uses_its_rights_and_no_other(
    kube: Kube, namespace: str, account: Path
) -> None:
    calls = Calls()
    async with (
        clusters(kube, one=100),
        queue(kube, "default"),
        recorded_controller(account, namespace, calls) as manager,
    ):
        await live(kube, namespace, manager)
    async with recorded_controller(
        account, namespace, calls, admission=QueueAdmission.BUILTIN
    ) as manager:
        async with asyncio.timeout(TIME_LIMIT):
            await manager.caches.priority_classes.synced.wait()

        async def watches() -> bool:
            return any(use.right == ("watch", *_CLASSES) for use in calls.uses)

        await eventually(watches, what="a watch of PriorityClasses")

    assert not calls.refused
    given = rights([*controller_rules(), *lease_rules(namespace)])
    assert given - {use.right for use in calls.uses} == NOT_TRIED
