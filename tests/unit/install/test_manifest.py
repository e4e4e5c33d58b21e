"""What is installed, in which order, and with which rights."""

from typing import Any

import pytest

from hyperjob_controller.caches import Caches
from hyperjob_core.api.choices import MemberAccess
from hyperjob_install import rbac
from hyperjob_install.execute import targets
from hyperjob_install.interpreters import Clash, clashes, interpreters
from hyperjob_install.manifest import certs_guard, manifest
from hyperjob_install.objects import Component, Item, is_ours
from hyperjob_install.settings import SECRET_WARNINGS, UI, Settings
from hyperjob_rules.configuration import ServiceReference
from tests.unit.install.observations import interpreter

URL = "https://hj.svc:443"


def items(**settings: Any) -> list[Item]:
    return manifest(Settings(**{"url": URL, **settings}))


def role(name: str, **settings: Any) -> Any:
    """Return the rules of a ClusterRole."""
    (found,) = (
        item.object["rules"]
        for item in items(**settings)
        if (item.name, item.resource.kind) == (name, "ClusterRole")
    )
    return found


def test_definitions_come_first_and_webhooks_last() -> None:
    kinds = [item.resource.kind for item in items()]
    assert kinds[:4] == ["CustomResourceDefinition"] * 4
    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    assert kinds.index("Namespace") < kinds.index("Role")


def test_everything_is_taken_away_in_the_reverse_order() -> None:
    forward = [
        item.title for item in items(service_accounts=True, parts={UI}, members=MemberAccess.LOGS)
    ]
    away = [item.title for item in targets(delete_crds=True)]
    lease = away.pop(away.index("namespace/karmada-system") - 1)
    assert lease == "lease.coordination.k8s.io/hyperjob-controller"
    assert away == forward[::-1]


def test_a_web_page_has_rights_where_there_is_one() -> None:
    known = {item.title for item in items(service_accounts=True)}
    more = [each for each in items(service_accounts=True, parts={UI}) if each.title not in known]
    assert {item.name for item in more} == {"hyperjob-ui"}
    assert {item.resource.kind for item in more} == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    }
    by_name = items(parts={UI}, user_prefix="hj:")
    assert {
        subject["name"]
        for item in by_name
        if item.name == "hyperjob-ui"
        for subject in item.object.get("subjects", ())
    } == {"hj:ui"}


def test_accounts_of_our_own_are_who_the_rights_are_for() -> None:
    made = items(service_accounts=True, members=MemberAccess.LOGS)
    subjects = {
        (item.name, subject["kind"], subject["namespace"], subject["name"])
        for item in made
        if not item.absent
        for subject in item.object.get("subjects", ())
    }
    assert subjects == {
        (name, "ServiceAccount", "karmada-system", name)
        for name in ("hyperjob-controller", "hyperjob-certs", "hyperjob-webhook")
    } | {
        (role, "ServiceAccount", "karmada-system", "hyperjob-members")
        for role in ("hyperjob-members", "hyperjob-members-reader")
    }
    rules = rbac.token_rules("hyperjob-members")
    (tokens,) = [item for item in made if item.object.get("rules") == rules]
    assert (tokens.name, tokens.namespace) == ("hyperjob-certs", "karmada-system")


@pytest.mark.parametrize("secrets", [False, True])
def test_the_webhook_may_get_secrets_only_where_it_is_asked_to_warn_of_them(secrets: bool) -> None:
    rules = role("hyperjob-webhook", parts={SECRET_WARNINGS} if secrets else set())
    gets = {name for rule in rules if "get" in rule["verbs"] for name in rule["resources"]}
    needed = {"configmaps", "persistentvolumeclaims", "serviceaccounts", "namespaces"}
    assert gets == needed | ({"secrets"} if secrets else set())


def test_the_controller_may_write_no_config_map() -> None:
    written = {name for rule in role("hyperjob-controller") for name in rule["resources"]}
    assert "configmaps" not in written


def test_definitions_stay_unless_told_otherwise() -> None:
    kept = targets(delete_crds=False)
    assert "CustomResourceDefinition" not in {item.resource.kind for item in kept}


def test_every_object_says_that_it_is_ours() -> None:
    for item in items():
        # Jobs of others may be in the queue `default`, which is therefore never changed or removed.
        assert is_ours(item.object) is (item.part is not Component.DEFAULT_QUEUE), item.title
        assert item.object["apiVersion"] == item.resource.api_version
        assert item.object["kind"] == item.resource.kind


