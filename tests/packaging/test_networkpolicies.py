"""The chart's NetworkPolicies let through every connection of ours, and no other."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.helm import MAJORS, NAMESPACE, template, unpack
from tests.support.networkpolicies import End, admitted

Object = dict[str, Any]

# Where nothing is let through but what policies open; of Karmada's own pods others take care.
DENY_ALL = {
    "metadata": {"name": "deny", "namespace": NAMESPACE},
    "spec": {
        "podSelector": {
            "matchExpressions": [
                {"key": "app", "operator": "NotIn", "values": ["karmada-apiserver"]}
            ]
        },
        "policyTypes": ["Ingress", "Egress"],
    },
}
NARROW = {
    "networkPolicy": {
        "webhookFrom": [{"podSelector": {"matchLabels": {"app": "karmada-apiserver"}}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egress": [
            {"ports": [{"protocol": "UDP", "port": 53}, {"port": 53}]},
            {"to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "ports": [{"port": 443}]},
            {"to": [{"podSelector": {"matchLabels": {"app": "karmada-apiserver"}}}]},
        ],
    }
}

KARMADA = End(namespace=NAMESPACE, labels={"app": "karmada-apiserver"})
HOST = End(address="10.0.0.1")
DNS = End(namespace="kube-system", labels={"k8s-app": "kube-dns"})
NODE = End(address="192.168.7.7")
PROMETHEUS = End(namespace="monitoring", namespace_labels={"name": "monitoring"})
INGRESS = End(namespace="ingress", namespace_labels={"name": "ingress"})
STRANGER = End(namespace="default", namespace_labels={"name": "default"}, address="10.1.0.9")


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(MAJORS[-1], tmp_path_factory.mktemp("helm"))


def release(helm: Path, values: Object) -> tuple[list[Object], dict[str, End]]:
    """Render the chart; give the policies, and each kind of pod by its component."""
    objects = template(helm, values)
    policies = [DENY_ALL, *(each for each in objects if each["kind"] == "NetworkPolicy")]
    found = {}
    for each in objects:
        pod = each if each["kind"] == "Pod" else each.get("spec", {}).get("template")
        if each["kind"] == "CronJob":
            pod = each["spec"]["jobTemplate"]["spec"]["template"]
        if pod:
            labels = pod["metadata"]["labels"]
            ports = {
                ("TCP", port["name"]): port["containerPort"]
                for container in pod["spec"]["containers"]
                for port in container.get("ports", ())
            }
            found[labels["app.kubernetes.io/component"]] = End(
                namespace=NAMESPACE, labels=labels, ports=ports
            )
    return policies, found


WEBHOOK, METRICS, HEALTH, API, LOOKUP = 9443, 8080, 8081, 5443, 53
PAGE_METRICS = 8081


@pytest.mark.parametrize("values", [{}, NARROW], ids=["as it comes", "narrow"])
def test_every_connection_of_ours_is_let_through(helm: Path, values: Object) -> None:
    policies, pods = release(helm, values)
    assert set(pods) == {"webhook", "controller", "setup", "renewal", "test"}
    connections = [
        (KARMADA, pods["webhook"], WEBHOOK, "TCP"),
        *((PROMETHEUS, pods[name], METRICS, "TCP") for name in ("webhook", "controller")),
        *((NODE, pods[name], HEALTH, "TCP") for name in ("webhook", "controller")),
        *((pod, KARMADA, API, "TCP") for pod in pods.values()),
        *((pods[name], HOST, 443, "TCP") for name in ("setup", "renewal")),
        *((pod, DNS, LOOKUP, protocol) for pod in pods.values() for protocol in ("UDP", "TCP")),
    ]
    for source, target, port, protocol in connections:
        assert admitted(policies, source, target, port, protocol), (source, target, port)


def test_ports_that_are_not_served_are_shut(helm: Path) -> None:
    policies, pods = release(helm, {})
    for name, open_ports in (
        ("webhook", {WEBHOOK, METRICS, HEALTH}),
        ("controller", {METRICS, HEALTH}),
        ("setup", set()),
        ("renewal", set()),
        ("test", set()),
    ):
        for port in (22, 6060, WEBHOOK, METRICS, HEALTH):
            assert admitted(policies, STRANGER, pods[name], port) is (port in open_ports)
        assert not admitted(policies, STRANGER, pods[name], WEBHOOK, "UDP")


def test_only_ports_of_api_servers_and_of_dns_are_reached(helm: Path) -> None:
    policies, pods = release(helm, {})
    for pod in pods.values():
        for port in (22, 80, 8080, 9443, 10250):
            assert not admitted(policies, pod, HOST, port)
    policies, pods = release(helm, {"networkPolicy": {"egressPorts": [32443]}})
    assert admitted(policies, pods["controller"], HOST, 32443)
    assert not admitted(policies, pods["controller"], HOST, 443)


def test_narrow_policies_let_nobody_else_in_or_out(helm: Path) -> None:
    policies, pods = release(helm, NARROW)
    assert not admitted(policies, STRANGER, pods["webhook"], WEBHOOK)
    assert not admitted(policies, PROMETHEUS, pods["webhook"], WEBHOOK)
    for name in ("webhook", "controller"):
        assert not admitted(policies, STRANGER, pods[name], METRICS)
        assert not admitted(policies, KARMADA, pods[name], METRICS)
    for pod in pods.values():
        assert not admitted(policies, pod, End(address="203.0.113.5"), 443)
        assert not admitted(policies, pod, HOST, 80)
        assert not admitted(policies, pod, STRANGER, 443)


def test_a_webhook_that_watches_nothing_reaches_nobody(helm: Path) -> None:
    policies, pods = release(helm, {"webhook": {"watchKarmada": False}})
    for target, port, protocol in ((KARMADA, API, "TCP"), (HOST, 443, "TCP"), (DNS, 53, "UDP")):
        assert not admitted(policies, pods["webhook"], target, port, protocol)
        assert admitted(policies, pods["controller"], target, port, protocol)


def test_hook_jobs_are_let_out_before_the_release_is_there(helm: Path) -> None:
    policies, pods = release(helm, {})
    hooks = [
        policy
        for policy in policies
        if policy is DENY_ALL
        or "pre-install" in policy["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    ]
    assert admitted(hooks, pods["setup"], HOST, 443)
    assert not admitted(hooks, pods["controller"], HOST, 443)


def test_the_web_page_is_open_to_its_visitors_and_to_nobody_where_it_is_off(helm: Path) -> None:
    assert "ui" not in release(helm, {})[1]
    policies, pods = release(helm, {"ui": {"enabled": True}})
    assert admitted(policies, STRANGER, pods["ui"], 8080)
    assert admitted(policies, pods["ui"], KARMADA, API)
    assert not admitted(policies, STRANGER, pods["ui"], WEBHOOK)
    assert not admitted(policies, pods["ui"], STRANGER, 9090)
    narrow = NARROW["networkPolicy"] | {
        "uiFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]
    }
    policies, pods = release(helm, {"ui": {"enabled": True}, "networkPolicy": narrow})
    assert admitted(policies, INGRESS, pods["ui"], 8080)
    assert not admitted(policies, STRANGER, pods["ui"], 8080)
    assert admitted(policies, PROMETHEUS, pods["ui"], PAGE_METRICS)
    assert not admitted(policies, INGRESS, pods["ui"], PAGE_METRICS)
