"""What preflight reads of an API server: objects, a trial, the installation, and rights."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from hyperjob_core.api.names import CONTROLLER_VERSION, LEASE_NAME, LEASE_NAMESPACE, WEBHOOK_VERSION
from hyperjob_core.kube.accessreviews import User
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.resources import CLUSTERS, CRDS, HYPERJOBS, LEASES, QUEUES
from hyperjob_core.kube.transport import Response
from hyperjob_install.manifest import manifest
from hyperjob_install.preflight import CHECKS, preflight
from hyperjob_install.preflight.observed import ObservedPlane, observe, read_rights, sees, user_of
from hyperjob_install.settings import TRAINJOBS, Settings
from tests.support.apiserver import refusal
from tests.unit.install.servers import InstallServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOOK = Settings(url="https://hook")


class Karmada(InstallServer):
    """An API server with a version, reviews of access, and a webhook that writes its release."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.denied: set[str] = set()
        self.reviews: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.away: set[str] = set()
        self.version = "9.8.7"

    async def request(self, method: str, path: str, **more: Any) -> Response:
        cluster, found, rest = path.partition("/proxy/")
        if found:
            self.asked.append(cluster.rpartition("/")[2])
            if self.asked[-1] in self.away:
                raise refusal(503, "ServiceUnavailable", "no route")
            return await super().request(method, f"/{rest}", **more)
        if path == "/version":
            return Response(200, {}, orjson.dumps({"gitVersion": "v1.36.2"}))
        return await super().request(method, path, **more)

    def answer(self, call: Call) -> Any:
        if call.resource.kind == "SubjectAccessReview":
            spec = call.content()["spec"]
            self.reviews.append(spec)
            asked = spec["resourceAttributes"]
            return {
                "status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}
            }
        return super().answer(call)

    def _dry_run(self, call: Call) -> Any:
        made = super()._dry_run(call)
        if call.resource is HYPERJOBS and self.version:
            made["metadata"]["annotations"][WEBHOOK_VERSION] = self.version
        return made


async def seen(server: Karmada) -> ObservedPlane:
    return await observe(server.kube, now=NOW)


async def test_the_objects_of_an_installation_are_read() -> None:
    server = Karmada()
    server.groups = ["work.karmada.io", "policy.karmada.io"]
    server.install(manifest(HOOK))
    lease = {"metadata": {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE}, "spec": {}}
    server.put(LEASES, lease)
    for number in range(3):
        server.put(CLUSTERS, {"metadata": {"name": f"c{number}"}})
    found = await seen(server)
    assert (found.now, found.version) == (NOW, "v1.36.2")
    assert found.groups == {"work.karmada.io", "policy.karmada.io"}
    assert found.installation == HOOK
    assert found.trial is not None
    assert (found.trial.error, found.trial.version) == (None, "9.8.7")
    assert [each["metadata"]["name"] for each in found.leases] == [LEASE_NAME]
    assert len(found.clusters) == 3
    assert len(found.definitions) == 4
    assert found.rights is not None
    assert not isinstance(found.rights, KubeError)
    assert (found.rights.user, found.rights.refused) == ("hyperjob-controller", ())
    assert server.calls == [], "preflight writes nothing"


async def test_without_an_installation_nothing_is_there_and_no_rights_are_asked() -> None:
    server = Karmada(unserved=[HYPERJOBS, QUEUES])
    found = await seen(server)
    assert (found.trial, found.installation, found.rights) == (None, None, None)
    assert (found.queues, found.leases) == ([], [])
    assert server.reviews == []


async def test_each_ready_member_is_asked_what_it_lets_the_controller_read() -> None:
    server = Karmada()
    server.install(manifest(HOOK))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("east", "west"):
        server.put(CLUSTERS, {"metadata": {"name": name}, "status": ready})
    server.put(CLUSTERS, {"metadata": {"name": "down"}})
    server.denied, server.away = {"get nodes", "list events"}, {"west"}
    found = await seen(server)
    assert set(server.asked) == {"east", "west"}
    east, west = found.members["east"], found.members["west"]
    assert not isinstance(east, KubeError)
    assert east.user == "hyperjob-members"
    assert east.refused == ("list events", "get nodes")
    assert isinstance(west, KubeError)
    assert west.message == "no route"


