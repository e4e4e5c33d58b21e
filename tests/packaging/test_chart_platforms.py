"""The chart on platforms of others: OpenShift, GKE, IPv6 alone, a tainted pool, a closed registry.

What every rendering keeps is in test_chart.py, which renders these values too.
"""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from hyperjob_webhook.options import parse as parse_webhook
from tests.support.helm import MAJORS, containers, one, pods, template, unpack
from tests.support.platforms import EVERYWHERE, PLATFORMS, POOL

Object = dict[str, Any]
OTHERS = ("monitoring.coreos.com/", "route.openshift.io/")


@pytest.fixture(scope="module")
def helms(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [unpack(major, tmp_path_factory.mktemp("helms")) for major in MAJORS]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_kubernetes_from_1_31_to_1_36_takes_every_object(platform: str, helms: list[Path]) -> None:
    for each in template(helms[-1], PLATFORMS[platform]):
        if not each["apiVersion"].startswith(OTHERS):
            for version in ("1.31", "1.36"):
                kubernetes_validate.validate(each, version, strict=True)


def test_no_pod_chooses_a_user_a_group_or_a_priority_that_a_platform_may_refuse(
    helms: list[Path],
) -> None:
    # OpenShift's restricted-v2 has users of its own, GKE keeps system priorities for kube-system.
    for name, _labels, spec in pods(template(helms[-1], PLATFORMS["OpenShift"])):
        assert "priorityClassName" not in spec, name
        found = [spec["securityContext"], *(each["securityContext"] for each in containers(spec))]
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & {key for each in found for key in each}
        modes = {"defaultMode", "mode"}
        for volume in spec["volumes"]:
            for source in (*volume.values(), *volume.get("projected", {}).get("sources", ())):
                assert not modes & set(source), "only the group of fsGroup could read the file"


def pod_metadata(each: Object) -> Object:
    """Give the metadata of the pod of a Pod, a Deployment, a Job or a CronJob."""
    spec = each.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    return dict(spec.get("template", each).get("metadata", {}))


OF_A_SPEC = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets")


def test_the_values_of_all_pods_reach_each_of_them(helms: list[Path]) -> None:
    objects = template(helms[-1], PLATFORMS["a tainted pool"])
    found = list(pods(objects))
    metadata = {
        each["metadata"]["name"]: pod_metadata(each)
        for each in objects
        if each["kind"] in ("Pod", "Deployment", "Job", "CronJob")
    }
    assert len(found) == 9, "three Deployments, four hooks, the CronJob and the test"
    for name, labels, spec in found:
        assert {key: spec[key] for key in OF_A_SPEC} == {k: EVERYWHERE[k] for k in OF_A_SPEC}, name
        assert spec["securityContext"] == EVERYWHERE["podSecurityContext"]
        assert labels["team"] == "platform"
        for container in containers(spec):
            assert EVERYWHERE["extraEnv"][0] in container["env"], name
            names = [each["name"] for each in container["env"]]
            assert len(names) == len(set(names))
        notes = metadata[name]["annotations"]
        assert EVERYWHERE["podAnnotations"].items() <= notes.items(), name


def test_a_value_of_a_component_replaces_that_of_all_pods(helms: list[Path]) -> None:
    own = {"tolerations": [], "priorityClassName": "high", "podLabels": {"own": "yes"}}
    objects = template(
        helms[-1],
        {**EVERYWHERE, "webhook": own, "setup": {"nodeSelector": {"pool": "jobs"}}},
    )
    specs = {name: (labels, spec) for name, labels, spec in pods(objects)}
    labels, spec = specs["hyperjob-webhook"]
    assert "tolerations" not in spec
    assert (spec["priorityClassName"], labels["own"]) == ("high", "yes")
    assert "team" not in labels
    assert spec["nodeSelector"] == POOL["nodeSelector"]
    for name in ("hyperjob-prepare", "hyperjob-renewal", "hyperjob-preflight"):
        assert specs[name][1]["nodeSelector"] == {"pool": "jobs"}
        assert specs[name][1]["tolerations"] == POOL["tolerations"]
    assert specs["hyperjob-controller"][1]["nodeSelector"] == POOL["nodeSelector"]


def test_probes_spread_and_history_are_changed_in_part(helms: list[Path]) -> None:
    objects = template(
        helms[-1],
        {
            "topologySpreadConstraints": [
                {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
            ],
            "revisionHistoryLimit": 3,
            "webhook": {"livenessProbe": {"periodSeconds": 30}},
        },
    )
    spec = one(objects, "Deployment", "-webhook")["spec"]
    assert spec["revisionHistoryLimit"] == 3
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "rack"
    assert spread["labelSelector"] == spec["selector"]
    (container,) = containers(spec["template"]["spec"])
    assert container["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": "health"},
        "periodSeconds": 30,
        "timeoutSeconds": 5,
    }


def test_images_come_from_the_registry_of_the_house(helms: list[Path]) -> None:
    objects = template(helms[-1], PLATFORMS["a registry without a way out"])
    for _name, _labels, spec in pods(objects):
        assert spec["imagePullSecrets"] == [{"name": "pull"}, {"name": "internal"}]
        for container in containers(spec):
            assert container["image"] == (
                "registry.internal:5000/mirror/hyperjob@sha256:" + "b" * 64
            )
    assert one(objects, "ConfigMap", "-more")["metadata"]["name"] == "hyperjob-more"


def test_the_page_has_an_ingress_for_each_of_its_names(helms: list[Path]) -> None:
    objects = template(helms[-1], PLATFORMS["GKE"])
    spec = one(objects, "Ingress")["spec"]
    assert spec["ingressClassName"] == "gce"
    assert spec["tls"] == PLATFORMS["GKE"]["ui"]["ingress"]["tls"]
    (rule,) = spec["rules"]
    assert rule["host"] == "hyperjob.example.org"
    (path,) = rule["http"]["paths"]
    service = one(objects, "Service", "-ui")
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] == service["spec"]["ports"][0]["name"]
    (endpoint,) = one(objects, "ServiceMonitor", "-webhook")["spec"]["endpoints"]
    wanted = PLATFORMS["GKE"]["metrics"]["serviceMonitor"]
    assert {key: endpoint[key] for key in wanted if key != "enabled"} == {
        key: value for key, value in wanted.items() if key != "enabled"
    }


def test_every_port_listens_by_ipv6_too(helms: list[Path]) -> None:
    objects = template(helms[-1], PLATFORMS["a cluster of IPv6 alone"])
    webhook = one(objects, "Deployment", "-webhook")["spec"]["template"]["spec"]["containers"][0]
    page = one(objects, "Deployment", "-ui")["spec"]["template"]["spec"]["containers"][0]
    assert parse_webhook(webhook["args"]).bind_address == "::"
    assert "--listen=[::]:8080" in page["args"]
    renewal = one(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert "--name=fd00::7" in renewal["initContainers"][0]["args"], "the certificate covers it"
