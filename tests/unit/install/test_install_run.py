"""Installations on an API server in memory: the plan, its execution, the record, and removal."""

import ssl
from base64 import b64decode, b64encode
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.names import LEASE_NAMESPACE, WEBHOOK_VERSION
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import (
    ADMISSION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    CONFIG_MAPS,
    CRDS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    RESOURCE_BINDINGS,
    RESOURCE_INTERPRETERS,
    SECRETS,
    Resource,
)
from hyperjob_install import credentials, reach
from hyperjob_install.credentials import ServiceAccount, kubeconfig, renew
from hyperjob_install.execute import execute, in_use, remove
from hyperjob_install.interpreters import VOLCANO_GLOBAL, Clash
from hyperjob_install.manifest import certs_guard, manifest
from hyperjob_install.objects import Component, Item, is_ours, labelled, new_item
from hyperjob_install.plan import Action, InstallPlan, plan, require_karmada
from hyperjob_install.problems import InstallError, clash, lost, refused
from hyperjob_install.reach import require_webhook
from hyperjob_install.settings import (
    PARTS,
    RECORD,
    TENANCY,
    UI,
    Settings,
    differences,
    record_item,
    recorded,
    service_of,
    settings_of,
)
from hyperjob_rules.configuration import ServiceReference
from tests.support.apiserver import refusal
from tests.unit.install.observations import interpreter
from tests.unit.install.servers import InstallServer

Object = dict[str, Any]
HOOK = Settings(url="https://hook")


def config_map(
    name: str = "a", *, data: str = "1", namespace: str | None = "ns", **how: Any
) -> Item:
    return new_item(
        CONFIG_MAPS,
        name,
        {"data": {"x": data}},
        part=how.pop("part", Component.RBAC),
        component="rbac",
        namespace=namespace,
        **how,
    )


def crd(name: str = "hyperjobs.training.volcano.sh") -> Item:
    return new_item(CRDS, name, {"spec": {"versions": []}}, part=Component.CRDS, component="api")


def namespace(name: str = "ns") -> Item:
    return new_item(NAMESPACES, name, {}, part=Component.RECORD, component="record")


async def planned(server: InstallServer, *items: Item, **how: Any) -> list[tuple[Any, ...]]:
    found = await plan(server.kube, items, **how)
    assert found.problems == ()
    return [(each.item.name, each.action, each.fields, each.note) for each in found.changes]


def foreign(item: Item, data: str = "2") -> Object:
    return {"metadata": {"name": item.name, "namespace": item.namespace}, "data": {"x": data}}


def change(action: Action, *fields: str, note: str = "") -> list[tuple[Any, ...]]:
    return [("a", action, fields, note)]


CREATED, CHANGED = change(Action.CREATED), change(Action.CONFIGURED, "data.x")
KEPT = change(Action.KEPT, note="exists, and hyperjob install did not create it")
ONCE, ABSENT = {"only_where_missing": True}, {"absent": True}
OURS, THEIRS = config_map().object, foreign(config_map())
# what is wanted, what is there -> what is planned
PLANNED: dict[str, tuple[Item, Object | None, list[tuple[Any, ...]]]] = {
    "a new object": (config_map(), None, CREATED),
    "an equal object": (config_map(), OURS, change(Action.UNCHANGED)),
    "another value": (config_map(data="2"), OURS, CHANGED),
    "an absent object that is absent": (config_map(**ABSENT), None, []),
    "an absent object that is ours": (config_map(**ABSENT), OURS, change(Action.DELETED)),
    "an absent object of others": (config_map(**ABSENT), THEIRS, []),
    "an object of others where only a missing one is created": (config_map(**ONCE), THEIRS, KEPT),
    "our object where only a missing one is created": (config_map(data="2", **ONCE), OURS, CHANGED),
    "a missing object where only a missing one is created": (config_map(**ONCE), None, CREATED),
}


@pytest.mark.parametrize(("item", "live", "expected"), PLANNED.values(), ids=PLANNED.keys())
async def test_the_plan_of_one_object(
    item: Item, live: Object | None, expected: list[tuple[Any, ...]]
) -> None:
    server = InstallServer()
    if live is not None:
        server.put(CONFIG_MAPS, deepcopy(live))
    assert await planned(server, item) == expected
    assert server.calls == [], "a plan writes nothing"


