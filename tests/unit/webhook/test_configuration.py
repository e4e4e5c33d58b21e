"""The webhook configurations, judged as an API server would read them."""

import cel
import pytest
from cel_expr_python import cel as google_cel

from hyperjob_certs import __main__
from hyperjob_rules import configuration
from hyperjob_rules.configuration import ServiceReference, configurations

URL = "https://hyperjob-webhook.hyperjob-system.svc:443"
CA = b"-----BEGIN CERTIFICATE-----\n"
VALIDATING = "vhyperjob.training.volcano.sh"


def webhooks(**arguments):
    mutating, validating = configurations(**({"url": URL, "ca_bundle": CA} | arguments))
    return {hook["name"]: hook for hook in mutating["webhooks"] + validating["webhooks"]}


def test_ours_is_called_before_volcano_global_and_again_after_it():
    assert configuration.MUTATING_NAME < "volcano-global-mutating"
    assert webhooks()["mresourcebinding.training.volcano.sh"]["reinvocationPolicy"] == "IfNeeded"


def test_certificates_are_injected_into_these_configurations():
    assert {name for _, name in __main__.TARGETS} == {
        configuration.MUTATING_NAME,
        configuration.VALIDATING_NAME,
    }


def test_only_create_and_update_of_the_objects_themselves_are_sent():
    resources = []
    for hook in webhooks().values():
        for rule in hook["rules"]:
            assert rule["operations"] == ["CREATE", "UPDATE"]
            assert rule["scope"] == "Namespaced"
            resources += [(rule["apiGroups"], rule["apiVersions"], rule["resources"])]
    assert sorted(resources) == [
        (["training.volcano.sh"], ["v1alpha1"], ["hyperjobs"]),
        (["training.volcano.sh"], ["v1alpha1"], ["hyperjobs"]),
        (["work.karmada.io"], ["v1alpha2"], ["resourcebindings"]),
    ]


def test_a_service_is_referred_to_by_path_and_port():
    hook = webhooks(url=None, service=ServiceReference("ns", "hooks", 8443))[VALIDATING]
    assert hook["clientConfig"]["service"] == {
        "namespace": "ns",
        "name": "hooks",
        "path": "/validate-training-volcano-sh-v1alpha1-hyperjob",
        "port": 8443,
    }


def test_an_empty_bundle_is_left_for_others_to_fill_in():
    assert "caBundle" not in webhooks(ca_bundle=b"")[VALIDATING]["clientConfig"]


@pytest.mark.parametrize(
    "wrong", [{"url": None}, {"service": ServiceReference("a", "b")}, {"url": "http://plain"}]
)
def test_an_address_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError):
        webhooks(**wrong)


GATED = {"affinityName": "hyperjob-gang", "clusterNames": ["m"]}
HELD = {"affinityName": "hyperjob-held", "clusterNames": ["m"]}
OTHER = {"affinityName": "mine"}
NAMELESS = {"clusterNames": ["m"]}


def placed(*affinities, kind="Job", version="batch.volcano.sh/v1alpha1"):
    placement = {"clusterAffinities": list(affinities)}
    resource = {"apiVersion": version, "kind": kind}
    return {"metadata": {}, "spec": {"resource": resource, "placement": placement}}


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
BINDINGS = {
    "ours": (placed(GATED), True),
    "ours among others": (placed(NAMELESS, OTHER, GATED), True),
    "ours that is being deleted": (placed(GATED) | {"metadata": DELETED}, False),
    "what goes with a vcjob": (placed(GATED, kind="ServiceExport"), False),
    "a Job of Kubernetes": (placed(GATED, version="batch/v1"), False),
    "a Job of no version": (
        {"spec": {"resource": {"kind": "Job"}, "placement": {"clusterAffinities": [GATED]}}},
        False,
    ),
    "no resource": ({"spec": {"placement": {"clusterAffinities": [GATED]}}}, False),
    "another name": (placed(OTHER), False),
    "no name": (placed(NAMELESS), False),
    "a gang that our own queue admission holds": (placed(HELD), True),
    "an ungated HyperJob": (placed({"affinityName": "hyperjob"}), False),
    "no affinity": (placed(), False),
    "null affinities": ({"spec": {"placement": {"clusterAffinities": None}}}, False),
    "a clusterAffinity": ({"spec": {"placement": {"clusterAffinity": {}}}}, False),
    "an empty placement": ({"spec": {"placement": {}}}, False),
    "a null placement": ({"spec": {"placement": None}}, False),
    "no placement": ({"spec": {"requiredBy": []}}, False),
    "a null spec": ({"spec": None}, False),
    "no spec": ({"metadata": {}}, False),
}
HYPERJOBS = {
    "alive": ({"metadata": {"name": "x"}}, True),
    "with a null deletion": ({"metadata": {"deletionTimestamp": None}}, True),
    "being deleted": ({"metadata": DELETED, "spec": {"suspend": True}}, False),
}
CHANGED = {
    "being deleted and changed": ({"metadata": DELETED, "spec": {"suspend": False}}, True),
    "being deleted and emptied": ({"metadata": DELETED, "spec": {}}, True),
}
OLD = {"metadata": {}, "spec": {"suspend": True}}


def google(expression, obj):
    variables = {"object": google_cel.Type.DYN, "oldObject": google_cel.Type.DYN}
    environment = google_cel.NewEnv(variables=variables)
    return environment.compile(expression).eval(data={"object": obj, "oldObject": OLD}).value()


def rust(expression, obj):
    return cel.evaluate(expression, {"object": obj, "oldObject": OLD})


def conditions(hook):
    return [condition["expression"] for condition in webhooks()[hook]["matchConditions"]]


@pytest.mark.parametrize("evaluate", [google, rust])
@pytest.mark.parametrize(
    ("hook", "obj", "expected"),
    [
        pytest.param(hook, obj, expected, id=f"{hook.partition('.')[0]}: {name}")
        for (hook, cases) in (
            ("mresourcebinding.training.volcano.sh", BINDINGS),
            ("mhyperjob.training.volcano.sh", HYPERJOBS),
            (VALIDATING, HYPERJOBS | CHANGED),
        )
        for name, (obj, expected) in cases.items()
    ],
)
def test_match_conditions_select(evaluate, hook, obj, expected):
    assert all(evaluate(expression, obj) for expression in conditions(hook)) is expected


@pytest.mark.parametrize("old", [None, placed(OTHER), placed(GATED)], ids=["none", "other", "ours"])
def test_a_binding_that_was_ours_is_sent_whatever_it_is_now(old):
    gated, _ = conditions("mresourcebinding.training.volcano.sh")
    known = {"object": placed(OTHER), "oldObject": old}
    assert cel.evaluate(gated, known) is (old == placed(GATED))