def test_only_what_others_may_own_is_left_alone() -> None:
    assert [item.name for item in items() if item.only_where_missing] == [
        "jobs.batch.volcano.sh",
        "queues.scheduling.volcano.sh",
        "commands.bus.volcano.sh",
        "karmada-system",
        "default",
    ]


@pytest.mark.parametrize("part", Component)
def test_a_part_can_be_left_out(part: Component) -> None:
    everything, rest = items(), items(skip=frozenset({part}))
    assert {item.part for item in rest} == {item.part for item in everything} - {part}
    assert [item.title for item in rest] == [
        item.title for item in everything if item.part is not part
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": None},
        {"url": URL, "service": ServiceReference("ns", "hj")},
        {"url": "http://hj"},
        {"url": URL, "user_prefix": "system:serviceaccount:no-name"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any) -> None:
    with pytest.raises(ValueError):
        manifest(Settings(**settings))


def test_queues_replace_those_that_members_made() -> None:
    (policy,) = (item.object for item in items() if item.part is Component.QUEUE_POLICY)
    assert policy["spec"]["conflictResolution"] == "Overwrite"
    assert policy["spec"]["resourceSelectors"] == [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    ]


def test_no_taint_of_a_cluster_takes_away_what_its_pods_and_the_controller_need() -> None:
    policies = [item.object for item in items() if item.resource.kind == "ClusterPropagationPolicy"]
    assert len(policies) == 4
    for policy in policies:
        tolerated = policy["spec"]["placement"]["clusterTolerations"]
        assert tolerated == [{"operator": "Exists"}], policy["metadata"]["name"]


def test_priority_classes_are_copied_and_those_of_the_system_are_not_sent() -> None:
    found = [item.object for item in items() if item.part is Component.PRIORITY_CLASSES]
    copied, kept = (policy["spec"] for policy in found)
    assert copied["resourceSelectors"] == [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    ]
    assert "conflictResolution" not in copied  # by default a member's own class stays
    for policy in (copied, kept):  # else Karmada removes no Cluster with a class of its own
        assert "preserveResourcesOnDeletion" not in policy
    assert [each["name"] for each in kept["resourceSelectors"]] == [
        "system-cluster-critical",
        "system-node-critical",
    ]
    assert kept["suspension"] == {"dispatching": True}
    skipped = items(skip=frozenset({Component.PRIORITY_CLASSES}))
    assert not any(item.name.endswith("priority-classes") for item in skipped)


# rights


def bindings(**settings: Any) -> dict[tuple[str, str], Any]:
    return {
        (item.resource.kind, item.name): item.object
        for item in items(**settings)
        if item.resource.kind.endswith("RoleBinding")
    }


def test_a_user_or_a_service_account_gets_the_rights() -> None:
    found = bindings(user_prefix="system:serviceaccount:hj:the-")
    account = {"kind": "ServiceAccount", "namespace": "hj", "name": "the-controller"}
    assert found["ClusterRoleBinding", "hyperjob-controller"]["subjects"] == [account]
    assert found["RoleBinding", "hyperjob-controller"]["subjects"] == [account]
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "example:certs"}
    found = bindings(user_prefix="example:")
    assert found["ClusterRoleBinding", "hyperjob-certs"]["subjects"] == [user]


def test_every_binding_is_of_a_role_that_is_there() -> None:
    roles = {
        (item.resource.kind, item.name) for item in items() if item.resource.kind.endswith("Role")
    }
    for binding in bindings().values():
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles


def test_no_right_is_unbounded() -> None:
    for item in items():
        for rule in item.object.get("rules", []):
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]


def test_the_controller_may_watch_what_it_caches_and_nothing_else() -> None:
    may = {
        (rule["apiGroups"][0], rule["resources"][0])
        for rule in rbac.controller_rules()
        if {"list", "watch"} <= set(rule["verbs"])
    }
    caches = Caches(None)  # type: ignore[arg-type]  # no call is made
    assert may == {
        (each.resource.group, each.resource.plural) for each in (*caches.all, caches.deployments)
    }


def test_the_lease_is_the_controllers_own() -> None:
    by_verb = {verb: rule for rule in rbac.lease_rules("hj") for verb in rule["verbs"]}
    assert by_verb["update"]["resourceNames"] == ["hyperjob-controller"]
    assert "delete" not in by_verb


def test_certificates_reach_only_our_two_configurations() -> None:
    names = [name for rule in rbac.certs_rules() for name in rule["resourceNames"]]
    assert names == ["hyperjob-mutating", "hyperjob-validating"]