async def test_an_object_that_the_api_server_refuses_is_a_problem_unless_its_namespace_is_new() -> (
    None
):
    server = InstallServer()
    server.refuses_dry_run["a"] = refusal(404, "NotFound", "no namespace ns")
    found = await plan(server.kube, [config_map()])
    (problem,) = found.problems
    assert (problem.title, problem.message) == ("configmap/a", "no namespace ns")
    assert found.changes == ()
    created = await planned(server, namespace(), config_map())
    assert [each[:2] for each in created] == [("ns", Action.CREATED), ("a", Action.CREATED)]
    server.install([namespace()])
    assert (await plan(server.kube, [namespace(), config_map()])).problems == (problem,)
    assert (await plan(server.kube, [namespace("other"), config_map()])).problems == (problem,)


async def test_an_object_of_a_kind_whose_crd_is_new_has_no_dry_run() -> None:
    server = InstallServer()
    one = new_item(HYPERJOBS, "h", {}, part=Component.RBAC, component="x", namespace="ns")
    other = namespace("hyperjobs.training.volcano.sh")
    await planned(server, crd(), one)
    assert server.dry_runs == ["hyperjobs.training.volcano.sh"]
    server.dry_runs.clear()
    await planned(server, other, one)
    assert "h" in server.dry_runs, "only a CRD makes a kind"
    server.install([crd()])
    server.dry_runs.clear()
    await planned(server, crd(), one)
    assert "h" in server.dry_runs


async def test_an_object_of_a_kind_that_is_not_served_is_left_out_where_it_may_be() -> None:
    server = InstallServer(unserved=[CONFIG_MAPS])
    assert await planned(server, config_map(only_where_served=True)) == []
    assert (await plan(server.kube, [config_map()])).problems
    server = InstallServer()
    assert await planned(server, config_map(only_where_served=True)) == CREATED


async def test_a_conflict_of_field_managers_is_a_problem_with_the_option() -> None:
    server = InstallServer()
    server.put(CONFIG_MAPS, config_map().object)
    server.refuses_dry_run["a"] = refusal(409, "Conflict", "owned")
    (problem,) = (await plan(server.kube, [config_map(data="2")])).problems
    assert "--allow conflicts" in problem.remedy


async def test_a_crd_that_would_lose_fields_is_a_problem_unless_it_is_allowed() -> None:
    server = InstallServer()
    (item,) = (each for each in manifest(HOOK) if each.part is Component.CRDS)
    live = yaml.safe_load(yaml.safe_dump(item.object))
    schema = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"]["properties"]["future"] = {"type": "string"}
    server.put(CRDS, live)
    (problem,) = (await plan(server.kube, [item])).problems
    assert "spec.future" in problem.message
    (change,) = await planned(server, item, allow_field_loss=True)
    assert change[1] is Action.CONFIGURED


INTERPRETERS = [each for each in manifest(HOOK) if each.part is Component.INTERPRETERS]
HOOKS = [each for each in manifest(HOOK) if each.part is Component.WEBHOOKS]


async def test_volcano_globals_customization_is_replaced_where_it_is_allowed() -> None:
    server = InstallServer()
    server.put(RESOURCE_INTERPRETERS, interpreter("vcjob-configuration", "Job", "retention"))
    items = [config_map(), *INTERPRETERS]
    (problem,) = (await plan(server.kube, items)).problems
    assert "--allow interpreters" in problem.remedy
    found = await planned(server, *items, replace_others=True)
    assert [each[:2] for each in found] == [
        ("a", Action.CREATED),
        ("vcjob-configuration", Action.DELETED),
        ("hyperjob-vcjob", Action.CREATED),
        ("hyperjob-queue", Action.CREATED),
    ]
    assert found[1][3] == "Volcano Global's; HyperJob's replaces it"
    assert server.dry_runs == ["a", "a"], "Karmada would refuse a dry run of the interpreters"