async def test_what_may_not_be_read_is_an_error_of_its_own() -> None:
    server = Karmada()
    server.install(manifest(HOOK))
    error = refusal(403, "Forbidden", "no")
    server.fails = lambda _verb, resource, _name: error if resource is QUEUES else None
    server.refuses_dry_run["hyperjob-preflight"] = refusal(500, "InternalError", "webhook x")
    server.denied = {"list hyperjobs", "get leases"}
    found = await seen(server)
    assert found.queues is error
    assert found.trial is not None
    assert found.trial.error is not None
    assert found.trial.error.message == "webhook x"
    assert not isinstance(found.rights, KubeError | None)
    assert found.rights.refused == (
        "list hyperjobs.training.volcano.sh",
        "get leases.coordination.k8s.io",
    )
    server.fails = lambda *_: error
    everything = await seen(server)
    assert everything.installation is error
    assert everything.rights is None


async def test_the_rights_are_those_of_the_user_in_the_lease() -> None:
    def lease(**annotations: str) -> dict[str, Any]:
        spec = {"holderIdentity": "x", "renewTime": NOW.isoformat(), "leaseDurationSeconds": 15}
        return {"metadata": {"annotations": annotations}, "spec": spec}

    user = user_of([], HOOK, now=NOW)
    assert user is not None
    assert (user.name, user.groups) == ("hyperjob-controller", ("system:authenticated",))
    account = user_of([lease()], replace(HOOK, service_accounts=True), now=NOW)
    assert account is not None
    assert account.name == "system:serviceaccount:karmada-system:hyperjob-controller"
    assert account.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:karmada-system",
        "system:authenticated",
    )
    assert user_of([lease(**{CONTROLLER_VERSION: "1"})], None, now=NOW) is None
    assert user_of([], None, now=NOW) is None


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        (
            Settings(parts=frozenset({TRAINJOBS})),
            (
                "list trainjobs.trainer.kubeflow.org",
                "watch trainjobs.trainer.kubeflow.org",
                "patch trainjobs/status.trainer.kubeflow.org",
                "update trainjobs/finalizers.trainer.kubeflow.org",
            ),
        ),
        (Settings(), ()),
        (None, ()),
    ],
    ids=["with TrainJobs", "without", "no installation"],
)
async def test_the_rights_of_optional_parts_are_reviewed_where_they_are_installed(
    settings: Settings | None, refused: tuple[str, ...]
) -> None:
    server = Karmada()
    server.denied = {f"{verb} trainjobs" for verb in ("list", "watch", "patch", "update")}
    assert (await read_rights(server.kube, User("controller"), settings)).refused == refused


async def test_an_api_server_that_does_not_answer_ends_preflight_with_one_finding() -> None:
    server = Karmada()

    async def request(*_given: Any, **_more: Any) -> Response:
        raise refusal(503, "ServiceUnavailable", "away")

    server.request = request  # type: ignore[method-assign]
    found = await preflight(server.kube, now=NOW)
    (finding,) = found.findings
    assert (found.reached, found.passed, finding.check) == (False, False, "karmada")
    assert "the API server does not answer: away" in finding.verdict.message
    whole = Karmada()
    whole.install(manifest(HOOK))
    report = await preflight(whole.kube, now=NOW)
    assert report.reached
    assert len(report.findings) == len(CHECKS)


def test_a_webhook_sees_a_resource_that_its_rules_name() -> None:
    rule = {"apiGroups": [CRDS.group], "resources": [CRDS.plural]}
    assert sees({"rules": [{}, rule]}, CRDS)
    assert not sees({"rules": [{**rule, "apiGroups": ["*"]}]}, CRDS)
    assert not sees({"rules": [{**rule, "resources": ["*"]}]}, CRDS)
    assert not sees({}, CRDS)