# interpreters


def test_what_would_empty_a_job_is_not_defined() -> None:
    for item in interpreters():
        assert "replicaRevision" not in item.object["spec"]["customizations"]


def theirs(kind: str, version: str = "batch.volcano.sh/v1alpha1", **scripts: Any) -> Any:
    """Return another one's definition for a kind; an operation is there with its script."""
    target = {"apiVersion": version, "kind": kind}
    return {"metadata": {"name": "theirs"}, "spec": {"target": target, "customizations": scripts}}


LUA = {"luaScript": "x"}
QUEUE = "scheduling.volcano.sh/v1beta1"
CLASHES = {
    "the same operation": (
        theirs("Job", retention=LUA, healthInterpretation=LUA),
        [Clash("theirs", "Job", ("retention",))],
    ),
    "several": (
        theirs("Queue", QUEUE, statusAggregation=LUA, retention=LUA),
        [Clash("theirs", "Queue", ("retention", "statusAggregation"))],
    ),
    "dependencies, of which Karmada takes many": (theirs("Job", dependencyInterpretation=LUA), []),
    "operations that ours leaves out": (theirs("Job", statusReflection=LUA), []),
    "our own": (interpreter("hyperjob-vcjob", "Job", "retention"), []),
    "another kind": (theirs("Job", "batch/v1", retention=LUA), []),
    "an empty script": (theirs("Job", retention={"luaScript": ""}, replicaResource=None), []),
    "nothing": ({"metadata": {"name": "theirs"}}, []),
}


@pytest.mark.parametrize("case", CLASHES)
def test_what_keeps_ours_out(case: str) -> None:
    live, expected = CLASHES[case]
    assert clashes([live]) == expected
    ours = interpreter("hyperjob-vcjob", "Job", "retention")
    assert clashes([ours, live, ours]) == expected


GET, LOOK = "get list watch", "list watch"
PODS = {"pods": GET, "podgroups": GET, "events": LOOK}
DEVICES = dict.fromkeys(("resourceslices", "deviceclasses", "resourceclaims"), LOOK)
ON_NODES = {**PODS, "nodes": GET, "hypernodes": GET, **DEVICES}


@pytest.mark.parametrize(
    ("step", "rights"),
    [
        (MemberAccess.PODS, PODS),
        (MemberAccess.NODES, ON_NODES),
        (MemberAccess.LOGS, {**ON_NODES, "pods/log": "get"}),
    ],
)
def test_each_step_of_the_members_reader_has_the_least_rights(
    step: MemberAccess, rights: dict[str, str]
) -> None:
    rules = role("hyperjob-members-reader", members=step)
    assert {rule["resources"][0]: " ".join(rule["verbs"]) for rule in rules} == rights
    assert len(rules) == len(rights)


def test_without_the_members_reader_its_objects_are_deleted() -> None:
    of_reader = [item for item in items(members=MemberAccess.OFF) if item.part is Component.MEMBERS]
    assert len(of_reader) == 5
    assert all(item.absent for item in of_reader)


def test_people_get_rights_by_aggregation() -> None:
    found = {item.name: item.object for item in rbac.rbac(Settings())}
    labels = {
        name: {
            key.rpartition("/")[2]
            for key in found[name]["metadata"]["labels"]
            if key.startswith("rbac.authorization.k8s.io/")
        }
        for name in ("hyperjob-edit", "hyperjob-view")
    }
    assert labels == {
        "hyperjob-edit": {"aggregate-to-edit", "aggregate-to-admin"},
        "hyperjob-view": {"aggregate-to-view"},
    }
    read = ["get", "list", "watch"]
    rule = {"apiGroups": ["training.volcano.sh"], "resources": ["hyperjobs"]}
    assert found["hyperjob-view"]["rules"] == [{**rule, "verbs": read}]
    edit = [*read, "create", "update", "patch", "delete"]
    assert found["hyperjob-edit"]["rules"] == [{**rule, "verbs": edit}]


def test_the_policy_of_certificates_is_left_out_where_no_api_server_evaluates_it() -> None:
    assert [item.only_where_served for item in certs_guard("u")] == [True, True]
    policy, binding = (item.object["spec"] for item in certs_guard('a"b'))
    (condition,) = policy["matchConditions"]
    assert condition["expression"] == 'request.userInfo.username == "a\\"b"'
    assert binding == {"policyName": "hyperjob-certs", "validationActions": ["Deny"]}
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["UPDATE"]