async def test_a_customization_of_others_is_never_deleted() -> None:
    server = InstallServer()
    server.put(RESOURCE_INTERPRETERS, interpreter("mine", "Job", "retention"))
    (problem,) = (await plan(server.kube, INTERPRETERS, replace_others=True)).problems
    assert "kubectl delete resourceinterpretercustomization mine" in problem.remedy
    assert (await plan(server.kube, [config_map()])).problems == ()


async def test_interpreters_beside_a_clash_are_compared_without_a_dry_run() -> None:
    server = InstallServer()
    server.install(INTERPRETERS)
    server.put(RESOURCE_INTERPRETERS, interpreter("vcjob-configuration", "Job", "retention"))
    found = await planned(server, *INTERPRETERS, replace_others=True)
    assert [each[1] for each in found] == [Action.DELETED, *([Action.CONFIGURED] * 2)]
    assert [each[2] for each in found[1:]] == [(), ()]


@pytest.mark.parametrize(
    ("refused", "items", "title"),
    [
        (
            ("list", ADMISSION_POLICIES),
            certs_guard("certs"),
            "validatingadmissionpolicy.admissionregistration.k8s.io/hyperjob-certs",
        ),
        (
            ("get", RESOURCE_INTERPRETERS),
            INTERPRETERS,
            "resourceinterpretercustomization.config.karmada.io/hyperjob-vcjob",
        ),
    ],
    ids=["whether a kind is served", "a customization beside a conflicting one"],
)
async def test_a_refused_read_is_a_problem_of_its_object(
    refused: tuple[str, Resource], items: list[Item], title: str
) -> None:
    server = InstallServer()
    server.put(RESOURCE_INTERPRETERS, interpreter("mine", "Job", "retention"))
    denied = refusal(403, "Forbidden", "denied")
    server.fails = lambda verb, resource, _: denied if (verb, resource) == refused else None
    found = {each.title: each for each in (await plan(server.kube, items)).problems}
    assert found[title].message == "denied"
    assert "administrator" in found[title].remedy


async def test_webhooks_keep_the_authority_that_another_command_has_written() -> None:
    server = InstallServer()
    server.install(HOOKS)
    for item in HOOKS:
        live = server.get(item.resource, item.name)
        assert live is not None
        for hook in live["webhooks"]:
            hook["clientConfig"]["caBundle"] = "old"
    found = await plan(server.kube, HOOKS)
    assert [each.action for each in found.changes] == [Action.UNCHANGED] * 2
    for step in found.changes:
        assert {each["clientConfig"]["caBundle"] for each in step.item.object["webhooks"]} == {
            "old"
        }
    given = manifest(replace(HOOK, ca_bundle=b"new"))
    found = await plan(server.kube, [each for each in given if each.part is Component.WEBHOOKS])
    assert [each.action for each in found.changes] == [Action.CONFIGURED] * 2
    assert "webhooks[0].clientConfig.caBundle" in found.changes[0].fields


async def test_only_a_karmada_is_installed_into() -> None:
    server = InstallServer()
    needed = (CLUSTER_PROPAGATION_POLICIES, RESOURCE_BINDINGS, RESOURCE_INTERPRETERS)
    server.groups = [each.group for each in needed]
    await require_karmada(server.kube)
    server.groups = ["work.karmada.io"]
    with pytest.raises(InstallError) as error:
        await require_karmada(server.kube)
    assert "does not serve config.karmada.io, policy.karmada.io;" in str(error.value)
    assert "--kubeconfig" in str(error.value)


async def run(server: InstallServer, found: InstallPlan, **how: Any) -> list[tuple[str, Action]]:
    how = {"wait": 60.0, "webhook_wait": 0.0, **how}
    return [(each.item.name, each.action) async for each in execute(server.kube, found, **how)]


async def test_an_installation_writes_what_differs_in_order_and_a_second_run_nothing() -> None:
    server = InstallServer()
    items = manifest(replace(HOOK, skip=frozenset({Component.WEBHOOKS})))
    found = await plan(server.kube, items)
    done = await run(server, found)
    assert done == [(each.item.name, each.action) for each in found.changes]
    assert {action for _, action in done} == {Action.CREATED}
    assert [name for _, _, name in server.calls] == [name for name, _ in done]
    again = await plan(server.kube, items)
    assert {each.action for each in again.changes} == {Action.UNCHANGED, Action.KEPT}
    server.calls.clear()
    await run(server, again)
    assert server.calls == []


async def test_a_new_crd_must_be_served_before_the_next_object_is_written() -> None:
    server = InstallServer(established=False)
    found = await plan(server.kube, [crd(), crd("b"), namespace()])
    with pytest.raises(InstallError) as error:
        await run(server, found, wait=0.05)
    assert "hyperjobs.training.volcano.sh is not served after 0.05s" in str(error.value)
    assert "kubectl describe crd hyperjobs.training.volcano.sh" in str(error.value)
    assert [name for _, _, name in server.calls] == ["hyperjobs.training.volcano.sh", "b"]
    last = InstallServer(established=False)
    with pytest.raises(InstallError, match="is not served"):
        await run(last, await plan(last.kube, [crd()]), wait=0.05)
    old = InstallServer(established=False)
    old.put(CRDS, crd().object)
    changed = replace(crd(), object={**crd().object, "spec": {"versions": [], "scope": "x"}})
    assert await run(old, await plan(old.kube, [changed])) == [(changed.name, Action.CONFIGURED)]


async def test_objects_are_deleted_and_an_object_that_is_gone_is_no_error() -> None:
    server = InstallServer()
    server.install([config_map()])
    found = await plan(server.kube, [config_map(absent=True)])
    assert await run(server, found) == [("a", Action.DELETED)]
    assert server.get(CONFIG_MAPS, "ns/a") is None
    assert await run(server, found) == [("a", Action.DELETED)]
    server.fails = lambda verb, *_: refusal(403, "Forbidden") if verb == "delete" else None
    server.install([config_map()])
    with pytest.raises(InstallError, match="configmap/a: no"):
        await run(server, found)


async def test_an_interpreter_is_tried_again_after_the_deletion_of_the_one_it_replaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperjob_install.execute._AGAIN_SECONDS", 0.0)
    server = InstallServer()
    server.put(RESOURCE_INTERPRETERS, interpreter("vcjob-configuration", "Job", "retention"))
    found = await plan(server.kube, INTERPRETERS, replace_others=True)
    refusals = [refusal(400, "BadRequest")] * 3
    server.fails = lambda verb, *_: refusals.pop() if verb == "apply" and refusals else None
    done = await run(server, found, wait=60.0)
    assert [action for _, action in done] == [Action.DELETED, Action.CREATED, Action.CREATED]


class Hooked(InstallServer):
    """An API server whose dry run of a HyperJob has a result."""

    def __init__(self, said: str | None) -> None:
        super().__init__()
        self.said = said
        self.asked = 0
        self.trial: Object | None = None

    def _dry_run(self, call: Any) -> Any:
        if call.resource is not HYPERJOBS:
            return super()._dry_run(call)
        self.asked += 1
        self.trial = self.get(MUTATING_WEBHOOKS, reach.TRIAL)
        made = call.content()
        if self.said == "":
            return made
        if self.said is not None:
            raise refusal(500, "InternalError", self.said)
        made["metadata"]["annotations"][WEBHOOK_VERSION] = "1.0.0"
        return made


def webhook(*, ca: bytes = b"") -> Item:
    items = manifest(replace(HOOK, ca_bundle=ca))
    return next(each for each in items if each.resource is MUTATING_WEBHOOKS)


CALLED = 'failed calling webhook "check.training.volcano.sh": '
REACHED = {
    "an answer": (None, False, None),
    "no answer": (f"{CALLED}refused", False, "does not reach the webhook at https://hook: "),
    "no answer, which is allowed": (f"{CALLED}refused", True, None),
    "another certificate": (f"{CALLED}x509: unknown", False, "nothing verifies of the chain"),
    "another certificate, with --allow unreachable-webhook": (
        f"{CALLED}bad certificate",
        True,
        "does not trust the webhook's certificate",
    ),
    "another webhook refuses": ("other webhook: x509", False, None),
    "the webhook is not called": ("", False, None),
}


@pytest.mark.parametrize(("said", "unreachable", "error"), REACHED.values(), ids=REACHED.keys())
async def test_the_api_server_must_reach_the_webhook_before_it_calls_it_for_every_hyperjob(
    said: str | None, unreachable: bool, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "_NOTICED", 0.0)
    server = Hooked(said)
    if error is None:
        await require_webhook(server.kube, webhook(), unreachable=unreachable, seconds=0)
    else:
        with pytest.raises(InstallError) as raised:
            await require_webhook(server.kube, webhook(), unreachable=unreachable, seconds=0)
        assert error in str(raised.value)
        assert "configurations are unchanged" in str(raised.value)
    assert server.get(MUTATING_WEBHOOKS, reach.TRIAL) is None, "the trial is deleted"
    assert server.trial is not None
    assert is_ours(server.trial)
    (hook,) = server.trial["webhooks"]
    assert hook["name"] == "check.training.volcano.sh"
    assert hook["objectSelector"]["matchLabels"].keys() == {"training.volcano.sh/install-check"}
    assert hook["clientConfig"] == webhook().object["webhooks"][0]["clientConfig"]


async def test_a_webhook_that_answers_later_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_AGAIN", 0.0)
    server = Hooked(f"{CALLED}refused")
    said = server._dry_run

    def later(call: Any) -> Any:
        if server.asked == 3:
            server.said = None
        return said(call)

    monkeypatch.setattr(server, "_dry_run", later)
    await require_webhook(server.kube, webhook(), seconds=60)
    assert server.asked == 4


async def test_the_reason_names_the_option_for_the_authority() -> None:
    server = Hooked(f"{CALLED}x509")
    with pytest.raises(InstallError, match="--ca-file is not the authority of the chain"):
        await require_webhook(server.kube, webhook(ca=b"x"), seconds=0)


async def test_webhooks_are_checked_once_and_only_where_they_change() -> None:
    server = Hooked(None)
    await run(server, await plan(server.kube, HOOKS))
    assert server.asked == 1
    await run(server, await plan(server.kube, HOOKS))
    assert server.asked == 1


SETTINGS = st.builds(
    Settings,
    url=st.just("https://hook:8443"),
    user_prefix=st.sampled_from(["hyperjob-", "karmada:"]),
    members=st.sampled_from(list(MemberAccess)),
    parts=st.frozensets(st.sampled_from(PARTS)),
    release=st.sampled_from(["", "hj/hyperjob"]),
).flatmap(
    lambda one: st.sampled_from([
        one,
        replace(one, url=None, service=ServiceReference("n", "s", 8443)),
        replace(one, user_prefix="hyperjob-", service_accounts=True),
    ])
)  # fmt: skip


@given(SETTINGS, st.frozensets(st.sampled_from([Component.RBAC, Component.TENANCY])))
def test_a_record_has_all_settings(settings: Settings, skip: frozenset[Component]) -> None:
    settings = replace(settings, skip=skip)
    assert settings_of(record_item(settings).object) == settings
    step = replace(settings, skip=skip | {Component.WEBHOOKS})
    assert settings_of(record_item(step).object) == settings


async def test_a_record_of_others_is_none_and_nothing_is_no_installation() -> None:
    server = InstallServer()
    assert await recorded(server.kube) is None
    server.install([record_item(HOOK)])
    assert await recorded(server.kube) == HOOK
    foreign_record = {"metadata": {"name": RECORD, "namespace": LEASE_NAMESPACE}, "data": {}}
    server.put(CONFIG_MAPS, foreign_record)
    assert await recorded(server.kube) is None


def test_each_changed_setting_has_a_line() -> None:
    before = Settings(url="https://a", parts=frozenset({TENANCY}), skip=frozenset({Component.RBAC}))
    after = Settings(
        service=ServiceReference("n", "s", 443),
        parts=frozenset({UI}),
        service_accounts=True,
        members=MemberAccess.PODS,
        skip=frozenset({Component.TENANCY, Component.CRDS, Component.WEBHOOKS}),
        release="n/r",
    )
    assert differences(before, after) == [
        "service-accounts: false -> true",
        "members: nodes -> pods",
        "with: tenancy -> ui",
        "skip: rbac -> crds tenancy",
        "release: none -> n/r",
        "webhook-url: https://a -> none",
        "webhook-service: none -> n/s:443",
    ]
    assert differences(before, before) == []
    assert differences(before, replace(before, skip=before.skip | {Component.WEBHOOKS})) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n/s", ServiceReference("n", "s", 443)),
        ("n/s:8443", ServiceReference("n", "s", 8443)),
        *((text, None) for text in ("n", "/s", "n/", "n/:1", "n/s:", "n/s:x")),
    ],
)
def test_a_service_has_a_namespace_a_name_and_a_port(
    text: str, expected: ServiceReference | None
) -> None:
    if expected is None:
        with pytest.raises(ValueError, match=r"NAMESPACE/NAME\[:PORT\]"):
            service_of(text)
    else:
        assert service_of(text) == expected


async def test_existing_hyperjobs_are_counted_and_five_are_named() -> None:
    assert await in_use(InstallServer(unserved=[HYPERJOBS]).kube) == ""
    server = InstallServer()
    assert await in_use(server.kube) == ""
    for number in range(7):
        server.put(HYPERJOBS, {"metadata": {"name": f"h{number}", "namespace": "n"}})
        if number == 0:
            assert await in_use(server.kube) == "1 HyperJob exists: n/h0"
    assert await in_use(server.kube) == (
        "7 HyperJobs exist: n/h0, n/h1, n/h2, n/h3, n/h4 and 2 more"
    )


async def test_a_deletion_that_the_api_server_refuses_names_the_object() -> None:
    for verb in ("get", "delete"):
        server = InstallServer()
        server.install([config_map()])
        server.fails = lambda asked, *_, verb=verb: refusal(403, "x") if asked == verb else None
        with pytest.raises(InstallError, match="configmap/a: no"):
            [each async for each in remove(server.kube, [config_map()])]


async def test_a_crd_with_finalizers_is_not_deleted_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = InstallServer()
    server.install([crd()])
    monkeypatch.setattr(server, "remove", lambda *_: None)
    with pytest.raises(
        InstallError, match=r"still being deleted after 0.05s.*kubectl get hyperjobs"
    ):
        [each async for each in remove(server.kube, [crd()], wait=0.05)]
    assert [each.action async for each in remove(server.kube, [crd()], dry_run=True)] == [
        Action.DELETED
    ]


def connection(**more: Any) -> Connection:
    return Connection(server="https://karmada:5443", **more)


ACCOUNT = ServiceAccount(
    name="hyperjob-controller", namespace="karmada-system", secret="s", secret_namespace="host"
)


async def renewed(
    karmada: InstallServer, host: InstallServer, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setattr(credentials, "HttpTransport", lambda _connection, user_agent: karmada)
    return await renew(connection(), host.kube, [ACCOUNT], lifetime=timedelta(hours=2))


async def test_a_token_is_requested_and_written_to_its_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    karmada, host = InstallServer(), InstallServer()
    found = await renewed(karmada, host, monkeypatch)
    assert found == {"hyperjob-controller": datetime(2027, 1, 2, tzinfo=UTC)}
    (body,) = karmada.tokens
    assert body["spec"] == {"expirationSeconds": 7200}
    secret = host.get(SECRETS, "host/s")
    assert secret is not None
    assert secret["type"] == "Opaque"
    assert is_ours(secret)
    data = {name: b64decode(value).decode() for name, value in secret["data"].items()}
    assert data.keys() == {"kubeconfig", "token", "renewals.json"}
    assert data["token"] == "t"
    assert yaml.safe_load(data["kubeconfig"])["users"][0]["name"] == "hyperjob-controller"


async def test_a_secret_keeps_its_other_items_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    karmada, host = InstallServer(), InstallServer()
    labels = {"a": "b", "app.kubernetes.io/managed-by": "hyperjob-install"}
    metadata = {"name": "s", "namespace": "host", "labels": labels}
    host.put(SECRETS, {"metadata": metadata, "data": {"other": "eA==", "token": "b2xk"}})
    await renewed(karmada, host, monkeypatch)
    secret = host.get(SECRETS, "host/s")
    assert secret is not None
    assert secret["data"]["other"] == "eA=="
    assert secret["data"]["token"] == b64encode(b"t").decode()
    assert secret["metadata"]["labels"]["a"] == "b"


@pytest.mark.parametrize(
    ("errors", "tries", "raises"),
    [
        ([refusal(409, "Conflict")] * 2, 3, False),
        ([refusal(409, "AlreadyExists")] * 3, 3, True),
        ([refusal(403, "Forbidden")], 1, True),
    ],
    ids=["two conflicts", "three conflicts", "no right"],
)
async def test_a_secret_is_written_again_after_a_conflict(
    errors: list[KubeError], tries: int, raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    karmada, host = InstallServer(), InstallServer()
    left = [*errors]
    host.fails = lambda verb, *_: left.pop() if verb == "create" and left else None
    if raises:
        with pytest.raises(InstallError, match="secret host/s cannot be written: no"):
            await renewed(karmada, host, monkeypatch)
    else:
        await renewed(karmada, host, monkeypatch)
    record = [] if raises else ["replace"]
    assert [verb for verb, _, _ in host.calls] == ["create"] * tries + record


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (refusal(404, "NotFound"), "hyperjob-controller does not exist: run `hyperjob install"),
        (refusal(403, "Forbidden"), "no token for service account karmada-system/hyperjob-contr"),
    ],
)
async def test_a_token_that_is_refused_names_the_account(
    error: KubeError, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    karmada, host = InstallServer(), InstallServer()
    karmada.fails = lambda *_: error
    with pytest.raises(InstallError, match=text):
        await renewed(karmada, host, monkeypatch)
    assert host.calls == []


def test_a_kubeconfig_trusts_what_the_connection_trusts() -> None:
    def cluster(**more: Any) -> Object:
        document = yaml.safe_load(kubeconfig(connection(**more), "u"))
        assert document["current-context"] == document["contexts"][0]["name"] == "karmada"
        assert document["contexts"][0]["context"] == {"cluster": "karmada", "user": "u"}
        assert document["users"] == [{"name": "u", "user": {"tokenFile": "token"}}]
        found: Object = document["clusters"][0]["cluster"]
        assert found.pop("server") == "https://karmada:5443"
        return found

    assert cluster() == {}
    assert cluster(server_hostname="inside") == {"tls-server-name": "inside"}
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert cluster(tls=trusting) == {}
    authority = trustme.CA()
    authority.configure_trust(trusting)
    (key,) = found = cluster(tls=trusting)
    assert key == "certificate-authority-data"
    assert b64decode(found[key]) == authority.cert_pem.bytes()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    assert cluster(tls=trusting) == {"insecure-skip-tls-verify": True}


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        *((code, "try again") for code in (0, 500, 503, 504)),
        (403, "administrator of the Karmada API server"),
        (404, "does not serve its kind"),
        *((code, "correct the cause") for code in (400, 422, 502, 505)),
    ],
)
def test_the_remedy_of_a_refusal_follows_its_code(code: int, remedy: str) -> None:
    assert remedy in refused("crd/x", KubeError({"message": "no", "code": code})).remedy


def test_the_problem_of_another_customization_has_the_way_to_replace_it() -> None:
    for name in VOLCANO_GLOBAL:
        remedy = clash(Clash(name, "Job", ("retention",))).remedy
        assert remedy.startswith("replace Volcano Global's customization with --allow interpreters")
    found = clash(Clash("mine", "Queue", ("a", "b")))
    assert found.remedy.startswith("kubectl delete resourceinterpretercustomization mine")
    assert "defines a, b of Queue" in found.message
    assert found.remedy.endswith("or skip HyperJob's with --skip interpreters")
    assert "spec.a, spec.b" in lost("crd/x", ["spec.a", "spec.b"]).message


def test_labels_of_others_stay_beside_those_of_hyperjob() -> None:
    found = labelled({"metadata": {"name": "x", "labels": {"a": "b"}}}, component="c")
    assert found["metadata"]["labels"] == {
        "a": "b",
        "app.kubernetes.io/name": "hyperjob",
        "app.kubernetes.io/part-of": "hyperjob",
        "app.kubernetes.io/managed-by": "hyperjob-install",
        "app.kubernetes.io/component": "c",
    }
    assert not is_ours({"metadata": {}})
